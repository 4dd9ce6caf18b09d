"""The living report: drafted from a diagnosis, edited by people, nothing of it ever deleted."""

from datetime import UTC, datetime
from typing import Any

import pytest

from app.domain.report import Document, draft
from app.domain.report_edits import (
    MAX_ENTRIES,
    Change,
    ChooseClass,
    Strike,
    Write,
    changed,
    field_of,
    place,
)
from app.domain.report_entries import FIELDS, NOT_DECIDED
from app.domain.report_parts import Input, Source, Subject
from app.errors import NotFound, Rejected

NOON = datetime(2026, 11, 30, 12, tzinfo=UTC)
SUBJECT = Subject(142, "decode-a hangs", "sev1", "open", NOON, targets=("decode-a",))
STALE = {
    "id": "snapshot-stale",
    "says": "The load snapshot of DP0 is 72 s old.",
    "status": "established",
    "evidence": [{"artifact": "loads_all_1.json", "at": "/loads/0/timestamp", "value": 72}],
}
SOURCE = Source(219, "decode-a", "/bundles/219", NOON, {"signals": [STALE], "load": {"totals": {}}})


def diagnosis(**given: Any) -> dict[str, Any]:
    [signal] = SOURCE.placed["signals"]
    return {
        "problem_class": "hang/timeout",
        "strongest_signal": signal,
        "best_guess": None,
        "ruled_out": [],
        "checked": [
            {"what": "snapshot-stale", "result": STALE["says"], "evidence": signal["evidence"]},
            {"what": "metrics-off", "result": "/metrics is on.", "evidence": []},
            {"what": "rank-skew", "result": "not checked. Fewer than two ranks.", "evidence": []},
        ],
        "next_steps": [{"text": "Take stacks.", "why": "They tell.", "risk": "A pause."}],
        "production_risk": "High.",
        "claims": [signal],
        **given,
    }


def report(
    edits: dict[str, Any] | None = None, subject: Subject = SUBJECT, **told: Any
) -> Document:
    return draft(subject, [SOURCE], diagnosis(**told), edits or {}, at=NOON)


def edited(*changes: Change) -> dict[str, Any]:
    edits: dict[str, Any] = {}
    for change in changes:
        edits = changed(edits, change, report(edits)["fields"], by="mira", at=NOON)
    return edits


def test_without_evidence_nothing_is_claimed_and_the_class_is_open() -> None:
    document = draft(SUBJECT, [], {}, {}, at=NOON)

    assert document["problem_class"] is None
    assert document["strongest_signal"] is None
    assert document["ruled_out"] == document["claims"] == document["inputs"] == []
    [entry] = document["fields"]["problem_class"]
    assert (entry["says"], entry["status"]) == (NOT_DECIDED, "unknown")
    assert document["fields"]["production_risk"][0]["status"] == "unknown"


def test_evidence_names_its_bundle_and_the_place_in_it() -> None:
    [evidence] = report()["strongest_signal"]["evidence"]

    assert evidence["artifact"] == "bundle 219/loads_all_1.json"
    assert evidence["at"] == "/loads/0/timestamp"


def test_the_bundle_is_an_input_with_its_path_and_other_files_are_told() -> None:
    other = Input(3, "not recognised yet", "odd.bin", NOON, recognised=False)
    document = draft(SUBJECT, [SOURCE], diagnosis(), {}, inputs=[other], at=NOON)

    assert [(one["artifact"], one["path"]) for one in document["inputs"]] == [
        ("bundle 219", "/bundles/219"),
        ("artifact 3", "odd.bin"),
    ]
    assert document["unrecognised"] == ["odd.bin"]


def test_an_established_signal_does_no_more_than_support_a_class() -> None:
    [entry] = report()["fields"]["problem_class"]

    assert (entry["says"], entry["status"]) == ("Hang/timeout.", "supported")


def test_a_check_that_could_not_run_is_unknown_and_one_that_found_nothing_is_not_telling() -> None:
    stale, metrics, skew = report()["fields"]["checked"]

    assert (stale["status"], stale["telling"]) == ("established", True)
    assert (metrics["status"], metrics["telling"]) == ("established", False)
    assert (skew["status"], skew["says"]) == ("unknown", "Not checked. Fewer than two ranks.")


def test_a_claim_by_hand_is_a_hypothesis_with_author_and_time_and_leads_the_guesses() -> None:
    document = report(edited(Write("best_guess", " The overlap schedule. ")))

    guess = document["best_guess"]
    assert (guess["says"], guess["status"]) == ("The overlap schedule.", "hypothesis")
    assert (guess["by"], guess["written_at"]) == ("mira", "2026-11-30T12:00:00Z")
    assert guess in document["claims"]


@pytest.mark.parametrize(
    "change",
    [
        pytest.param(Write("best_guess", "x", "established"), id="established-without-evidence"),
        pytest.param(Write("best_guess", "x", "supported"), id="supported-without-evidence"),
        pytest.param(Write("ruled_out", "GPU fault"), id="ruled-out-without-a-check"),
        pytest.param(Write("best_guess", "   "), id="an-empty-sentence"),
        pytest.param(Write("best_guess", "x" * 2001), id="too-long"),
        pytest.param(Write("best_guess", "x", "proven"), id="no-such-status"),
        pytest.param(Write("root_cause", "x"), id="no-such-field"),
        pytest.param(Write("problem_class", "x"), id="a-class-is-chosen-not-written"),
        pytest.param(Write("best_guess", "x", evidence=("/etc/passwd",)), id="no-place-of-ours"),
        pytest.param(ChooseClass("root cause"), id="no-such-class"),
        pytest.param(Strike("snapshot-stale-0", ""), id="no-such-claim"),
    ],
)
def test_a_change_that_claims_more_than_its_evidence_is_refused(change: Change) -> None:
    with pytest.raises((Rejected, NotFound)):
        edited(change)


def test_ruled_out_by_hand_names_its_check_or_stays_open() -> None:
    written = edited(
        Write("ruled_out", "GPU fault", "established", ("artifact 4 line 12",)),
        Write("ruled_out", "One malformed request", "unknown"),
    )

    fault, request = report(written)["ruled_out"]
    assert fault["evidence"] == [{"artifact": "artifact 4", "at": "line 12", "value": None}]
    assert request["status"] == "unknown"


def test_a_struck_claim_stays_in_sight_with_its_reason_and_no_longer_leads() -> None:
    key = report()["strongest_signal"]["key"]
    document = report(edited(Strike(key, "The clock of that host runs late.")))

    assert document["strongest_signal"] is None
    [entry] = document["fields"]["strongest_signal"]
    assert entry["says"] == STALE["says"]
    assert entry["struck"] == {
        "reason": "The clock of that host runs late.",
        "by": "mira",
        "at": "2026-11-30T12:00:00Z",
    }
    assert document["claims"][0]["struck"]


def test_a_struck_claim_stays_although_its_rule_says_it_no_longer() -> None:
    edits = edited(Strike(report()["strongest_signal"]["key"], "Wrong clock."))

    [entry] = report(edits, strongest_signal=None)["fields"]["strongest_signal"]
    assert (entry["says"], entry["struck"]["reason"]) == (STALE["says"], "Wrong clock.")


def test_the_same_rule_with_other_figures_is_not_struck() -> None:
    edits = edited(Strike(report()["strongest_signal"]["key"], "Wrong clock."))
    later = {**SOURCE.placed["signals"][0], "says": "The load snapshot of DP0 is 240 s old."}

    document = report(edits, strongest_signal=later)

    assert document["strongest_signal"]["says"] == later["says"]
    assert [bool(one["struck"]) for one in document["fields"]["strongest_signal"]] == [False, True]


def test_a_claim_by_hand_is_struck_like_any_other_and_only_once() -> None:
    written = edited(Write("next_steps", "Restart it."))
    key = report(written)["fields"]["next_steps"][-1]["key"]
    struck = changed(
        written, Strike(key, "Stacks first."), report(written)["fields"], by="jonas", at=NOON
    )

    document = report(struck)
    assert [one["text"] for one in document["next_steps"]] == ["Take stacks."]
    assert document["fields"]["next_steps"][-1]["struck"]["by"] == "jonas"
    with pytest.raises(Rejected):
        changed(struck, Strike(key, "Again."), document["fields"], by="mira", at=NOON)


def test_a_chosen_class_stands_beside_what_the_evidence_says() -> None:
    subject = Subject(
        1, "t", None, "open", NOON, problem_class="crash", problem_class_by="mira",
        problem_class_why="It dumped core.",
    )  # fmt: skip
    document = report(subject=subject)

    assert document["problem_class"] == "crash"
    chosen, by_rules = document["fields"]["problem_class"]
    assert (chosen["by"], chosen["status"], chosen["why"]) == (
        "mira", "hypothesis", "It dumped core.",
    )  # fmt: skip
    assert by_rules["says"] == "Hang/timeout."


def test_a_person_may_say_that_it_is_not_decided() -> None:
    subject = Subject(1, "t", None, "open", NOON, problem_class=None, problem_class_by="mira")

    assert report(subject=subject)["problem_class"] is None


def test_striking_needs_a_reason() -> None:
    with pytest.raises(Rejected):
        edited(Strike(report()["strongest_signal"]["key"], "  "))


def test_a_field_takes_so_many_claims_by_hand_and_no_more() -> None:
    full: dict[str, Any] = {"written": {"best_guess": [{}] * MAX_ENTRIES}}

    with pytest.raises(Rejected):
        changed(full, Write("best_guess", "One more."), {}, by="mira", at=NOON)


def test_a_change_is_about_one_field() -> None:
    document = report()
    fields = document["fields"]

    assert field_of(Write("best_guess", "x"), fields) == "best_guess"
    assert field_of(ChooseClass("crash"), fields) == "problem_class"
    key = document["strongest_signal"]["key"]
    assert field_of(Strike(key, "x"), fields) == "strongest_signal"


def test_each_choice_of_a_class_is_kept() -> None:
    edits = edited(ChooseClass("crash", "core file"), ChooseClass(None))

    assert [one["problem_class"] for one in edits["classes"]] == ["crash", None]


def test_every_field_of_the_report_is_there() -> None:
    document = report()

    assert list(document["fields"]) == list(FIELDS)
    assert document["next_steps"] == [
        {"text": "Take stacks.", "why": "They tell.", "risk": "A pause.", "by": None}
    ]
    assert document["production_risk"] == "High."
    assert document["facts"]["loads"] == {"totals": {}}


@pytest.mark.parametrize(
    ("text", "artifact", "at"),
    [
        pytest.param("bundle 219", "bundle 219", "", id="a-bundle"),
        pytest.param(' bundle 219/metrics_1  sglang:x{a="b c"}', "bundle 219/metrics_1",
                     'sglang:x{a="b c"}', id="a-series"),
        pytest.param("artifact 12 line 40", "artifact 12", "line 40", id="a-line"),
    ],
)  # fmt: skip
def test_a_place_is_an_artifact_and_where_in_it(text: str, artifact: str, at: str) -> None:
    assert place(text) == {"artifact": artifact, "at": at, "value": None}
