import math
from pathlib import Path

import pytest

from app.domain.exposition import Exposition, parse
from app.domain.histograms import Window, quantile, window

DATA = Path(__file__).parents[1] / "data" / "exposition"
TTFT = "sglang:time_to_first_token_seconds"
E2E = "sglang:e2e_request_latency_seconds"


def scrape(counts: dict[str, float], total: float, *, count: float | None = None) -> Exposition:
    """A histogram ``h`` with cumulative *counts* by bound; its count is the last of them."""
    last = list(counts.values())[-1] if count is None else count
    lines = [f'h_bucket{{le="{le}"}} {value}' for le, value in counts.items()]
    return joined(*lines, f"h_count {last}", f"h_sum {total}")


def joined(*texts: str) -> Exposition:
    exposition = parse("\n".join(texts).encode())
    assert exposition.problems == ()
    return exposition


def of(*buckets: tuple[float, float]) -> Window:
    return Window(round(buckets[-1][1]), None, buckets, ())


def test_a_window_is_the_difference_of_two_scrapes() -> None:
    first = scrape({"1": 10, "+Inf": 10}, 5)
    second = scrape({"1": 12, "+Inf": 14}, 17)
    assert window(first, second, "h") == Window(
        n=4, mean=3.0, buckets=((1.0, 2.0), (math.inf, 4.0)), problems=()
    )


def test_without_a_first_scrape_it_is_the_life_of_the_process() -> None:
    lifetime = window(None, scrape({"1": 12, "+Inf": 14}, 7), "h")
    assert lifetime == Window(14, 0.5, ((1.0, 12.0), (math.inf, 14.0)), ())


def test_no_observation_means_no_mean() -> None:
    still = scrape({"1": 12, "+Inf": 14}, 7)
    assert window(still, still, "h") == Window(0, None, ((1.0, 0.0), (math.inf, 0.0)), ())
    assert window(None, scrape({"+Inf": 0}, 0), "h") == Window(0, None, ((math.inf, 0.0),), ())


@pytest.mark.parametrize(
    ("first", "second"),
    [
        pytest.param(parse(b""), scrape({"+Inf": 3}, 1), id="absent-before"),
        pytest.param(scrape({"+Inf": 3}, 1), parse(b""), id="absent-after"),
        pytest.param(scrape({"+Inf": 3}, 1), scrape({"+Inf": 2}, 1), id="count-fell"),
        pytest.param(scrape({"+Inf": 3}, 9), scrape({"+Inf": 4}, 1), id="sum-fell"),
        pytest.param(
            scrape({"1": 3, "+Inf": 3}, 1), scrape({"1": 1, "+Inf": 4}, 2), id="bucket-fell"
        ),
        pytest.param(
            scrape({"+Inf": 3}, 1), parse(b"h_count 4\nh_sum 2\n", max_samples=1), id="cut-short"
        ),
        pytest.param(None, parse(b"h_count +Inf\n"), id="infinite"),
        pytest.param(None, parse(b"h_count -4\n"), id="negative"),
        pytest.param(None, parse(b"h_count NaN\n"), id="not-a-number"),
    ],
)
def test_what_cannot_be_known_is_none(first: Exposition | None, second: Exposition) -> None:
    assert window(first, second, "h") is None


@pytest.mark.parametrize("total", ["NaN", "+Inf"])
def test_a_sum_that_is_no_figure_leaves_the_mean_open(total: str) -> None:
    answer = window(None, joined("h_count 4", f"h_sum {total}"), "h")
    assert answer == Window(4, None, (), ())


def test_a_count_alone_is_still_a_window() -> None:
    assert window(None, joined("h_count 4"), "h") == Window(4, None, (), ())


def test_the_last_digits_of_a_sum_are_no_restart() -> None:
    answer = window(scrape({"+Inf": 3}, 1000.0000000000002), scrape({"+Inf": 3}, 1000.0), "h")
    assert answer is not None
    assert (answer.n, answer.mean) == (0, None)


def test_where_keeps_one_stage_and_the_rest_is_added_up() -> None:
    both = joined(
        *(
            f'h_count{{stage="{s}",tp_rank="{r}"}} {n}'
            for s, n in (("a", 2), ("b", 5))
            for r in "01"
        ),
        *(f'h_sum{{stage="{s}",tp_rank="{r}"}} {n}' for s, n in (("a", 4), ("b", 5)) for r in "01"),
    )
    assert window(None, both, "h", where={"stage": "a"}) == Window(2, 2.0, (), ())
    assert window(None, both, "h", where={"stage": "c"}) is None
    whole = window(None, both, "h")
    assert whole is not None
    assert whole.n == 7


def test_bounds_written_differently_are_one_bucket() -> None:
    exposition = joined(
        'h_bucket{le="1",m="a"} 2',
        'h_bucket{le="1.0",m="b"} 3',
        'h_count{m="a"} 2',
        'h_count{m="b"} 3',
    )
    answer = window(None, exposition, "h")
    assert answer is not None
    assert answer.buckets == ((1.0, 5.0),)


@pytest.mark.parametrize(
    ("exposition", "problem"),
    [
        pytest.param(
            scrape({"1": 3}, 0, count=0),
            "h: the count is 0, but the bucket up to 1 holds 3",
            id="count-0",
        ),
        pytest.param(
            scrape({"1": 3, "+Inf": 5}, 9, count=40),
            "h: the count is 40, but the buckets hold 5",
            id="count-differs",
        ),
        pytest.param(
            scrape({"1": 30, "2": 20, "+Inf": 40}, 9),
            "h: a bucket holds fewer than one below it",
            id="not-cumulative",
        ),
        pytest.param(
            scrape({"<b>": 30, "+Inf": 40}, 9),
            "h: a bucket's bound is not a number: '<b>'",
            id="bound-unreadable",
        ),
    ],
)
def test_figures_that_contradict_each_other_are_a_problem_and_give_no_quantile(
    exposition: Exposition, problem: str
) -> None:
    answer = window(None, exposition, "h")
    assert answer is not None
    assert answer.problems == (problem,)
    assert quantile(answer, 0.5) is None


@pytest.mark.parametrize(
    ("answer", "q", "expected"),
    [
        pytest.param(of((1, 100), (math.inf, 100)), 0.5, 0.5, id="first-bucket-begins-at-0"),
        pytest.param(
            of((1, 40), (3, 80), (math.inf, 100)), 0.6, 2.0, id="linear-inside-its-bucket"
        ),
        pytest.param(of((1, 40), (3, 80), (math.inf, 100)), 0.4, 1.0, id="on-a-bound"),
        pytest.param(of((1, 40), (3, 80), (math.inf, 100)), 0.9, {"over": 3}, id="above-the-last"),
        pytest.param(of((1, 0), (3, 80), (math.inf, 80)), 0.0, 1.0, id="empty-first-bucket"),
        pytest.param(of((1, 19), (math.inf, 19)), 0.5, None, id="fewer-than-20"),
        pytest.param(of((1, 20), (math.inf, 20)), 0.5, 0.5, id="exactly-20"),
        pytest.param(of((math.inf, 100)), 0.5, None, id="no-finite-bound"),
        pytest.param(of((-2, 50), (2, 100)), 0.25, -2.0, id="negative-bound"),
    ],
)
def test_quantile(answer: Window, q: float, expected: float | dict[str, float] | None) -> None:
    assert quantile(answer, q) == (
        pytest.approx(expected) if isinstance(expected, float) else expected
    )


def test_a_window_without_buckets_has_no_quantile() -> None:
    assert quantile(Window(100, 1.0, (), ()), 0.5) is None


@pytest.mark.parametrize("q", [-0.1, 99, math.nan])
def test_a_quantile_is_a_share(q: float) -> None:
    with pytest.raises(ValueError, match="share from 0 to 1"):
        quantile(of((1, 100)), q)


def test_tricky_values_give_exactly_these_figures() -> None:
    exposition = parse((DATA / "tricky_values.prom").read_bytes())
    first_token = window(None, exposition, TTFT)
    assert first_token is not None
    assert (first_token.n, first_token.mean, first_token.problems) == (100, 6.125, ())
    assert quantile(first_token, 0.99) == {"over": 10.0}
    whole = window(None, exposition, E2E)
    assert whole is not None
    assert (whole.n, whole.mean) == (0, None)
    assert whole.problems == (f"{E2E}: the count is 0, but the bucket up to 1 holds 3",)
    assert window(None, exposition, "absent") is None
