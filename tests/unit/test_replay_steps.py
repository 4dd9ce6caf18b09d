"""What a reduction wrote down is what it goes on from, torn or not; and what it found, in words."""

import orjson
import pytest
from hypothesis import given
from hypothesis import strategies as st

from app.domain.replay.answer_cut import most_new_tokens, with_answer_cut
from app.domain.replay.curl_script import body_files, script
from app.domain.replay.planned import Sending
from app.domain.replay.reducing import Probe
from app.domain.replay.selection import read_selection
from app.domain.replay.smallest import Found, document, says, sent_for
from app.domain.replay.steps import key, known, ranges, read, told
from app.errors import Conflict

START = {"requests": 3}


@given(st.lists(st.integers(0, 60), min_size=1, unique=True))
def test_ranges_name_the_same_requests_as_a_selection_does(indexes: list[int]) -> None:
    selection = read_selection(ranges(indexes))

    taken = [n for n in range(70) if selection.takes(n, None, None, ())]
    assert taken == sorted(indexes)


def test_neighbours_become_a_half_open_range() -> None:
    assert ranges([0, 1, 2, 7, 9, 10]) == "0:3,7,9:11"
    assert ranges([]) == ""


def test_a_verdict_is_found_again_by_what_was_tried() -> None:
    probe = Probe((0, 1, 2), {1: 5}, {2: 1})
    text = b"\n".join(
        orjson.dumps(line)
        for line in (
            {"step": "start", "of": START},
            {"step": "run", **told(probe), "says": "passes"},
            {"step": "verdict", **told(probe), "says": "fails"},
            {"step": "verdict", **told(Probe((0,))), "says": "nonsense"},
            {"step": "verdict", **told(Probe((1,))), "says": "unknown"},
        )
    )

    found = known(read(text + b'\n{"step": "verd'), START)

    assert found == {key(told(probe)): "fails"}
    assert key(told(probe)) != key(told(Probe((0, 1, 2), {1: 5})))


def test_the_steps_of_another_reduction_are_refused() -> None:
    with pytest.raises(Conflict, match="another reduction"):
        known(read(orjson.dumps({"step": "start", "of": {"requests": 4}})), START)


def sending(index: int, due: float = 0.0, **body: object) -> Sending:
    asked = {"text": "abcdef", "sampling_params": {"max_new_tokens": 64}, **body}
    return Sending(index, f"rid-{index}", due, "/generate", orjson.dumps(asked), stream=False)


def test_what_is_sent_is_cut_as_the_probe_says_and_begins_at_once() -> None:
    sendings = {one.index: one for one in (sending(3, 1.0), sending(5, 4.0), sending(7, 6.0))}

    sent = sent_for(Probe((5, 7), {5: 2}, {7: 1}), sendings)

    assert [one.due_seconds for one in sent] == [0.0, 2.0]
    assert orjson.loads(sent[0].body) == {"text": "ab", "sampling_params": {"max_new_tokens": 64}}
    assert orjson.loads(sent[1].body)["sampling_params"] == {"max_new_tokens": 1}


def test_the_document_tells_what_was_cut_and_how_sure_it_is() -> None:
    sendings = [sending(n) for n in range(4)]
    found = Found(Probe((2,), {2: 3}, {}), True, None, 12, 15, again=(1, 2), died=True)

    made = document(found, sendings, {"requests": "out.jsonl"}, ["next"])

    assert made["kept"] == [
        {
            "index": 2,
            "rid": "rid-2",
            "prompt": {"from": 6, "to": 3},
            "max_new_tokens": {"from": 64, "to": 64},
        }
    ]
    assert (made["smallest"], made["select"], made["again"]) == (1, "2", {"failed": 1, "of": 2})
    assert made["says"] == (
        "1 request of 4 brings the fault about. Sent again in the end, it failed 1 of 2 times."
        " So it comes only now and then: --trials 5, with another --out, may find fewer."
    )


@pytest.mark.parametrize(
    ("found", "says_so"),
    [
        pytest.param(
            Found(None, True, None, 1, 1),
            "4 requests did not bring the fault about.",
            id="none",
        ),
        pytest.param(
            Found(None, False, "time is up.", 0, 0),
            "4 requests did not bring the fault about so far: time is up.",
            id="not yet",
        ),
        pytest.param(
            Found(Probe((1, 2)), False, "time is up.", 9, 9, unknown=1, why_unknown="refused"),
            "2 requests of 4 bring the fault about. Perhaps fewer do: time is up."
            " 1 probe was inconclusive and counted as passing: refused.",
            id="so far",
        ),
        pytest.param(
            Found(None, True, None, 1, 2, unknown=1, why_unknown="the check ended with 125"),
            "Nobody can tell whether 4 requests bring the fault about: the check ended with 125.",
            id="nobody knows",
        ),
    ],
)
def test_what_was_not_found_is_said_too(found: Found, says_so: str) -> None:
    assert says(found, 4) == says_so


@pytest.mark.parametrize(
    ("body", "most", "cut"),
    [
        pytest.param(
            {"sampling_params": {"max_new_tokens": 9, "min_new_tokens": 5}},
            9,
            {"sampling_params": {"max_new_tokens": 2, "min_new_tokens": 2}},
            id="generate",
        ),
        pytest.param({"max_tokens": 9}, 9, {"max_tokens": 2}, id="chat"),
        pytest.param({"text": "a"}, 0, {"text": "a"}, id="not told"),
        pytest.param(
            {"sampling_params": [{"max_new_tokens": 9}]},
            0,
            {"sampling_params": [{"max_new_tokens": 9}]},
            id="a batch",
        ),
        pytest.param({"max_tokens": None}, 0, {"max_tokens": None}, id="null"),
    ],
)
def test_an_answer_is_asked_to_be_shorter(
    body: dict[str, object], most: int, cut: dict[str, object]
) -> None:
    assert most_new_tokens(body) == most
    assert with_answer_cut(body, 2) == cut


def test_a_script_sends_several_at_once_and_reads_long_bodies_from_files() -> None:
    several = [sending(1), sending(2, text="a" * 5000)]

    text = script(several, "http://127.0.0.1:30000", with_token=True, together=True)

    lines = text.splitlines()
    assert lines[-1] == "wait"
    assert 'curl -sS "$base_url"/generate' in lines[-3]
    assert lines[-2].endswith("--data-binary @request-2.json &")
    assert "$TARGET_TOKEN" in lines[-2]
    assert list(body_files(several)) == ["request-2.json"]
    one_by_one = script(several, "http://h", with_token=False, together=False)
    assert "&" not in one_by_one
    assert "TOKEN" not in one_by_one
