"""How urgent an incident is, by its bundles."""

from typing import Any

import pytest

from app.domain.bundle import summarise
from app.domain.finder import Filter, read_filter
from app.domain.urgency import Rank, finding, judge, rank_of, strongest
from tests import situations
from tests.bundles import answered as answer
from tests.bundles import bundle, loads, metrics, rank, silent


def summary(verdict: str, **more: Any) -> dict[str, Any]:
    return {"health": {"verdict": verdict, "says": "As it is."}, **more}


TROUBLE = {"id": "queue-build-up", "says": "It queues.", "status": "supported", "level": "warn"}


@pytest.mark.parametrize(
    ("verdict", "expected"),
    [
        ("wedged", Rank.FAILING),
        ("gone", Rank.FAILING),
        ("false green", Rank.FAILING),
        ("unknown", Rank.UNKNOWN),
        ("a word of tomorrow", Rank.UNKNOWN),
        ("false red", Rank.SLOW),
        ("starting", Rank.SLOW),
        ("healthy", Rank.QUIET),
        ("busy", Rank.QUIET),
    ],
)
def test_a_verdict_has_its_rank(verdict: str, expected: Rank) -> None:
    assert rank_of(summary(verdict)) is expected


def test_no_evidence_is_unknown_and_not_quiet() -> None:
    assert rank_of(None) is Rank.UNKNOWN
    assert judge([]).rank is Rank.UNKNOWN
    assert judge([]).strongest is None


def test_a_server_that_serves_with_trouble_is_slow() -> None:
    assert rank_of(summary("busy", strongest_signal=TROUBLE)) is Rank.SLOW
    assert finding(summary("busy", strongest_signal=TROUBLE), "decode-a") == "It queues"


def test_the_worst_claim_is_the_strongest_and_evidence_decides_among_equals() -> None:
    claims = [
        {"id": "a", "level": "note", "status": "established"},
        {"id": "b", "level": "bad", "status": "hypothesis"},
        {"id": "c", "level": "bad", "status": "established"},
        {"id": "d", "level": "odd", "status": "odd"},
    ]

    found = strongest({"signals": claims})

    assert found is not None
    assert found["id"] == "c"


def test_the_address_that_is_worst_off_speaks() -> None:
    good = summarise(bundle(*situations.healthy()))
    bad = summarise(bundle(*situations.gone()))

    judged = judge([good, bad])

    assert (judged.verdict, judged.rank, judged.about) == ("gone", Rank.FAILING, bad)


def test_where_no_rule_speaks_the_verdict_itself_is_the_claim() -> None:
    judged = judge([summarise(bundle(*situations.gone()))])

    assert judged.strongest is not None
    assert judged.strongest["says"].startswith("Every connection was refused")


def test_two_bundles_between_which_work_stood_still_are_a_wedge() -> None:
    def look(after_seconds: float) -> dict[str, Any]:
        at = after_seconds + 2.0
        stuck = rank(num_running_reqs=4, at=at, age=0.01)
        return summarise(
            bundle(
                silent("server_info", at=after_seconds + 1.0),
                answer("loads_all_1", loads(stuck, at=at), at=at),
                answer("metrics_1", metrics(generation_tokens_total=5, num_requests_total=3)),
                after_seconds=after_seconds,
            )
        )

    earlier, later = look(0.0), look(90.0)
    judged = judge([later], [earlier])

    assert rank_of(later) is not Rank.FAILING
    assert (judged.verdict, judged.rank) == ("wedged", Rank.FAILING)
    assert judged.problem_class == "hang/timeout"


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        pytest.param("", Filter(), id="nothing"),
        pytest.param("class:Hang", Filter(problem_class="hang"), id="class"),
        pytest.param("sev:1", Filter(severity="sev1"), id="severity by digit"),
        pytest.param("sev:sev2 state:open", Filter(severity="sev2", state="open"), id="two"),
        pytest.param("#142", Filter(number=142), id="number"),
        pytest.param("host:gpu TTFT", Filter(words=("host:gpu", "TTFT")), id="words"),
        pytest.param("class:", Filter(words=("class:",)), id="a prefix alone is a word"),
        pytest.param("9" * 30, Filter(words=("9" * 30,)), id="no number of ours"),
        pytest.param("٣", Filter(words=("٣",)), id="digits of another script"),
    ],
)
def test_a_filter_is_read_as_typed(text: str, expected: Filter) -> None:
    assert read_filter(text) == expected
