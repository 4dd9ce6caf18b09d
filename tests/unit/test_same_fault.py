"""What may be said of the same fault in other incidents."""

import pytest

from app.domain.same_fault import Elsewhere, SameFault, heading
from tests.make import NOON


def elsewhere(number: int, state: str = "resolved") -> Elsewhere:
    ended = NOON if state in ("resolved", "mitigated") else None
    return Elsewhere(number, 7, "topk faults", NOON, "crash", state, ended, earlier=True)


def fault(*numbers: int, more: int = 0, fingerprint: str = "a" * 16) -> SameFault:
    return SameFault(fingerprint, [elsewhere(number) for number in numbers], more)


@pytest.mark.parametrize(
    ("faults", "says"),
    [
        ([fault(12)], "The same fault is in incident 12"),
        ([fault(12, 9)], "The same fault is in 2 other incidents"),
        ([fault(12, 9, more=4)], "The same fault is in 6 other incidents"),
        (
            [fault(12), fault(12, fingerprint="b" * 16)],
            "The same fault is in incident 12",
        ),
        (
            [fault(12, more=2), fault(9, fingerprint="b" * 16)],
            "The same fault is in at least 4 other incidents",
        ),
    ],
    ids=["one", "two", "more-than-listed", "two-faults-in-one", "two-faults-not-all-listed"],
)
def test_the_heading_counts_incidents_and_never_one_twice(
    faults: list[SameFault], says: str
) -> None:
    assert heading(faults) == says


@pytest.mark.parametrize(
    ("state", "says"),
    [("resolved", "resolved"), ("mitigated", "mitigated"), ("open", "open, not over")],
)
def test_what_goes_on_is_not_called_over(state: str, says: str) -> None:
    assert elsewhere(1, state).ending == says


def test_an_incident_that_goes_on_has_no_end_in_json() -> None:
    told = SameFault("a" * 16, [elsewhere(3, "open")], 0).as_json()
    assert told["incidents"][0]["ended_at"] is None
    assert "does not prove the same cause" in told["says"]
