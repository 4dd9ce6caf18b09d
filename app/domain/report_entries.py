"""The entries of a report's fields: by rules from a diagnosis, and by hand.

An entry is a claim with a key, so that it can be struck. What a person struck stays in sight,
with the reason; a strike is of what was said then, so the same rule may speak again with
other figures.
"""

import hashlib
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from app.domain.claims import Status
from app.domain.report_parts import Subject

Entry = dict[str, Any]
Diagnosis = Mapping[str, Any]
Edits = Mapping[str, Any]

FIELDS = {
    "problem_class": "Problem class",
    "checked": "What was checked",
    "strongest_signal": "Strongest signal",
    "best_guess": "Best guess",
    "ruled_out": "Ruled out",
    "next_steps": "Next step",
    "production_risk": "Production risk",
}
BY_HAND = "by-hand"
NOT_CHECKED = "not checked"  # how a diagnosis begins the result of a check that could not run
NOT_DECIDED = "Not decided. The evidence so far does not say which class it is."
NOT_KNOWN = "Not known"  # how a diagnosis begins a risk that nothing in hand tells
NO_RISK_TOLD = f"{NOT_KNOWN}. No evidence so far says what waiting or acting would cost."


def entry(key: str, **given: Any) -> Entry:  # noqa: ANN401  (plain JSON)
    """A claim of interface §2 with what the page adds to it."""
    return {
        "key": key,
        "id": given.get("id") or key.rpartition("-")[0],
        "what": given.get("what"),  # of a check: the rule that looked
        "says": given["says"],
        "status": str(given["status"]),
        "why": given.get("why"),
        "risk": given.get("risk"),
        "telling": given.get("telling", True),  # False: looked and found nothing
        "evidence": list(given.get("evidence") or ()),
        "by": given.get("by"),
        "written_at": given.get("written_at"),
        "struck": given.get("struck"),
    }


def entries(name: str, subject: Subject, diagnosis: Diagnosis, edits: Edits) -> list[Entry]:
    """Everything in one field: what rules say now, what they said when it was struck, by hand."""
    struck: Mapping[str, Any] = edits.get("struck") or {}
    written = (edits.get("written") or {}).get(name) or ()
    said = [*_RULED[name](subject, diagnosis), *(entry(**one) for one in written)]
    keys = {one["key"] for one in said}
    gone = [
        entry(**strike["entry"])
        for key, strike in struck.items()
        if strike["field"] == name and key not in keys
    ]
    return [one | {"struck": _strike(struck.get(one["key"]))} for one in (*said, *gone)]


def standing(field: list[Entry]) -> list[Entry]:
    """The entries that nobody struck."""
    return [one for one in field if not one["struck"]]


def claim_entry(claim: Mapping[str, Any]) -> Entry:
    """What a rule claims, as an entry."""
    return entry(key_of(claim["id"], claim["says"]), **claim)


def key_of(rule: str, says: str) -> str:
    """Names one saying of a rule: with other figures it is another."""
    return f"{rule}-{hashlib.sha256(says.encode('utf-8', 'replace')).hexdigest()[:8]}"


def _strike(strike: Mapping[str, Any] | None) -> dict[str, Any] | None:
    return {name: strike[name] for name in ("reason", "by", "at")} if strike else None


def _class(subject: Subject, diagnosis: Diagnosis) -> list[Entry]:
    by_rules = _class_by_rules(diagnosis)
    if not subject.problem_class_by:
        return [by_rules]
    chosen = subject.problem_class
    by_hand = entry(
        "problem-class-chosen",
        id=BY_HAND,
        says=f"{chosen.capitalize()}." if chosen else "Not decided.",
        status=Status.HYPOTHESIS if chosen else Status.UNKNOWN,
        why=subject.problem_class_why,
        by=subject.problem_class_by,
    )
    return [by_hand, by_rules | {"why": "What the evidence alone says."}]


def _class_by_rules(diagnosis: Diagnosis) -> Entry:
    found = diagnosis.get("problem_class")
    if not found:
        return entry("problem-class-open", says=NOT_DECIDED, status=Status.UNKNOWN)
    says = f"{str(found).capitalize()}."
    strongest = diagnosis.get("strongest_signal") or {}
    # A signal in hand supports a class; which class it is stays a judgement.
    certain = strongest.get("status") in (Status.ESTABLISHED, Status.SUPPORTED)
    status = Status.SUPPORTED if certain else Status.HYPOTHESIS
    evidence = strongest.get("evidence")
    return entry(key_of("problem-class", says), says=says, status=status, evidence=evidence)


def _checks(_subject: Subject, diagnosis: Diagnosis) -> list[Entry]:
    telling = {"health", *(claim["id"] for claim in diagnosis.get("claims") or ())}
    return [
        _check(**one) | {"telling": one["what"] in telling}
        for one in diagnosis.get("checked") or ()
    ]


def _check(what: str, result: str, evidence: Sequence[Mapping[str, Any]] = ()) -> Entry:
    status = Status.UNKNOWN if result.startswith(NOT_CHECKED) else Status.ESTABLISHED
    says = result[:1].upper() + result[1:]
    return entry(
        key_of(f"check-{what}", says), what=what, says=says, status=status, evidence=evidence
    )


def _steps(_subject: Subject, diagnosis: Diagnosis) -> list[Entry]:
    return [
        entry(
            key_of("step", one["text"]),
            says=one["text"],
            why=one.get("why"),
            risk=one.get("risk"),
            status=Status.HYPOTHESIS,
        )
        for one in diagnosis.get("next_steps") or ()
    ]


def _risk(_subject: Subject, diagnosis: Diagnosis) -> list[Entry]:
    says = str(diagnosis.get("production_risk") or NO_RISK_TOLD)
    status = Status.UNKNOWN if says.startswith(NOT_KNOWN) else Status.SUPPORTED
    return [entry(key_of("production-risk", says), says=says, status=status)]


def _strongest_signal(_subject: Subject, diagnosis: Diagnosis) -> list[Entry]:
    claim = diagnosis.get("strongest_signal")
    return [claim_entry(claim)] if claim else []


def _best_guess(_subject: Subject, diagnosis: Diagnosis) -> list[Entry]:
    claim = diagnosis.get("best_guess")
    return [claim_entry(claim)] if claim else []


def _ruled_out(_subject: Subject, diagnosis: Diagnosis) -> list[Entry]:
    return [claim_entry(claim) for claim in diagnosis.get("ruled_out") or ()]


_RULED: dict[str, Callable[[Subject, Diagnosis], list[Entry]]] = {
    "problem_class": _class,
    "checked": _checks,
    "strongest_signal": _strongest_signal,
    "best_guess": _best_guess,
    "ruled_out": _ruled_out,
    "next_steps": _steps,
    "production_risk": _risk,
}
