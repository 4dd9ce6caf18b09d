"""From the document of a dump to claims and a sentence: never more than its ground."""

import re
from pathlib import Path
from typing import Any

import pytest

from app.domain.diagnosis import diagnose
from app.domain.dump_findings import dump_findings
from app.domain.dump_words import summed_up
from app.domain.findings import Conclusion
from app.domain.urgency import Rank, judge

DOCUMENT = Path(__file__).parents[2] / "docs" / "signals.md"
CRASH: dict[str, Any] = {
    "kind": "crash dump",
    "requests_total": 120,
    "finished": 108,
    "unfinished": 12,
    "aborted": 0,
    "sglang_version": "0.5.9",
    "suspects": [],
    "problems": [],
    "truncated": False,
}
FIRST = {"index": 7, "rid": "a", "why": "The only request with an image."}


def concluded(**given: Any) -> Conclusion:
    return dump_findings({**CRASH, **given}, artifact_id=40, name="crash.pkl")


def test_what_was_in_flight_is_established_and_noted() -> None:
    [claim] = concluded().as_json()["claims"]
    assert claim == {
        "id": "requests-in-flight",
        "says": "12 of 120 requests were unfinished when crash.pkl was written.",
        "status": "established",
        "level": "note",
        "evidence": [{"artifact": "artifact 40", "at": "unfinished", "value": 12}],
    }


@pytest.mark.parametrize(
    ("trigger", "status", "says"),
    [
        pytest.param("supported", "supported", "is most likely the trigger", id="supported"),
        pytest.param("hypothesis", "hypothesis", "may be the trigger", id="hypothesis"),
    ],
)
def test_a_suspect_claims_as_much_as_its_status(trigger: str, status: str, says: str) -> None:
    conclusion = concluded(suspects=[{**FIRST, "trigger": trigger}])
    claim = conclusion.as_json()["claims"][1]
    assert (claim["id"], claim["status"]) == ("suspect-request", status)
    assert claim["says"] == f"Request 7 of crash.pkl {says}: The only request with an image."
    assert claim["evidence"] == [{"artifact": "artifact 40", "at": "request 7", "value": "a"}]
    assert [one.text for one in conclusion.settles] == [
        "Replay request 7 of crash.pkl against a server that serves nobody."
    ]


def test_a_suspect_that_is_only_to_be_looked_at_claims_nothing() -> None:
    conclusion = concluded(suspects=[FIRST])
    assert [one.id for one in conclusion.claims] == ["requests-in-flight"]
    assert conclusion.settles == ()


@pytest.mark.parametrize(
    "given",
    [
        pytest.param({"kind": "request dump"}, id="a-request-dump"),
        pytest.param({"kind": "requests"}, id="a-file-of-requests"),
        pytest.param({"unfinished": 0}, id="nothing-in-flight"),
        pytest.param({"unfinished": None}, id="not-known"),
    ],
)
def test_nothing_is_claimed_of_what_shows_nothing(given: dict[str, Any]) -> None:
    assert concluded(**given).claims == ()


def test_a_file_that_cannot_be_read_is_an_open_question() -> None:
    [claim] = concluded(kind="unreadable", problems=["Truncated: it ends at byte 9."]).claims
    assert (claim.id, claim.status) == ("dump-unreadable", "unknown")
    assert claim.says == "crash.pkl cannot be read: Truncated: it ends at byte 9."


def test_a_dump_decides_neither_class_nor_urgency() -> None:
    found = [concluded(suspects=[{**FIRST, "trigger": "supported"}]).as_json()]
    assert diagnose([], found)["problem_class"] is None
    assert judge([], (), found).rank is Rank.UNKNOWN


def test_every_rule_is_documented() -> None:
    documented = set(re.findall(r"^\| `([a-z-]+)` \|", DOCUMENT.read_text(), re.MULTILINE))
    assert {"requests-in-flight", "suspect-request", "dump-unreadable"} <= documented


@pytest.mark.parametrize(
    ("given", "says"),
    [
        pytest.param(
            {}, "Crash dump of SGLang 0.5.9: 120 requests, 12 unfinished.", id="a-crash-dump"
        ),
        pytest.param(
            {"kind": "request dump", "unfinished": 0, "requests_total": 1, "aborted": 1},
            "Request dump of SGLang 0.5.9: 1 request, 1 aborted.",
            id="a-request-dump",
        ),
        pytest.param(
            {"kind": "requests", "sglang_version": None, "unfinished": 0, "requests_total": 1200},
            "File: 1,200 requests.",
            id="a-file-of-requests",
        ),
        pytest.param(
            {"kind": "unreadable", "problems": ["The file is empty."], "requests_total": 0},
            "Cannot be read: The file is empty.",
            id="unreadable",
        ),
        pytest.param(
            {"kind": "unreadable", "problems": ["Truncated."], "requests_total": 3},
            "Cannot be read: Truncated. 3 requests could be read before that.",
            id="salvaged",
        ),
    ],
)
def test_a_dump_is_summed_up_in_a_sentence(given: dict[str, Any], says: str) -> None:
    assert summed_up({**CRASH, **given}) == says
