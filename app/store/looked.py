"""What was found beside bundles: by looks into the hosts of an incident, in dumps, by replays."""

from collections.abc import Mapping, Sequence
from dataclasses import replace
from datetime import datetime
from typing import Any

from sqlmodel import Session, col, select

from app.domain.dump_findings import dump_findings
from app.domain.findings import Finding
from app.domain.urgency import SERVING
from app.store.tables import BundleRow, Diagnostic, Dump, Replay

KINDS = ("stacks", "native stacks", "coredump", "nccl ras")
MOST_LOOKS = 50  # of an incident, the newest


def findings_of(session: Session, incident_id: int) -> list[Finding]:
    """Everything that was found, newest first, however old: for the report."""
    looks = [_finding(row) for row in _rows(session, incident_id)]
    return [*looks, *_of_replays(session, incident_id), *_of_dumps(session, incident_id)]


def findings_now(session: Session, incident_id: int, bundles: Sequence[BundleRow]) -> list[Finding]:
    """What still holds beside *bundles*, newest first: for the list and the incident's page.

    A later look at as many ranks replaces an earlier one, and a server that serves in a later
    bundle has left behind what was found before.
    """
    seen: dict[tuple[Any, ...], int] = {}
    found = []
    for row in _rows(session, incident_id):
        finding, subject = _finding(row), _subject(row)
        replaced = subject in seen and seen[subject] >= finding["ranks"]
        if not replaced and not _over(row, bundles):
            found.append(finding)
        seen[subject] = max(seen.get(subject, 0), finding["ranks"])
    return [*found, *_of_replays(session, incident_id), *_of_dumps(session, incident_id)]


def _of_dumps(session: Session, incident_id: int) -> list[Finding]:
    """What dumps claim, newest first; a dump stays what it is, whatever the server does later."""
    query = (
        select(Dump)
        .where(Dump.incident_id == incident_id, col(Dump.state).in_(("ready", "unreadable")))
        .order_by(col(Dump.id).desc())
        .limit(MOST_LOOKS)
    )
    found = [
        (row.id, dump_findings(row.document or {}, artifact_id=row.artifact_id, name=row.name))
        for row in session.exec(query)
    ]
    answered = _answered(session, incident_id)
    return [
        (replace(one, settles=()) if dump_id in answered else one).as_json()
        for dump_id, one in found
        if one.claims
    ]


def _of_replays(session: Session, incident_id: int) -> list[Finding]:
    """What replays found, newest first: what came back once is not undone by a later run."""
    query = (
        select(Replay)
        .where(Replay.incident_id == incident_id, Replay.state == "done")
        .order_by(col(Replay.id).desc())
        .limit(MOST_LOOKS)
    )
    found: list[Finding] = [row.found for row in session.exec(query) if row.found]
    left = next((one for one in found if one["settles"]), None)  # the newest stands for the others
    return [one if one is left else {**one, "settles": []} for one in found]


def _answered(session: Session, incident_id: int) -> set[int | None]:
    """The dumps whose requests were replayed, and that said something: no need to advise it."""
    query = select(Replay.dump_id).where(
        Replay.incident_id == incident_id,
        Replay.state == "done",
        Replay.verdict != "inconclusive",
    )
    return set(session.exec(query))


def _rows(session: Session, incident_id: int) -> list[Diagnostic]:
    query = (
        select(Diagnostic)
        .where(Diagnostic.incident_id == incident_id, col(Diagnostic.kind).in_(KINDS))
        .order_by(col(Diagnostic.id).desc())
        .limit(MOST_LOOKS)
    )
    return [row for row in session.exec(query) if _found(row)]


def _found(row: Diagnostic) -> Mapping[str, Any] | None:
    return (row.answer or {}).get("found")


def _finding(row: Diagnostic) -> Finding:
    found = _found(row)
    assert found is not None
    return found


def _subject(row: Diagnostic) -> tuple[Any, ...]:
    """Looks at the same subject replace each other; each coredump stands for itself."""
    if row.kind == "coredump":
        return ("coredump", row.id)
    hosts = tuple(sorted(one["host_id"] for one in row.hosts))
    looked_at = "nccl ras" if row.kind == "nccl ras" else "stacks"
    return (looked_at, row.target_id, None if row.target_id else hosts)


def _over(row: Diagnostic, bundles: Sequence[BundleRow]) -> bool:
    """Whether what was looked at serves since; without a target all that were asked must."""
    newest: dict[str, BundleRow] = {}
    for bundle in bundles:
        newest.setdefault(bundle.base_url, bundle)
    about = [one for one in newest.values() if row.target_id in (None, one.target_id)]
    at = _looked_at(row)
    return bool(about) and all(one.collected_at > at and one.verdict in SERVING for one in about)


def _looked_at(row: Diagnostic) -> datetime:
    found = _found(row)
    return datetime.fromisoformat(found["at"]) if found else row.asked_at
