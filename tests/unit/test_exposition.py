import gzip
import math
import time
from collections import Counter
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from prometheus_client.parser import text_string_to_metric_families

from app.domain.exposition import (
    Change,
    Exposition,
    Sample,
    by_label,
    counter_change,
    parse,
    total,
)
from app.domain.histograms import window

DATA = Path(__file__).parents[1] / "data" / "exposition"
SHARED = Path(__file__).parents[3] / "shared"
CAPTURES = sorted(SHARED.glob("captures/http/*/metrics.body"))


def read(name: str) -> Exposition:
    return parse((DATA / name).read_bytes())


def every(exposition: Exposition) -> list[Sample]:
    return [sample for samples in exposition.samples.values() for sample in samples]


def only(text: str) -> Sample:
    exposition = parse(text.encode())
    assert exposition.problems == ()
    (sample,) = every(exposition)
    return sample


def comparable(name: str, labels: dict[str, str], value: float) -> tuple[object, ...]:
    return name, frozenset(labels.items()), repr(value)


@pytest.mark.parametrize(
    ("line", "labels", "value"),
    [
        pytest.param("x 1", {}, 1.0, id="bare"),
        pytest.param("x{} 1", {}, 1.0, id="empty-braces"),
        pytest.param('x{a="b",} 7', {"a": "b"}, 7.0, id="trailing-comma"),
        pytest.param(' x { a = "b" , c = "d" } 7 ', {"a": "b", "c": "d"}, 7.0, id="blanks"),
        pytest.param('x{a="b"}7', {"a": "b"}, 7.0, id="no-blank-before-the-value"),
        pytest.param("x\t9\r", {}, 9.0, id="tab-and-carriage-return"),
        pytest.param("x 1.5e+06", {}, 1.5e6, id="exponent"),
        pytest.param("x .5", {}, 0.5, id="no-digit-before-the-point"),
        pytest.param("x +Inf", {}, math.inf, id="plus-infinity"),
        pytest.param("x -Inf", {}, -math.inf, id="minus-infinity"),
        pytest.param("x 2 1738402100000", {}, 2.0, id="timestamp"),
        pytest.param("x 2 -1.7e9", {}, 2.0, id="openmetrics-timestamp"),
        pytest.param('x{a="b"} 3 # {t="1"} 0.5 17.1', {"a": "b"}, 3.0, id="exemplar"),
        pytest.param('x{a="b"} 3 # {t="1"} 0.5', {"a": "b"}, 3.0, id="exemplar-without-time"),
        pytest.param('x{a="b"} 3 4 # {} 0.5', {"a": "b"}, 3.0, id="timestamp-and-exemplar"),
        pytest.param('x{a="} 5"} 3', {"a": "} 5"}, 3.0, id="brace-in-a-value"),
        pytest.param('x{a="b,c=\\"d\\""} 3', {"a": 'b,c="d"'}, 3.0, id="label-in-a-value"),
        pytest.param('x{a="\\\\n\\n\\\\"} 3', {"a": "\\n\n\\"}, 3.0, id="escapes"),
        pytest.param('x{a="模型 é\u2028"} 3', {"a": "模型 é\u2028"}, 3.0, id="not-ascii"),
        pytest.param('\ufeffx{a="b"} 3', {"a": "b"}, 3.0, id="byte-order-mark"),
    ],
)
@pytest.mark.parametrize("seen_before", [False, True], ids=["first", "again"])
def test_a_sample_is_read_in_every_form_the_formats_allow(
    line: str, labels: dict[str, str], value: float, *, seen_before: bool
) -> None:
    text = f"{line}\nx 0\n{line.lstrip(chr(0xFEFF))}\n" if seen_before else line
    exposition = parse(text.encode())
    assert exposition.problems == ()
    assert exposition.samples["x"][-1] == Sample("x", labels, value)


@pytest.mark.parametrize(
    "line",
    [
        pytest.param('x{a="\\x"} 1', id="unknown-escape"),
        pytest.param('x{a="b} 1', id="open-quote"),
        pytest.param('x{a="b"', id="open-brace"),
        pytest.param('x{a="b" c="d"} 1', id="no-comma"),
        pytest.param('x{a="b",a="c"} 1', id="same-label-twice"),
        pytest.param('x{1a="b"} 1', id="label-begins-with-a-digit"),
        pytest.param("x{a} 1", id="label-without-value"),
        pytest.param("x{,} 1", id="comma-alone"),
        pytest.param("x", id="no-value"),
        pytest.param("x{}", id="labels-but-no-value"),
        pytest.param("x 0x1p3", id="hexadecimal"),
        pytest.param("x 1_000", id="underscore"),
        pytest.param("x ٣", id="digit-of-another-script"),
        pytest.param("x 1 2 3", id="too-many-words"),
        pytest.param("x+5", id="value-sticks-to-the-name"),
        pytest.param("<html>", id="html"),
        pytest.param("\0\0", id="nul"),
        pytest.param("x{" + ",".join(f'l{i}="1"' for i in range(65)) + "} 1", id="too-many-labels"),
    ],
)
@pytest.mark.parametrize("seen_before", [False, True], ids=["first", "again"])
def test_a_bad_line_is_one_problem_and_the_rest_survives(line: str, *, seen_before: bool) -> None:
    exposition = parse(f"{'x' if seen_before else 'w'} 0\n{line}\ny 2\n".encode())
    assert [sample.value for sample in every(exposition)] == [0.0, 2.0]
    (problem,) = exposition.problems
    assert problem.startswith("line 2: ")
    assert problem.isascii()
    assert len(problem) < 200


def test_types_are_told_by_family_and_the_first_word_stands() -> None:
    text = (
        b"# HELP a b {c} 1\n#TYPE z gauge\n# TYPE a gauge\n"
        b"  #\tTYPE  b\tcounter \r\n# TYPE a summary\n# EOF\n"
    )
    exposition = parse(text)
    assert exposition.types == {"a": "gauge", "b": "counter"}
    assert (exposition.problems, exposition.samples) == ((), {})


def test_problems_are_bounded_and_the_others_counted() -> None:
    problems = parse(b"bad\n" * 30).problems
    assert len(problems) == 21
    assert problems[-1] == "and 10 more lines"


@pytest.mark.parametrize(
    ("max_bytes", "max_samples", "values"),
    [
        pytest.param(9, 9, [1.0, 2.0], id="bytes-cut-a-line"),
        pytest.param(2, 9, [], id="bytes-cut-the-first-line"),
        pytest.param(99, 2, [1.0, 2.0], id="samples"),
        pytest.param(99, 0, [], id="no-samples"),
    ],
)
def test_a_cap_is_said(max_bytes: int, max_samples: int, values: list[float]) -> None:
    exposition = parse(b"x 1\nx 2\nx 3\n", max_bytes=max_bytes, max_samples=max_samples)
    assert [sample.value for sample in every(exposition)] == values
    assert exposition.truncated


def test_exactly_at_the_caps_nothing_is_cut() -> None:
    assert not parse(b"x 1\nx 2\n# EOF\n", max_bytes=14, max_samples=2).truncated


def test_more_blank_lines_than_anyone_sends_are_a_cap_too() -> None:
    exposition = parse(b"\n" * 1_000_001 + b"x 1")
    assert (exposition.truncated, exposition.samples) == (True, {})


def test_only_wanted_families_are_read_with_all_their_samples_in_either_spelling() -> None:
    text = (
        b"# TYPE sglang:a histogram\nsglang:a_bucket 1\nsglang_a_sum 1\nsglang:ab 1\n"
        b'sglang:b{c="bad\nsglang:b{d="bad\nsglang:b_total 1\nother 1\n# TYPE other gauge\n'
    )
    exposition = parse(text, wanted=["sglang:a", "sglang_b_total"])
    assert list(exposition.samples) == ["sglang:a_bucket", "sglang_a_sum", "sglang:b_total"]
    assert exposition.types == {"sglang:a": "histogram"}
    assert len(parse(text, wanted=["other"]).samples) == 1
    assert parse(text, wanted=["other"]).problems == ()


# --- which series count


def parsed(*lines: str) -> Exposition:
    exposition = parse("\n".join(lines).encode())
    assert exposition.problems == ()
    return exposition


@pytest.mark.parametrize(
    ("lines", "expected"),
    [
        pytest.param(['x{dp_rank="0"} 1', 'x{dp_rank="1"} 2'], 3.0, id="dp-ranks-are-summed"),
        pytest.param(['x{new="a"} 1', 'x{new="b"} 2'], 3.0, id="unknown-labels-are-summed"),
        pytest.param(
            ['x{tp_rank="1"} 9', 'x{tp_rank="0"} 8'], 8.0, id="tp-rank-0-speaks-for-the-others"
        ),
        pytest.param(
            ['x{tp_rank="10"} 9', 'x{tp_rank="2"} 8'], 8.0, id="lowest-rank-where-0-is-absent"
        ),
        pytest.param(
            ['x{tp_rank="0"} NaN', 'x{tp_rank="1"} 8'], 8.0, id="a-rank-without-figure-is-skipped"
        ),
        pytest.param(
            [
                f'x{{dp_rank="{dp}",tp_rank="{2 * dp + tp}",moe_ep_rank="{tp}"}} {dp + 1}'
                for dp in (0, 1)
                for tp in (1, 0)
            ],
            3.0,
            id="one-rank-of-each-dp-rank",
        ),
        pytest.param(
            ['x{priority=""} 5', 'x{priority="1"} 3', 'x{priority="2"} 2'],
            5.0,
            id="the-empty-priority-is-the-total",
        ),
        pytest.param(["x 5", 'x{priority="1"} 3'], 5.0, id="no-priority-is-the-total"),
        pytest.param(
            ['x{priority="1"} 3', 'x{priority="2"} 2'],
            5.0,
            id="priorities-without-total-are-summed",
        ),
        pytest.param(
            [
                'x{dp_rank="0",priority=""} 5',
                'x{dp_rank="0",priority="1"} 5',
                'x{dp_rank="1",priority="1"} 2',
            ],
            7.0,
            id="a-total-speaks-for-its-own-dp-rank-only",
        ),
        pytest.param(
            ["# TYPE x gauge", 'x{pid="1"} 4', 'x{pid="2"} 0'], 4.0, id="largest-of-gauge-processes"
        ),
        pytest.param(
            ["# TYPE x counter", 'x{pid="1"} 4', 'x{pid="2"} 1'], 5.0, id="counter-processes-add-up"
        ),
        pytest.param(
            ["# TYPE x gauge", 'x{pid="1",tp_rank="0"} 4', 'x{pid="2",tp_rank="1"} 6'],
            4.0,
            id="a-process-of-another-rank-does-not-count",
        ),
        pytest.param(["x 1", "x 2"], 2.0, id="the-later-of-equal-series"),
        pytest.param(["x NaN"], None, id="only-nan"),
        pytest.param(["x_created 1700000000"], None, id="created-is-no-total"),
        pytest.param(['x{a="1"} +Inf', 'x{a="2"} -Inf'], None, id="opposite-infinities"),
        pytest.param(["x 0"], 0.0, id="zero-is-a-figure"),
    ],
)
def test_total_counts_nothing_twice(lines: list[str], expected: float | None) -> None:
    assert total(parsed(*lines), "x") == expected


@pytest.mark.parametrize(
    ("label", "one", "other"),
    [
        pytest.param("pid", "1", "2", id="processes"),
        pytest.param("priority", "", "1", id="requests-with-and-without-priority"),
        pytest.param("cache_source", "total", "device", id="cached-with-and-without-detail"),
    ],
)
@pytest.mark.parametrize("first_line", ["# TYPE x_total counter", "# untyped"])
def test_series_of_a_counter_add_up(first_line: str, label: str, one: str, other: str) -> None:
    exposition = parsed(
        first_line, f'x_total{{{label}="{one}"}} 4', f'x_total{{{label}="{other}"}} 1'
    )
    assert total(exposition, "x_total") == 5.0


@pytest.mark.parametrize("name", ["sglang:x", "sglang_x"])
def test_a_metric_is_found_in_either_spelling(name: str) -> None:
    assert total(parsed("sglang:x 1"), name) == 1.0
    assert total(parsed("sglang_x 1"), name) == 1.0


def test_by_label_keeps_its_values_apart_and_counts_nothing_twice() -> None:
    exposition = parsed(
        *(f'x{{dp_rank="{dp}",tp_rank="{tp}"}} {10 * dp + tp}' for dp in (0, 1) for tp in (0, 1)),
        "x 99",
    )
    assert by_label(exposition, "x", "dp_rank") == {"0": 0.0, "1": 10.0}
    assert by_label(exposition, "x", "tp_rank") == {"0": 10.0, "1": 12.0}
    assert by_label(exposition, "absent", "dp_rank") == {}


def test_by_priority_tells_the_total_and_its_parts() -> None:
    exposition = parsed('x{priority=""} 5', 'x{priority="1"} 3', 'x{priority="2"} 2')
    assert by_label(exposition, "x", "priority") == {"": 5.0, "1": 3.0, "2": 2.0}


@pytest.mark.parametrize(
    ("first", "second", "expected"),
    [
        pytest.param(["x 1"], ["x 4"], Change(1, 4, 3), id="rose"),
        pytest.param(["x 4"], ["x 4"], Change(4, 4, 0), id="stood-still"),
        pytest.param(["x 4"], ["x 1"], Change(4, 1, None), id="fell"),
        pytest.param(
            ['x{d="0"} 5', 'x{d="1"} 5'],
            ['x{d="0"} 1', 'x{d="1"} 50'],
            Change(10, 51, None),
            id="one-of-two-fell",
        ),
        pytest.param(
            ['x{d="0"} 5', 'x{d="1"} 5'], ['x{d="1"} 50'], Change(10, 50, None), id="one-is-gone"
        ),
        pytest.param(
            ['x{d="0"} 5'], ['x{d="0"} 6', 'x{d="1"} 2'], Change(5, 8, 3), id="one-is-new"
        ),
        pytest.param(
            ['x{tp_rank="0"} 5', 'x{tp_rank="1"} 5'],
            ['x{tp_rank="1"} 6'],
            Change(5, 6, 1),
            id="another-rank-speaks",
        ),
        pytest.param([], ["x 4"], None, id="absent-before"),
        pytest.param(["x 4"], ["x NaN"], None, id="nan-after"),
        pytest.param(["x 4"], ["x +Inf"], None, id="infinite"),
    ],
)
def test_counter_change(first: list[str], second: list[str], expected: Change | None) -> None:
    assert counter_change(parsed(*first), parsed(*second), "x") == expected


def test_a_scrape_that_was_cut_short_proves_no_restart() -> None:
    cut = parse(b'x{d="0"} 5\nx{d="1"} 5\n', max_samples=1)
    whole = parse(b'x{d="0"} 5\nx{d="1"} 5\n')
    assert counter_change(whole, cut, "x") is None
    assert counter_change(cut, whole, "x") is None


# --- cases


def test_tricky_values_are_all_kept() -> None:
    exposition = read("tricky_values.prom")
    (rate,) = exposition.samples["sglang:cache_hit_rate"]
    assert len(every(exposition)) == 22
    assert (exposition.problems, exposition.truncated) == ((), False)
    assert rate.labels == {
        "model_name": 'team "blue"\\x',
        "note": "line1\nline2",
        "lang": "模型 é",
    }
    assert total(exposition, "sglang:token_usage") == 0.97
    assert exposition.samples["sglang:token_usage"][0].labels["model_name"] == "acme/m}1"
    assert total(exposition, "sglang:fwd_occupancy") is None
    assert total(exposition, "sglang:prompt_tokens_total") == 8128902.0


def test_frozen_counters_stand_still_and_a_restart_is_no_negative_rate() -> None:
    t0, t60, t180 = (read(f"frozen_{when}.prom") for when in ("t0", "t60", "t180"))
    for name in ("sglang:generation_tokens_total", "sglang:prompt_tokens_total"):
        still, restarted = counter_change(t0, t60, name), counter_change(t60, t180, name)
        assert still is not None
        assert still.difference == 0.0
        assert restarted is not None
        assert restarted.difference is None
    assert total(t60, "sglang:num_running_reqs") == 2.0


# --- hostile files


@pytest.mark.parametrize(
    ("name", "values", "problem_count"),
    [
        ("tricky_valid.prom", [3, 4, math.nan, math.inf, 5, 7, 2, 9, -math.inf], 1),
        ("bad_escape.prom", [3], 2),
        ("one_line_no_newline.prom", [3], 0),
        ("crlf_nul_invalid_utf8.prom", [1, 2, 3], 1),
        ("html_in_labels.prom", [1], 0),
    ],
)
def test_hostile_text_keeps_the_valid_and_counts_the_bad(
    name: str, values: list[float], problem_count: int
) -> None:
    exposition = read(name)
    assert [repr(one.value) for one in every(exposition)] == [repr(float(v)) for v in values]
    assert len(exposition.problems) == problem_count


def test_invalid_utf8_becomes_the_replacement_character() -> None:
    assert read("crlf_nul_invalid_utf8.prom").samples["sglang:b"][0].labels == {"m": "\ufffd\ufffd"}


@pytest.mark.parametrize(
    ("text", "sample_count"),
    [
        pytest.param(b"a{" + b"a" * 2_000_000 + b"} 1\n", 0, id="label-without-value"),
        pytest.param(b'x 1\nx{a="' + b"y" * 10_000_000 + b'"} 1', 2, id="long-value"),
        pytest.param(b'x 1\nx{a="' + b"\\n" * 300_000 + b'"} 1', 2, id="escapes"),
        pytest.param(b'x 1\nx{a="' + b"\\" * 1_000_001, 1, id="backslashes"),
        pytest.param(b"x 1\nx{" + b"} " * 500_000, 1, id="braces"),
        pytest.param(b"x 1\nx{" + b'a="",' * 200_000 + b"} 1", 1, id="labels"),
        pytest.param(b"x " + b"1" * 2_000_000, 0, id="digits"),
        pytest.param(b"x" + b" " * 2_000_000 + b"y", 0, id="blanks"),
    ],
)
def test_a_line_of_megabytes_is_read_in_linear_time(text: bytes, sample_count: int) -> None:
    started = time.process_time()
    exposition = parse(text)
    # Anything quadratic would take many minutes; a busy machine needs well under a second.
    assert time.process_time() - started < 5
    assert len(every(exposition)) == sample_count
    assert all(len(problem) < 300 for problem in exposition.problems)


@pytest.mark.slow
def test_a_million_series_are_cut_and_said() -> None:
    path = SHARED / "attacks/prom/series_1M.prom.gz"
    if not path.is_file():
        pytest.skip("../shared/attacks is not here: the million series are too large to copy")
    exposition = parse(gzip.decompress(path.read_bytes()))
    assert exposition.truncated
    assert len(every(exposition)) == 200_000


# --- an independent parser


@pytest.mark.skipif(not CAPTURES, reason="../shared/captures is not here: no real scrapes to read")
@pytest.mark.parametrize("path", CAPTURES, ids=lambda path: path.parent.name)
def test_real_scrapes_read_as_prometheus_client_reads_them(path: Path) -> None:
    text = path.read_bytes()
    families = list(text_string_to_metric_families(text.decode()))
    theirs = Counter(
        comparable(one.name, one.labels, one.value) for family in families for one in family.samples
    )
    exposition = parse(text)
    ours = Counter(comparable(one.name, dict(one.labels), one.value) for one in every(exposition))
    assert ours == theirs
    assert (exposition.problems, exposition.truncated) == ((), False)
    assert set(exposition.types.values()) <= {"gauge", "counter", "histogram"}


# --- properties

_LABEL_NAMES = st.from_regex(r"[a-zA-Z_][a-zA-Z0-9_]{0,8}", fullmatch=True)
_TEXT = st.text(st.characters(exclude_categories=["Cs"]), max_size=12)
_SAMPLES = st.builds(
    Sample,
    name=st.sampled_from(["x", "sglang:x", "_y:"])
    | st.from_regex(r"[a-zA-Z_:][a-zA-Z0-9_:]{0,8}", fullmatch=True),
    labels=st.dictionaries(_LABEL_NAMES, _TEXT, max_size=4),
    value=st.floats(),
)


def rendered(sample: Sample, ending: str) -> str:
    def escaped(value: str) -> str:
        return value.replace("\\", "\\\\").replace("\n", "\\n").replace('"', '\\"')

    labels = ",".join(f'{name}="{escaped(value)}"' for name, value in sample.labels.items())
    return f"{sample.name}{{{labels}}} {sample.value!r}{ending}\n"


@settings(deadline=None)
@given(
    st.lists(
        st.tuples(_SAMPLES, st.sampled_from(["", "\r", " 17", ' # {t="} 5"} 0.5'])), max_size=8
    )
)
def test_what_is_rendered_is_read_back(written: list[tuple[Sample, str]]) -> None:
    text = "".join(rendered(sample, ending) for sample, ending in written)
    exposition = parse(text.encode())
    assert exposition.problems == ()
    assert Counter(comparable(s.name, dict(s.labels), s.value) for s in every(exposition)) == (
        Counter(comparable(s.name, dict(s.labels), s.value) for s, _ in written)
    )


_NOISE = st.text(st.sampled_from(list('x{}="\\,n #1a\t\r')), max_size=24)


@settings(deadline=None, max_examples=300)
@given(_NOISE)
def test_a_line_reads_the_same_whether_or_not_its_name_was_seen(noise: str) -> None:
    line = f"x{{{noise}\n".encode()
    first, again = parse(line), parse(b"x 0\n" + line)
    assert list(first.samples.get("x", ())) == list(again.samples["x"])[1:]
    assert len(first.problems) == len(again.problems)


@settings(deadline=None)
@given(st.binary(max_size=200) | st.lists(_NOISE).map(lambda lines: "\n".join(lines).encode()))
def test_any_bytes_give_an_exposition_and_any_exposition_answers(text: bytes) -> None:
    exposition = parse(text)
    for name in (*exposition.samples, "absent"):
        total(exposition, name)
        by_label(exposition, name, "a")
        counter_change(exposition, exposition, name)
        window(exposition, exposition, name.removesuffix("_count"))


@settings(deadline=None)
@given(st.lists(_SAMPLES, max_size=8), st.sampled_from(["x", "sglang:x", "sglang_x"]))
def test_wanted_families_read_as_among_all(samples: list[Sample], family: str) -> None:
    text = "".join(rendered(sample, "") for sample in samples).encode()
    everything, some = parse(text).samples, parse(text, wanted=[family]).samples
    asked = {"sglang:x", "sglang_x"} if family != "x" else {"x"}
    assert some.keys() <= everything.keys()
    for name in everything.keys() & asked:
        assert repr(some[name]) == repr(everything[name])


def test_ranks_that_tell_infinity_are_left_out() -> None:
    read = parse(b'x{dp_rank="0"} +Inf\nx{dp_rank="1"} 2\nx{dp_rank="2"} 1e308\n')

    assert by_label(read, "x", "dp_rank") == {"1": 2.0, "2": 1e308}
    assert total(read, "x") is None
