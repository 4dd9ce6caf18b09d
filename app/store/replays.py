"""Replays: asked for under their guards, looked at, stopped, and gone on with by a person.

What is asked for is written down before anything is done.
"""

from collections.abc import Sequence
from dataclasses import dataclass, field
from datetime import datetime
from typing import Literal

from sqlmodel import Session, col, select

from app.domain.claims import ProblemClass
from app.domain.playbook import ReplayRequests
from app.domain.replay import agreed
from app.domain.replay.options import Options
from app.domain.replay.selection import read_selection
from app.domain.replay.symptoms import Symptom, symptom_of
from app.errors import Conflict, NotFound, Rejected
from app.store import audit
from app.store.audit import Actor
from app.store.dump_tables import Dump
from app.store.evidence import get_artifact
from app.store.incidents import RULES, get_incident
from app.store.jobs import get_job, request_cancel, request_resume
from app.store.outbox import request
from app.store.replay_guards import refuse_rival, to_confirm
from app.store.stores import Stores
from app.store.tables import Artifact, Incident, Job, Replay, ReplayTrial, Target
from app.store.targets import get_target

Reference = Literal["faulty", "sound"]

LARGEST_ID = 2**63
AT_WORK = ("waiting", "planning", "running")
STARTABLE = ("planned", "refused")  # nothing was sent yet
RESUMABLE = ("interrupted", "cancelled", "failed")
LONGEST_TYPED = 200


@dataclass(frozen=True, slots=True)
class NewReplay:
    """What to send again, and where to. One of *dump_id* and *artifact_id* names the requests.

    *other_target_id* is side B of a comparison. *reference* is what the requests were recorded
    in: the fault itself, or a good server that the target is to differ from. *typed* are names of
    targets that a person typed. *symptom* None: by the class of the incident. Without *send* it
    is only looked at.
    """

    incident_id: int
    target_id: int
    dump_id: int | None = None
    artifact_id: int | None = None
    other_target_id: int | None = None
    select: str = ""
    options: Options = field(default_factory=Options)
    trials: int = 1
    symptom: Symptom | None = None
    request_seconds: float = 600.0
    reference: Reference = "faulty"
    typed: tuple[str, ...] = ()
    send: bool = True


def request_replay(
    session: Session, stores: Stores, new: NewReplay, *, actor: Actor, at: datetime
) -> tuple[Job, Replay]:
    """The replay and its job, in the caller's transaction.

    Raises NotFound, Rejected for what makes no sense, and Conflict where a guard holds it back.
    """
    incident = get_incident(session, new.incident_id)
    agreed.check(new.options, new.trials)
    agreed.check_deadline(new.request_seconds)
    read_selection(new.select)
    artifact, dump = _source(session, new)
    targets = _targets(session, new)
    replay = Replay(
        incident_id=new.incident_id,
        artifact_id=artifact.id or 0,
        dump_id=dump.id if dump else None,
        target_id=new.target_id,
        other_target_id=new.other_target_id,
        selection=new.select,
        options=agreed.as_json(new.options),
        symptom=new.symptom or _usual_symptom(incident),
        symptom_by=actor.name if new.symptom else RULES,
        trials_wanted=new.trials,
        request_seconds=new.request_seconds,
        reference=new.reference,
        says="Waiting for a worker.",
        asked_by=actor.name,
        asked_at=at,
        confirmed=[],
    )
    if new.send:
        _agree(session, replay, targets, new.typed, actor=actor, at=at)
    session.add(replay)
    session.flush()
    return _queue(session, stores, replay, send=new.send, actor=actor, at=at), replay


def start_replay(
    session: Session,
    stores: Stores,
    replay: Replay,
    typed: Sequence[str] = (),
    *,
    actor: Actor,
    at: datetime,
) -> Job:
    """The job that sends what was only looked at so far, or was held back before anything was sent.

    Raises Conflict where a guard holds it back.
    """
    session.refresh(replay, with_for_update=True)
    if replay.state not in STARTABLE:
        raise Conflict(f"Replay {replay.id} is {replay.state}; it cannot be started.")
    _agree(session, replay, sides(session, replay), typed, actor=actor, at=at)
    return _queue(session, stores, replay, send=True, actor=actor, at=at)


def cancel_replay(session: Session, replay: Replay, *, actor: Actor, at: datetime) -> Job:
    """Stop it within a second; what was measured stays. Raises Conflict when it is over."""
    job = _job(session, replay)
    request_cancel(session, job, actor, at)
    return job


def resume_replay(
    session: Session,
    stores: Stores,
    replay: Replay,
    typed: Sequence[str] = (),
    *,
    actor: Actor,
    at: datetime,
) -> Job:
    """Go on where it stopped; what was answered is not sent again, what was in flight is.

    This is the consent to send once more. Raises Conflict where a guard holds it back.
    """
    session.refresh(replay, with_for_update=True)
    if replay.state not in RESUMABLE:
        raise Conflict(f"Replay {replay.id} is {replay.state}; there is nothing to go on with.")
    job = _job(session, replay)
    if ReplayRequests(**job.arguments).send:
        _agree(session, replay, sides(session, replay), typed, actor=actor, at=at)
    request_resume(session, stores.outbox, job, actor, at)
    return job


def get_replay(session: Session, replay_id: int) -> Replay:
    """The replay of that number; raises NotFound."""
    replay = session.get(Replay, replay_id) if replay_id < LARGEST_ID else None
    if replay is None:
        raise NotFound(f"There is no replay {replay_id}.")
    return replay


def replays_of(session: Session, incident_id: int) -> Sequence[Replay]:
    """The replays of an incident, newest first."""
    query = select(Replay).where(Replay.incident_id == incident_id)
    return session.exec(query.order_by(col(Replay.id).desc())).all()


def replays_of_dump(session: Session, dump_id: int) -> Sequence[Replay]:
    """The replays of a dump's requests, newest first."""
    query = select(Replay).where(Replay.dump_id == dump_id)
    return session.exec(query.order_by(col(Replay.id).desc())).all()


def trials_of(session: Session, replay_id: int) -> Sequence[ReplayTrial]:
    """The trials of a replay in the order of running, as far as they were begun."""
    query = select(ReplayTrial).where(ReplayTrial.replay_id == replay_id)
    return session.exec(query.order_by(col(ReplayTrial.number))).all()


def sides(session: Session, replay: Replay) -> list[Target]:
    """Side A and, where there is one, side B."""
    ids = [one for one in (replay.target_id, replay.other_target_id) if one is not None]
    return [get_target(session, one) for one in ids]


def _source(session: Session, new: NewReplay) -> tuple[Artifact, Dump | None]:
    """The file of the requests. Raises NotFound, and Conflict where its bytes are gone."""
    if (new.dump_id is None) == (new.artifact_id is None):
        raise Rejected("Name the requests by dump_id or artifact_id, one of the two.")
    named = Dump.id == new.dump_id if new.dump_id is not None else None
    if named is None:
        named = Dump.artifact_id == new.artifact_id
    dump = session.exec(select(Dump).where(named)).first()
    if dump is None and new.artifact_id is None:
        raise NotFound(f"There is no dump {new.dump_id}.")
    artifact = get_artifact(session, dump.artifact_id if dump else new.artifact_id or 0)
    if artifact.incident_id != new.incident_id:
        raise NotFound(f"Incident {new.incident_id} has no such file of requests.")
    if artifact.purged_at:
        raise Conflict(f"The bytes of artifact {artifact.id} are purged: nothing can be sent.")
    if dump is not None and dump.state == "unreadable":
        raise Conflict(f"Dump {dump.id} cannot be read: {dump.says}")
    if "suspect" in new.select and (dump is None or dump.state != "ready"):
        raise Conflict(
            "Which requests are suspects is known once the file is read as a dump.",
            fix="Wait until it is read, or choose by index.",
        )
    return artifact, dump


def _targets(session: Session, new: NewReplay) -> list[Target]:
    ids = [one for one in (new.target_id, new.other_target_id) if one is not None]
    targets = [get_target(session, one) for one in ids]
    for one in targets:
        if one.deleted_at is not None:
            raise Rejected(f"Target {one.id} is deleted.", fix="Choose a registered target.")
    if len({one.base_url for one in targets}) < len(targets):
        raise Rejected("Sides A and B are the same server.", fix="Ask for trials instead.")
    return targets


def _usual_symptom(incident: Incident) -> Symptom:
    known = incident.problem_class
    return symptom_of(ProblemClass(known) if known else None)


def _agree(
    session: Session,
    replay: Replay,
    targets: Sequence[Target],
    typed: Sequence[str],
    *,
    actor: Actor,
    at: datetime,
) -> None:
    """Write down who confirmed which target; raises Conflict where that is missing."""
    refuse_rival(session, targets, but=replay.id)
    names = [one.strip() for one in typed]
    for target in targets:
        wanted = to_confirm(session, replay.incident_id, target)
        if wanted is not None and target.name not in names:
            raise Conflict(wanted.says, fix=wanted.fix)
        if target.name in names:
            told = {
                "target_id": target.id,
                "name": target.name,
                "base_url": target.base_url,
                "why": wanted.says if wanted else "",
                "by": actor.name,
                "at": at.isoformat(),
            }
            replay.confirmed = [*replay.confirmed, told]


def _queue(
    session: Session, stores: Stores, replay: Replay, *, send: bool, actor: Actor, at: datetime
) -> Job:
    assert replay.id is not None
    job = request(
        session,
        stores.outbox,
        ReplayRequests(replay.id, send=send),
        incident_id=replay.incident_id,
        target_id=replay.target_id,
        actor=actor,
        at=at,
    )
    replay.job_id, replay.state, replay.says = job.id, "waiting", job.says
    replay.finished_at = None
    replay.version += 1
    audit.note(
        session,
        actor,
        "replay.send" if send else "replay.look",
        f"replay:{replay.id}",
        at=at,
        artifact_id=replay.artifact_id,
        dump_id=replay.dump_id,
        target_ids=[replay.target_id, replay.other_target_id],
        allowed=replay.options["allow"],
        confirmed=[one["name"] for one in replay.confirmed],
    )
    return job


def _job(session: Session, replay: Replay) -> Job:
    if replay.job_id is None:
        raise NotFound(f"Replay {replay.id} has no job.")
    return get_job(session, replay.job_id)
