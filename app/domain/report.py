"""The living report of an incident: what follows from its evidence, and what people wrote.

Drafted anew each time it is read, in the shape of interface §2. A rule's claim that a person
struck stays in sight, struck; a hand-written one says so, by whom and when.
"""

from collections.abc import Mapping, Sequence
from datetime import datetime
from typing import Any

from app.domain.report_entries import (
    FIELDS,
    Diagnosis,
    Edits,
    Entry,
    claim_entry,
    entries,
    standing,
)
from app.domain.report_parts import Input, Source, Subject, rfc3339

Document = dict[str, Any]

_TOLD_BY_BUNDLES = ("health", "load", "latency", "topology", "capacity", "model", "version")


def draft(  # noqa: PLR0913  (a report rests on these, and on nothing else)
    subject: Subject,
    sources: Sequence[Source],
    diagnosis: Diagnosis,
    edits: Edits,
    *,
    inputs: Sequence[Input] = (),
    revision: int = 0,
    at: datetime,
) -> Document:
    """The report of interface §2, with ``fields``: every entry, struck ones too, as on the page.

    *diagnosis* is that of the sources' ``placed`` summaries; *sources* come newest first.
    """
    fields = {name: entries(name, subject, diagnosis, edits) for name in FIELDS}
    stands = {name: standing(field) for name, field in fields.items()}
    return {
        "incident": subject.as_json(),
        "revision": revision,
        "inputs": [*(one.as_json() for one in sources), *(one.as_json() for one in inputs)],
        "why_bundle_and_dump_not_enough": diagnosis.get("why_bundle_and_dump_not_enough"),
        "problem_class": _class(subject, diagnosis),
        "checked": [_check(one) for one in stands["checked"]],
        "strongest_signal": _chosen(stands["strongest_signal"]),
        "best_guess": _chosen(stands["best_guess"]),
        "ruled_out": stands["ruled_out"],
        "next_steps": [_step(one) for one in stands["next_steps"]],
        "production_risk": " ".join(one["says"] for one in stands["production_risk"]),
        "claims": _claims(diagnosis, edits, fields),
        "facts": _facts(sources),
        "unrecognised": [one.name for one in inputs if not one.recognised],
        "generated_at": rfc3339(at),
        "fields": fields,
    }


def _class(subject: Subject, diagnosis: Diagnosis) -> str | None:
    chosen = subject.problem_class if subject.problem_class_by else diagnosis.get("problem_class")
    return str(chosen) if chosen else None


def _chosen(stands: list[Entry]) -> Entry | None:
    """What a person wrote last, otherwise what the rules say."""
    by_hand = [one for one in stands if one["by"]]
    return by_hand[-1] if by_hand else next(iter(stands), None)


def _check(one: Entry) -> dict[str, Any]:
    what = one["what"] or f"by {one['by']}"
    return {"what": what, "result": one["says"], "evidence": one["evidence"]}


def _step(one: Entry) -> dict[str, Any]:
    return {"text": one["says"], "why": one["why"], "risk": one["risk"], "by": one["by"]}


def _claims(diagnosis: Diagnosis, edits: Edits, fields: Mapping[str, list[Entry]]) -> list[Entry]:
    """Every claim that a rule made and every one that a person wrote, struck ones marked."""
    struck = {one["key"]: one["struck"] for field in fields.values() for one in field}
    struck |= {
        key: {name: strike[name] for name in ("reason", "by", "at")}
        for key, strike in (edits.get("struck") or {}).items()
    }
    by_rules = [claim_entry(claim) for claim in diagnosis.get("claims") or ()]
    by_hand = [one for field in fields.values() for one in field if one["by"]]
    return [one | {"struck": struck.get(one["key"])} for one in (*by_rules, *by_hand)]


def _facts(sources: Sequence[Source]) -> dict[str, Any]:
    """What was parsed, for machines: the newest bundle's load and health, then each bundle's."""
    if not sources:
        return {}
    newest = sources[0].summary
    return {
        "loads": newest.get("load"),
        "health": newest.get("health"),
        "bundles": {
            one.artifact: {name: one.summary.get(name) for name in _TOLD_BY_BUNDLES}
            for one in sources
        },
    }
