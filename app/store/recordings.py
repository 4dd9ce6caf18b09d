"""Recordings: request dumping that was switched on at a target and is switched off at its time.

A recording is its job. From just before it is switched on until it is known to be off the job
holds ``due_at``, whatever happens to the worker; ``Job.result`` tells how far it is.
"""

from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from datetime import datetime
from typing import Any, Literal, Self

from sqlmodel import Session, col, select

from app.domain import recording
from app.domain.endpoints import MIB
from app.domain.figures import figure, table, text, whole
from app.domain.plain_json import read_json
from app.domain.playbook import KINDS, RecordRequests
from app.domain.recording import Known, Suggestion
from app.errors import Conflict, Malformed, NotFound
from app.store import audit
from app.store.audit import Actor
from app.store.incidents import get_incident, targets_of
from app.store.jobs import RESUMABLE, UNFINISHED, request_resume, sooner
from app.store.outbox import request
from app.store.stores import Stores
from app.store.tables import BundleRow, CaptureRow, Job, Target

KIND = KINDS[RecordRequests]
MOST_FOLDERS = 8
_TELL_SETTINGS = ("server_info", "get_server_info")
_MOST_SETTINGS_BYTES = 4 * MIB

# "sent" without an answer is "not known" as soon as no worker has it in hand.
Phase = Literal["asked", "sent", "on", "not known", "still on?", "off", "refused", "replaced"]


@dataclass(frozen=True, slots=True)
class NewRecording:
    """What to switch on, for how long."""

    incident_id: int
    target_id: int | None
    folder: str
    threshold: int
    duration_seconds: float


@dataclass(frozen=True, slots=True)
class Recording:
    """A recording as its job has it. *until* None: it was not switched on, or only to be off."""

    job_id: int
    incident_id: int | None
    target_id: int
    folder: str
    threshold: int
    phase: Phase
    until: datetime | None
    due_at: datetime | None
    says: str
    ended: bool
    tries: int

    @classmethod
    def of(cls, job: Job) -> Self:
        assert job.id is not None
        result, step = job.result or {}, RecordRequests(**job.arguments)
        until = result.get("until")
        phase: Phase = result.get("phase", "asked")
        if phase == "sent" and job.state != "running":
            phase = "not known"
        return cls(
            job_id=job.id,
            incident_id=job.incident_id,
            target_id=step.target_id,
            folder=step.folder,
            threshold=step.threshold,
            phase=phase,
            until=datetime.fromisoformat(until) if until else None,
            due_at=job.due_at,
            says=job.says,
            ended=job.state not in UNFINISHED,
            tries=result.get("tries", 0),
        )

    @property
    def may_be_on(self) -> bool:
        """Whether, as far as is known, the target may still write files."""
        return self.phase in ("sent", "on", "not known", "still on?")


def request_recording(
    session: Session, stores: Stores, new: NewRecording, *, actor: Actor, at: datetime
) -> Job:
    """The job that switches it on, in the caller's transaction.

    Raises Rejected for what makes no sense, Conflict where one is on already and where the
    server is known to have no request dumps.
    """
    target = target_of(session, new.incident_id, new.target_id)
    recording.check_figures(new.threshold, new.duration_seconds)
    folder = recording.check_folder(new.folder)
    known = known_of(session, stores, target)
    if refused := recording.refusal(known):
        raise Conflict(refused.says, fix=refused.fix)
    _lock(session, target)
    if rival := unsettled(session, target):
        raise Conflict(
            f"Requests of {target.name} are recorded already, by job {rival.id}.",
            why="There is one setting: a second would take the folder of the first.",
            fix="Switch that one off first.",
        )
    assert target.id is not None
    step = RecordRequests(
        target.id, folder, new.threshold, new.duration_seconds, known.tokenizers or 1
    )
    return _request(session, stores, step, new.incident_id, actor=actor, at=at)


def request_off(
    session: Session,
    stores: Stores,
    *,
    incident_id: int,
    target_id: int | None,
    actor: Actor,
    at: datetime,
) -> Job:
    """The job that switches it off now: the one that switched it on, or one for this alone."""
    target = target_of(session, incident_id, target_id)
    assert target.id is not None
    _lock(session, target)
    job = unsettled(session, target)
    if job is None:
        tokenizers = known_of(session, stores, target).tokenizers or 1
        step = RecordRequests(target.id, "", 0, 0.0, tokenizers)
        return _request(session, stores, step, incident_id, actor=actor, at=at)
    audit.note(session, actor, "recording.off", f"job:{job.id}", at=at, target=target.name)
    if job.state in RESUMABLE:
        request_resume(session, stores.outbox, job, actor, at)
    sooner(job, at)
    return job


def target_of(session: Session, incident_id: int, target_id: int | None) -> Target:
    """That target of the incident, or its only one; raises NotFound and Conflict."""
    get_incident(session, incident_id)
    targets = [one for one in targets_of(session, incident_id) if one.deleted_at is None]
    if target_id is not None:
        targets = [one for one in targets if one.id == target_id]
        if not targets:
            raise NotFound(f"Incident {incident_id} is not about target {target_id}.")
    if len(targets) != 1:
        names = ", ".join(f"{one.id} ({one.name})" for one in targets) or "none"
        raise Conflict(
            f"Incident {incident_id} is about {len(targets)} targets: {names}.",
            fix="Send target_id.",
        )
    return targets[0]


def unsettled(session: Session, target: Target, *, but: int | None = None) -> Job | None:
    """The newest job that may have left request dumping on there, or is about to switch it on.

    Another target with the same address is the same server.
    """
    return next((job for job in _jobs(session, target) if job.id != but and _unsettled(job)), None)


def later_one(session: Session, target: Target, job: Job) -> Job | None:
    """A recording that was switched on after that of *job*: what is there is its setting now."""
    assert job.id is not None
    jobs = _jobs(session, target)
    return next((one for one in jobs if (one.id or 0) > job.id and _was_sent(one)), None)


def recordings_of(session: Session, incident_id: int) -> list[Recording]:
    """Those of an incident, newest first; what only switched off is none."""
    query = select(Job).where(Job.incident_id == incident_id, Job.kind == KIND)
    found = [Recording.of(job) for job in session.exec(query.order_by(col(Job.id).desc()))]
    return [one for one in found if one.folder]


def recording_at(session: Session, target: Target) -> Recording | None:
    """What may be on at a target now."""
    job = unsettled(session, target)
    return Recording.of(job) if job else None


@dataclass(frozen=True, slots=True)
class Usual:
    """What a recording at a target is proposed with."""

    folder: str
    suggestion: Suggestion
    known: Known


def usual(session: Session, stores: Stores, target: Target) -> Usual:
    """Its crash dump folder, which exists and which its agent looks in; a file about every 5 s."""
    known = known_of(session, stores, target)
    told = known.crash_dump_folder or ""
    plain = told if told.startswith("/") and len(told) < recording.LONGEST_FOLDER else ""
    suggestion = recording.suggestion(known.finished_per_second)
    return Usual(plain or recording.USUAL_FOLDER, suggestion, known)


def known_of(session: Session, stores: Stores, target: Target) -> Known:
    """What the newest bundle of *target* tells that matters here."""
    bundle = session.get(BundleRow, target.last_bundle_id) if target.last_bundle_id else None
    if bundle is None or bundle.id is None or not bundle.summary:
        return Known()
    summary, settings = bundle.summary, _settings(session, stores, bundle.id)
    latency = table(summary.get("latency"))
    finished, seconds = (
        whole(table(latency.get("e2e")).get("n")),
        figure(latency.get("window_seconds")),
    )
    signals = [one.get("id") for one in summary.get("signals") or ()]
    frontend = summary.get("frontend")
    return Known(
        frontend=frontend if frontend in ("python", "rust") else None,
        version=bundle.version,
        tokenizers=whole(settings.get("tokenizer_worker_num")),
        crash_dump_folder=text(settings.get("crash_dump_folder"), limit=recording.LONGEST_FOLDER),
        finished_per_second=finished / seconds if finished is not None and seconds else None,
        several_servers="not-one-server" in signals,
    )


def _settings(session: Session, stores: Stores, bundle_id: int) -> Mapping[str, Any]:
    """The settings of the server as it told them in that bundle."""
    query = select(CaptureRow).where(
        CaptureRow.bundle_id == bundle_id, col(CaptureRow.name).in_(_TELL_SETTINGS)
    )
    for row in session.exec(query.order_by(col(CaptureRow.name).desc())):
        if row.sha256 and row.size_bytes <= _MOST_SETTINGS_BYTES:
            with suppress(Malformed):
                return table(read_json(stores.artifacts.read(row.sha256, _MOST_SETTINGS_BYTES)))
    return {}


def folders_of(session: Session, target_id: int) -> list[str]:
    """Where a target was told to write requests, the newest first; at most eight."""
    query = select(Job).where(Job.target_id == target_id, Job.kind == KIND)
    found = [one for one in session.exec(query.order_by(col(Job.id).desc())) if _was_sent(one)]
    return list(dict.fromkeys(str(one.arguments["folder"]) for one in found))[:MOST_FOLDERS]


def _request(
    session: Session,
    stores: Stores,
    step: RecordRequests,
    incident_id: int,
    *,
    actor: Actor,
    at: datetime,
) -> Job:
    return request(
        session,
        stores.outbox,
        step,
        incident_id=incident_id,
        target_id=step.target_id,
        actor=actor,
        at=at,
    )


def _lock(session: Session, target: Target) -> None:
    # Two that come in one moment meet at this row; SQLite has one writer anyway.
    session.exec(select(Target).where(Target.id == target.id).with_for_update()).one()


def _jobs(session: Session, target: Target) -> Sequence[Job]:
    query = (
        select(Job)
        .join(Target, col(Target.id) == col(Job.target_id))
        .where(Job.kind == KIND, Target.base_url == target.base_url)
        .order_by(col(Job.id).desc())
    )
    return session.exec(query).all()


def _unsettled(job: Job) -> bool:
    return job.state in UNFINISHED or Recording.of(job).may_be_on


def _was_sent(job: Job) -> bool:
    """Whether it was switched on, or may have been."""
    phase = (job.result or {}).get("phase", "asked")
    return bool(job.arguments["folder"]) and phase not in ("asked", "refused")
