"""What people may write into a report. Nothing is deleted: what falls is struck, with a reason."""

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from app.domain.claims import ProblemClass, Status
from app.domain.report_entries import BY_HAND, FIELDS, Edits, Entry, entry
from app.domain.report_parts import rfc3339
from app.errors import NotFound, Rejected

MAX_CLAIM_CHARACTERS = 2_000
MAX_ENTRIES = 200  # of one field, struck ones included

_PLACE = re.compile(
    r"(?P<artifact>(?:bundle|artifact|job) \d{1,12}(?:/[\w.-]{1,120})?)(?: (?P<at>\S.*))?"
)


@dataclass(frozen=True, slots=True)
class Write:
    """A claim by hand. Without evidence it can be no more than a hypothesis."""

    field: str
    says: str
    status: str = Status.HYPOTHESIS
    evidence: tuple[str, ...] = ()  # "bundle 219/loads_all_1 /0/num_running_reqs", one each


@dataclass(frozen=True, slots=True)
class Strike:
    """Take back what a rule or a person said; it stays in sight, struck."""

    key: str
    reason: str


@dataclass(frozen=True, slots=True)
class ChooseClass:
    """Say which problem class it is, None for "not decided", and why; the evidence stays beside."""

    problem_class: str | None
    reason: str = ""


Change = Write | Strike | ChooseClass


def changed(
    edits: Edits, change: Change, fields: Mapping[str, Sequence[Entry]], *, by: str, at: datetime
) -> dict[str, Any]:
    """*edits* with *change* made by *by*; *fields* are those of the present draft.

    Raises Rejected for a claim that says more than its evidence, NotFound for an unknown key.
    """
    match change:
        case Write():
            return _written(edits, change, by=by, at=at)
        case Strike():
            return _struck(edits, change, fields, by=by, at=at)
        case _:
            return _chosen(edits, change, by=by, at=at)


def field_of(change: Change, fields: Mapping[str, Sequence[Entry]]) -> str:
    """The field that *change* is about; raises NotFound."""
    if isinstance(change, Write):
        return change.field
    if isinstance(change, ChooseClass):
        return "problem_class"
    for name, field in fields.items():
        if any(one["key"] == change.key for one in field):
            return name
    raise NotFound(f"The report says nothing under the key {change.key}.")


def artifacts_of(change: Change) -> set[str]:
    """The bundles, files and jobs that *change* names as evidence: ``bundle 219``."""
    named = change.evidence if isinstance(change, Write) else ()
    return {place(one)["artifact"].partition("/")[0] for one in named}


def place(text: str) -> dict[str, Any]:
    """``bundle 219/metrics_1 sglang:token_usage`` as evidence; raises Rejected."""
    match = _PLACE.fullmatch(" ".join(text.split()))
    if match is None:
        raise Rejected(
            f"{text[:120]!r} is not a place in an artifact of this console.",
            fix="Write it as: bundle 219/loads_all_1 /0/num_running_reqs, or artifact 12 line 40.",
        )
    return {"artifact": match["artifact"], "at": match["at"] or "", "value": None}


def _written(edits: Edits, change: Write, *, by: str, at: datetime) -> dict[str, Any]:
    _check(change)
    written = {name: list(field) for name, field in (edits.get("written") or {}).items()}
    field = written.setdefault(change.field, [])
    if len(field) >= MAX_ENTRIES:
        raise Rejected(f"{FIELDS[change.field]} has {MAX_ENTRIES} hand-written claims already.")
    count = sum(map(len, written.values()))
    evidence = [place(one) for one in change.evidence]
    says = change.says.strip()
    field.append(
        entry(
            f"{BY_HAND}-{count + 1}",
            says=says,
            status=change.status,
            evidence=evidence,
            by=by,
            written_at=rfc3339(at),
        )
    )
    return {**edits, "written": written}


def _check(change: Write) -> None:
    if change.field not in FIELDS or change.field == "problem_class":
        raise Rejected(
            f"Nothing can be written into {change.field!r}.",
            fix=f"Use one of: {', '.join(name for name in FIELDS if name != 'problem_class')}.",
        )
    if not 0 < len(change.says.strip()) <= MAX_CLAIM_CHARACTERS:
        raise Rejected(f"A claim has 1 to {MAX_CLAIM_CHARACTERS} characters.")
    if change.status not in set(Status):
        raise Rejected(f"There is no status {change.status!r}.", fix=f"Use: {', '.join(Status)}.")
    if change.evidence:
        return
    if change.status in (Status.ESTABLISHED, Status.SUPPORTED):
        raise Rejected(
            f"A claim is not {change.status} without evidence.",
            fix="Name the artifact and the place in it, or call it a hypothesis.",
        )
    if change.field == "ruled_out" and change.status == Status.HYPOTHESIS:
        raise Rejected(
            "Ruled out needs the check that ran.",
            fix="Name its evidence, or write it as unknown: looked at and still open.",
        )


def _chosen(edits: Edits, change: ChooseClass, *, by: str, at: datetime) -> dict[str, Any]:
    if change.problem_class is not None and change.problem_class not in set(ProblemClass):
        raise Rejected(
            f"There is no problem class {change.problem_class!r}.",
            fix=f"Use one of: {', '.join(ProblemClass)}.",
        )
    choice = {
        "problem_class": change.problem_class,
        "reason": change.reason.strip()[:MAX_CLAIM_CHARACTERS] or None,
        "by": by,
        "at": rfc3339(at),
    }
    return {**edits, "classes": [*(edits.get("classes") or ()), choice]}


def _struck(
    edits: Edits,
    change: Strike,
    fields: Mapping[str, Sequence[Entry]],
    *,
    by: str,
    at: datetime,
) -> dict[str, Any]:
    name = field_of(change, fields)
    if not 0 < len(change.reason.strip()) <= MAX_CLAIM_CHARACTERS:
        raise Rejected("Striking a claim needs a reason.", fix="Say what speaks against it.")
    struck = dict(edits.get("struck") or {})
    if change.key in struck:
        raise Rejected("That claim is struck already.")
    one = next(one for one in fields[name] if one["key"] == change.key)
    struck[change.key] = {
        "field": name,
        "entry": one,
        "reason": change.reason.strip(),
        "by": by,
        "at": rfc3339(at),
    }
    return {**edits, "struck": struck}
