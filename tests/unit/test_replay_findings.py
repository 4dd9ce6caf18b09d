"""From the document of a replay to claims, offers and a recipe: never more than its ground."""

import re
from pathlib import Path
from typing import Any

import pytest

from app.domain.diagnosis import diagnose
from app.domain.findings import is_failing
from app.domain.playbook import ReplayRequests, is_intrusive, offers
from app.domain.replay.aftermath import USUAL_FOLDER, recipe
from app.domain.replay_findings import Sent, replay_findings

SIGNALS = Path(__file__).parents[2] / "docs" / "signals.md"
DIED: dict[str, Any] = {
    "says": "The target went away after request 57, while 3 were in flight.",
    "last_sent": 57,
    "in_flight": [51, 55, 57],
    "certain": True,
}


def _document(verdict: str, **more: Any) -> dict[str, Any]:
    return {"verdict": verdict, "why": "Because.", "status": "supported", "sent": 58,
            "symptom": "crash", **more}  # fmt: skip


def _claims(verdict: str, *deaths: tuple[int, dict[str, Any]], **more: Any) -> list[dict[str, Any]]:
    sent = Sent("clean-a", _document(verdict, **more), 40, deaths)
    found: list[dict[str, Any]] = replay_findings(7, [sent]).as_json()["claims"]
    return found


@pytest.mark.parametrize(
    ("verdict", "rule", "status"),
    [
        pytest.param("reproduced", "replay-reproduced", "supported", id="reproduced"),
        pytest.param("reproduced sometimes", "replay-reproduced", "supported", id="sometimes"),
        pytest.param("not reproduced", "replay-not-reproduced", "supported", id="not"),
        pytest.param("inconclusive", "replay-inconclusive", "unknown", id="open"),
    ],
)
def test_a_verdict_is_one_claim_with_its_why_and_its_outcomes(
    verdict: str, rule: str, status: str
) -> None:
    [claim] = _claims(verdict)

    assert (claim["id"], claim["status"]) == (rule, status)
    assert claim["says"].endswith("Because.")
    assert "replay 7 on clean-a" in claim["says"]
    assert claim["evidence"][0]["artifact"] == "artifact 40"


def test_a_death_names_the_request_and_those_in_flight() -> None:
    died, verdict = _claims("reproduced", (1, DIED))

    assert died["says"] == (
        "In replay 7 on clean-a: The target went away after request 57, while 3 were in flight."
        " In flight: 51, 55, 57."
    )
    assert died["status"] == "established"
    assert verdict["id"] == "replay-reproduced"


def test_a_death_that_may_have_been_the_network_is_not_established() -> None:
    died, _ = _claims("inconclusive", (1, {**DIED, "certain": False}))
    assert died["status"] == "supported"


def test_many_in_flight_are_counted_not_listed() -> None:
    died, _ = _claims("reproduced", (1, {**DIED, "in_flight": list(range(40))}))
    assert died["says"].endswith("In flight: 0, 1, 2, 3, 4 and 35 more.")


def test_what_a_replay_kills_is_no_server_of_the_incident() -> None:
    found = replay_findings(7, [Sent("clean-a", _document("reproduced"), 40, [(1, DIED)])])
    assert not is_failing([found.as_json()])
    assert found.problem_class is None


def test_what_a_replay_shows_is_the_strongest_signal_where_nothing_else_tells() -> None:
    found = replay_findings(7, [Sent("clean-a", _document("reproduced"), 40)]).as_json()
    told = diagnose([], [found])
    assert told["strongest_signal"]["id"] == "replay-reproduced"
    assert told["next_steps"][0]["text"].startswith("Reduce the requests of replay 7")


def test_every_rule_of_a_replay_is_documented() -> None:
    documented = set(re.findall(r"^\| `([a-z-]+)` \|", SIGNALS.read_text(), re.MULTILINE))
    rules = {"replay-reproduced", "replay-not-reproduced", "replay-inconclusive"}
    assert rules | {"replay-target-died"} <= documented


def test_a_recipe_keeps_the_folder_and_flags_that_the_server_had() -> None:
    told = recipe("0.5.23", {"crash_dump_folder": "/var/dumps/", "enable_metrics": True})

    assert told["exports"]["CUDA_COREDUMP_FILE"] == "/var/dumps/%h/core.cuda.%t.%p"
    assert told["appears_at"] == "/var/dumps/<host>/core.cuda.<seconds since 1970>.<pid>"
    assert told["flags"] == []
    assert "the same build (0.5.23)" in told["says"]


@pytest.mark.parametrize(
    "folder",
    [
        pytest.param(None, id="none"),
        pytest.param("dumps", id="relative"),
        pytest.param(7, id="number"),
        pytest.param("/", id="root"),
    ],
)
def test_a_recipe_for_a_server_without_a_usable_folder_has_the_usual_one(folder: object) -> None:
    told = recipe(None, {"crash_dump_folder": folder})
    assert told["exports"]["CUDA_COREDUMP_FILE"].startswith(f"{USUAL_FOLDER}/%h/")
    assert "is not known" in told["warnings"][0]


def test_a_replay_is_offered_suspects_first_and_only_with_a_clean_target() -> None:
    dumps = [(3, "all.pkl", 0), (2, "crash.pkl", 2), (1, "one.pkl", 1)]

    assert offers(dumps, []) == ()
    made = offers(dumps, [(9, "clean-a"), (8, "clean-b")])
    assert [(one.dump_id, one.target_id, one.select) for one in made] == [
        (2, 9, "suspect"), (1, 9, "suspect"), (3, 9, ""),
    ]  # fmt: skip
    assert made[0].says == "Replay the suspects of crash.pkl to clean-a, which serves nobody."


def test_sending_is_never_repeated_without_consent_and_looking_is() -> None:
    assert is_intrusive(ReplayRequests(1))
    assert not is_intrusive(ReplayRequests(1, send=False))
