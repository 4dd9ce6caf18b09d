"""What agents handed over, written down: items of a diagnostic and the artifacts behind them.

All writes are bound to the attempt at the job, so that a worker that was thought dead adds
nothing to what another does.
"""

from collections.abc import Iterable
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from sqlmodel import Session, func, select

from app.domain.findings import Conclusion, Finding, claims_of
from app.domain.playbook import DiagnosticRefused, DiagnosticTaken, FindingMade
from app.errors import ConsoleError
from app.protocol.messages import FileTaken, Refusal
from app.store import attempts, audit, evidence, incidents, jobs, timeline
from app.store.artifacts import StoredFile
from app.store.attempts import Attempt
from app.store.audit import CONSOLE, Actor
from app.store.diagnostics import get_diagnostic, items_of, of_job
from app.store.tables import Artifact, Diagnostic, DiagnosticItem, Job

MEDIA_TYPES = {".json": "application/json", ".txt": "text/plain", ".log": "text/plain"}
MAX_WORDS = 2000  # of what a host says


@dataclass(slots=True)
class Found:
    """One item, and the file behind it where there is one."""

    item: DiagnosticItem
    file: FileTaken | None = None
    stored: StoredFile | None = None
    written_at: datetime | None = None  # of a file that was there before; else as it was taken
    once: bool = False  # equal bytes of the incident are pointed at, not kept a second time


def keep(
    session: Session, attempt: Attempt, found: Iterable[Found], *, total: int, at: datetime
) -> None:
    """Write items with their artifacts; the live pages of job and diagnostic learn of them."""
    job = attempts.held(session, attempt)
    diagnostic = of_job(session, attempt.job_id)
    for one in found:
        if one.stored and one.file and not _pointed_at(session, diagnostic, one):
            one.item.artifact_id = _artifact(session, job, diagnostic, one, at=at)
        session.add(one.item)
    session.flush()
    count = select(func.count()).where(DiagnosticItem.diagnostic_id == diagnostic.id)
    job.done, job.total = session.exec(count).one(), total
    job.version += 1


def answer(session: Session, attempt: Attempt, part: dict[str, Any]) -> None:
    """Add what one host answered as a whole."""
    attempts.held(session, attempt)
    diagnostic = of_job(session, attempt.job_id)
    before = diagnostic.answer or {}
    diagnostic.answer = {**before, "hosts": [*before.get("hosts", []), part]}


def make_of_it(
    session: Session, attempt: Attempt, conclusion: Conclusion, *, at: datetime, **parts: object
) -> None:
    """Write what the items say together, as *parts* of the answer, and tell the incident of it."""
    job = attempts.held(session, attempt)
    diagnostic = of_job(session, attempt.job_id)
    told = conclusion.as_json() | {"at": at.isoformat()}
    diagnostic.answer = {**(diagnostic.answer or {}), **parts, "found": told}
    job.version += 1
    incidents.take_in(session, diagnostic.incident_id, at=at)


def tell_anew(
    session: Session,
    attempt: Attempt,
    diagnostic_id: int,
    conclusion: Conclusion,
    *,
    at: datetime,
    **parts: object,
) -> None:
    """Write what an earlier diagnostic says in the light of this one, and what it claims now."""
    attempts.held(session, attempt)
    diagnostic = get_diagnostic(session, diagnostic_id)
    before = {claim["says"] for claim in claims_of(_found_in(diagnostic))}
    told = conclusion.as_json() | {"at": at.isoformat()}
    diagnostic.answer = {**(diagnostic.answer or {}), **parts, "found": told}
    for finding in _found(diagnostic):
        if finding.says not in before:
            incident_id = diagnostic.incident_id
            timeline.record(session, finding, incident_id=incident_id, actor=CONSOLE, at=at)
    incidents.take_in(session, diagnostic.incident_id, at=at)


def running(session: Session, attempt: Attempt, says: str) -> None:
    """Write what a diagnostic is doing."""
    attempts.progress(session, attempt, says)
    diagnostic = of_job(session, attempt.job_id)
    diagnostic.state, diagnostic.says, diagnostic.finished_at = "running", says, None


def finish(session: Session, attempt: Attempt, says: str, *, at: datetime) -> None:
    """End job and diagnostic, with their line in the timeline and the audit log.

    A diagnostic that brought nothing is "refused", whatever *says*.
    """
    job = attempts.held(session, attempt)
    diagnostic = of_job(session, attempt.job_id)
    items = items_of(session, _id(diagnostic))
    taken = [one for one in items if one.state != "refused"]
    jobs.succeeded(session, job, says, at=at)
    if not taken and not (diagnostic.answer or {}).get("hosts"):
        diagnostic.state = "refused"
    _tell(session, job, diagnostic, items, at=at)
    artifact_ids = [one.artifact_id for one in items if one.artifact_id is not None]
    audit.note(
        session,
        CONSOLE,
        "diagnostic.finish",
        f"diagnostic:{diagnostic.id}",
        at=at,
        asked_by=job.requested_by,
        says=says,
        artifact_ids=artifact_ids,
    )


def refused(host: dict[str, Any], refusal: Refusal, *, sample: int | None = None) -> Found:
    """The item of what an agent did not do."""
    return _refused(
        host,
        process_id=refusal.process_id,
        rank=refusal.rank,
        sample=sample,
        kind=refusal.kind,
        says=refusal.reason[:MAX_WORDS],
        fix=refusal.fix,
        command=refusal.command,
    )


def failed(
    host: dict[str, Any],
    error: ConsoleError,
    *,
    process_id: str | None = None,
    sample: int | None = None,
) -> Found:
    """The item of an agent that could not be asked, or that refused the whole request."""
    says = " ".join(part for part in (error.what, error.why) if part)
    return _refused(
        host,
        process_id=process_id,
        rank=host.get("ranks", {}).get(process_id),
        sample=sample,
        kind=error.code,
        says=says[:MAX_WORDS],
        fix=error.fix,
        command=error.command,
    )


def here_already(item: DiagnosticItem, artifact: Artifact) -> None:
    """Have *item* say that its bytes are those of *artifact*."""
    item.state, item.artifact_id = "here-already", artifact.id
    item.says = f"{item.says} The same bytes are here as artifact {artifact.id}."[:MAX_WORDS]


def actor_of(job: Job) -> Actor:
    """Whoever asked for *job*, as evidence and timeline name them."""
    return Actor(job.requested_by, "user", "operator")


def _refused(host: dict[str, Any], **facts: Any) -> Found:  # noqa: ANN401
    process_id = facts["process_id"]
    pid = int(process_id.partition(".")[0]) if process_id else None
    return Found(
        DiagnosticItem(
            diagnostic_id=host["diagnostic_id"],
            host_id=host["host_id"],
            host_name=host["name"],
            pid=pid,
            state="refused",
            detail={},
            **facts,
        )
    )


def _pointed_at(session: Session, diagnostic: Diagnostic, one: Found) -> bool:
    """Whether another diagnostic kept equal bytes meanwhile."""
    if not one.once or one.stored is None:
        return False
    evidence.hold_bytes(session, one.stored)  # two that keep equal bytes wait for each other
    same = evidence.equal_bytes(session, diagnostic.incident_id, one.stored.sha256)
    if same is None or same.purged_at:
        return False
    here_already(one.item, same)
    return True


def _artifact(
    session: Session, job: Job, diagnostic: Diagnostic, one: Found, *, at: datetime
) -> int | None:
    assert one.file is not None
    assert one.stored is not None
    covers = one.written_at or one.item.taken_at or one.file.taken_at
    suffix = f".{one.file.name.rpartition('.')[2]}"
    return evidence.keep(
        session,
        one.stored,
        incident_id=diagnostic.incident_id,
        actor=actor_of(job),
        at=at,
        name=one.file.name,
        kind=one.file.kind,
        tier=one.file.tier,
        media_type=MEDIA_TYPES.get(suffix, "application/octet-stream"),
        taken_from=f"host {one.item.host_name}",
        covers_from=covers,
        covers_to=covers,
    ).id


def _tell(
    session: Session,
    job: Job,
    diagnostic: Diagnostic,
    items: list[DiagnosticItem],
    *,
    at: datetime,
) -> None:
    names = tuple(host["name"] for host in diagnostic.hosts)
    event: DiagnosticTaken | DiagnosticRefused
    if diagnostic.state == "refused":
        reason = items[0].says if items else "no agent told anything."
        event = DiagnosticRefused(_id(diagnostic), diagnostic.kind, names, reason)
    else:
        event = DiagnosticTaken(_id(diagnostic), diagnostic.kind, names, diagnostic.says)
    incident_id, actor = diagnostic.incident_id, actor_of(job)
    timeline.record(session, event, incident_id=incident_id, actor=actor, at=at)
    for finding in _found(diagnostic):
        timeline.record(session, finding, incident_id=incident_id, actor=CONSOLE, at=at)


def _found(diagnostic: Diagnostic) -> list[FindingMade]:
    """What is abnormal, as events; what is only noted stays on the page of the diagnostic."""
    return [
        FindingMade(_id(diagnostic), claim["id"], claim["says"])
        for claim in claims_of(_found_in(diagnostic))
        if claim["level"] != "note"
    ]


def _found_in(diagnostic: Diagnostic) -> list[Finding]:
    found = (diagnostic.answer or {}).get("found")
    return [found] if found else []


def _id(diagnostic: Diagnostic) -> int:
    assert diagnostic.id is not None
    return diagnostic.id
