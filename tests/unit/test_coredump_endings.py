from dataclasses import replace

import pytest

from app.agent.coredump.endings import Limits, Look, Moment, judge
from app.domain.coredump_file import Shape

LIMITS = Limits()
WHOLE = Shape("complete", "all of its 9 sections are there", 1000)
PART = Shape("incomplete", "600 of at least 1000 bytes", 1000)
PACKED = Shape("gzip", "compressed, and too large to be unpacked for a check")
OPEN = Look("/d/core.7", 600, PART, writers=1)
CLOSED = replace(OPEN, writers=0)
DONE = Look("/d/core.7", 1000, WHOLE, writers=0)


def moment(look: Look | None, **changed: float | bool | None) -> Moment:
    start = Moment(look, alive=True, since_sent_seconds=1, since_growth_seconds=1)
    return replace(start, **changed)  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("seen", "state"),
    [
        pytest.param(moment(None), "sent", id="nothing-yet"),
        pytest.param(moment(None, since_sent_seconds=60), "no-file", id="nothing-came"),
        pytest.param(moment(None, alive=False), "no-file", id="died-of-it"),
        pytest.param(moment(OPEN), "growing", id="growing"),
        pytest.param(moment(replace(DONE, writers=1)), "growing", id="whole-but-still-open"),
        pytest.param(moment(OPEN, since_growth_seconds=600), "timed-out", id="stalled"),
        pytest.param(moment(OPEN, alive=False), "growing", id="a-child-writes-on"),
        pytest.param(
            moment(OPEN, alive=False, since_growth_seconds=600), "timed-out", id="a-child-stalled"
        ),
        pytest.param(moment(CLOSED), "growing", id="closed-a-moment-ago"),
        pytest.param(moment(CLOSED, since_growth_seconds=10), "truncated", id="closed-early"),
        pytest.param(moment(CLOSED, alive=False), "truncated", id="died-while-writing"),
        pytest.param(moment(DONE), "complete", id="whole-and-closed"),
        pytest.param(moment(DONE, alive=False), "complete", id="died-after-it"),
        pytest.param(moment(replace(DONE, holes=True), alive=False), "truncated", id="holes"),
        pytest.param(
            moment(replace(CLOSED, shape=PACKED), since_growth_seconds=10), "complete", id="packed"
        ),
    ],
)
def test_a_dump_is_called_what_was_seen_of_it(seen: Moment, state: str) -> None:
    verdict = judge(seen, LIMITS)
    assert (verdict.state, verdict.final) == (state, state not in ("sent", "growing"))


def test_a_growing_dump_tells_its_pace_and_what_not_to_do() -> None:
    look = replace(OPEN, size_bytes=17 * 1024**3)
    verdict = judge(moment(look, bytes_per_second=0.5 * 1024**3), LIMITS)

    assert verdict.says == "Still growing: 17.0 GiB so far, 512 MiB a second."
    assert "trigger again or end the process" in str(verdict.fix)


def test_a_full_disk_is_named_and_nothing_is_deleted() -> None:
    cut = judge(moment(CLOSED, alive=False, free_bytes=0), LIMITS)
    none = judge(moment(None, since_sent_seconds=60, free_bytes=0), LIMITS)

    assert "disk is full" in cut.says
    assert "Nothing is deleted" in str(cut.fix)
    assert "full" in none.says
    assert "rm " not in f"{cut.command}{none.command}"


def test_a_packed_dump_that_is_too_large_to_check_is_said_to_be_unchecked() -> None:
    look = replace(CLOSED, shape=PACKED)
    assert "not checked" in judge(moment(look, since_growth_seconds=10), LIMITS).says
