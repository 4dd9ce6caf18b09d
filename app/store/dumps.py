"""Dumps of an incident: asked to be read, read back, forgotten with their bytes.

The bytes are an artifact first; reading them is a job. Equal bytes of one incident are read once.
"""

from collections.abc import Iterable, Mapping, Sequence
from datetime import datetime
from typing import Any

from sqlalchemy import case
from sqlmodel import Session, col, func, select

from app.domain.dump_words import summed_up
from app.domain.dumps.recorded import Row
from app.domain.playbook import IngestDump
from app.errors import Conflict, NotFound
from app.store import attempts, dump_rows
from app.store.attempts import Attempt
from app.store.audit import Actor
from app.store.database import reading, writing
from app.store.dump_spread import spread_of
from app.store.dump_tables import Dump, DumpRequest
from app.store.outbox import Outbox, request
from app.store.stores import Stores
from app.store.tables import Artifact, Job

KIND = "dump"  # of its artifact until it is read
READ = ("ready", "unreadable")  # with a document, and with rows as far as they could be read
LARGEST_ID = 2**63


def request_ingest(
    session: Session, outbox: Outbox, artifact: Artifact, *, actor: Actor, at: datetime
) -> tuple[Job | None, Dump]:
    """The dump of *artifact* and the job that reads it; no job where it is there already.

    The same bytes on the same incident are one dump, however often they come.
    """
    assert artifact.id is not None
    assert artifact.incident_id is not None
    if known := known_dump(session, artifact.incident_id, artifact.sha256):
        return None, known
    dump = Dump(
        incident_id=artifact.incident_id,
        artifact_id=artifact.id,
        sha256=artifact.sha256,
        name=artifact.name,
        says="Waiting to be read.",
        added_by=actor.name,
        added_at=at,
    )
    session.add(dump)
    session.flush()
    assert dump.id is not None
    job = request(
        session,
        outbox,
        IngestDump(dump.id),
        incident_id=artifact.incident_id,
        target_id=None,
        actor=actor,
        at=at,
    )
    dump.job_id = job.id
    return job, dump


def known_dump(session: Session, incident_id: int, sha256: str) -> Dump | None:
    """The dump of these bytes on an incident; None where there is none, or where it was purged."""
    query = select(Dump).where(
        Dump.incident_id == incident_id, Dump.sha256 == sha256, Dump.state != "purged"
    )
    return session.exec(query.order_by(col(Dump.id))).first()


def get_dump(session: Session, dump_id: int) -> Dump:
    """The dump of that number, whatever its state; raises NotFound."""
    dump = session.get(Dump, dump_id) if dump_id < LARGEST_ID else None
    if dump is None:
        raise NotFound(f"There is no dump {dump_id}.")
    return dump


def read_dump(session: Session, dump_id: int) -> Dump:
    """The dump of that number once it was read; raises NotFound, and Conflict before that."""
    dump = get_dump(session, dump_id)
    if dump.state in READ:
        return dump
    raise Conflict(
        f"Dump {dump_id} is {dump.state}.",
        why=dump.says,
        fix=None if dump.state == "purged" else f"Look at job {dump.job_id}.",
    )


def dumps_of(session: Session, incident_id: int) -> Sequence[Dump]:
    """The dumps of an incident, newest first, purged ones included."""
    query = select(Dump).where(Dump.incident_id == incident_id)
    return session.exec(query.order_by(col(Dump.id).desc())).all()


def foremost_dumps(session: Session, incident_id: int, *, limit: int) -> Sequence[Dump]:
    """Some dumps of an incident that still have their bytes: crash dumps first, then the newest."""
    rank = case((col(Dump.kind) == "crash dump", 0), else_=1)
    query = select(Dump).where(Dump.incident_id == incident_id, Dump.state != "purged")
    return session.exec(query.order_by(rank, col(Dump.id).desc()).limit(limit)).all()


def count_dumps(session: Session, incident_id: int) -> int:
    """How many dumps an incident has, purged ones included."""
    query = select(func.count()).select_from(Dump).where(Dump.incident_id == incident_id)
    return session.exec(query).one()


def dump_of_artifact(session: Session, artifact_id: int) -> Dump | None:
    """The dump that an artifact is; None if it is none."""
    return session.exec(select(Dump).where(Dump.artifact_id == artifact_id)).first()


def begin(stores: Stores, attempt: Attempt, dump_id: int) -> None:
    """Start reading anew: rows that an attempt left behind that was cut off are dropped."""
    more = True
    while more:
        with writing(stores.engine) as session:
            attempts.held(session, attempt)
            dump = _unpurged(session, dump_id)
            dump.state, dump.says = "reading", "Reading."
            more = dump_rows.drop_rows(session, dump_id)


def add_rows(stores: Stores, attempt: Attempt, dump_id: int, rows: Sequence[Row]) -> None:
    """Write some requests in a transaction of their own.

    Raises Superseded where another worker has the job, Cancelled, and Conflict once it is purged.
    """
    with writing(stores.engine) as session:
        attempts.asked_to_stop(session, attempt)
        _unpurged(session, dump_id)
        dump_rows.put_rows(session, dump_id, rows)
        done = rows[-1]["index"] + 1
        attempts.progress(session, attempt, f"{done} requests read.", done=done)


def settle(session: Session, dump_id: int, document: Mapping[str, Any], *, at: datetime) -> Dump:
    """Write what reading told. In the caller's transaction, which ends the job."""
    dump = _unpurged(session, dump_id)
    dump.document = {name: value for name, value in document.items() if name != "requests"}
    dump.state = "unreadable" if document.get("kind") == "unreadable" else "ready"
    dump.kind = document.get("kind")
    dump.says, dump.read_at = summed_up(document), at
    for name in ("requests_total", "finished", "unfinished", "aborted"):
        setattr(dump, name, document.get(name))
    dump.sglang_version = document.get("sglang_version")
    dump.model_path = document.get("model_path")
    dump_rows.mark_suspects(session, dump_id, _indexes(document.get("suspects") or ()))
    dump.first_at, dump.last_at = dump_rows.span_of(session, dump_id)
    dump.spread = {**spread_of(session, dump_id)}
    return dump


def forget(session: Session, artifact: Artifact) -> None:
    """Leave of the dump of *artifact* what its tombstone tells; its rows go with ``drop_rows``."""
    assert artifact.id is not None
    dump = dump_of_artifact(session, artifact.id)
    if dump is None:
        return
    dump.state, dump.document, dump.spread = "purged", None, None
    dump.says = f"Purged: {artifact.purge_reason}"


def drop_purged(stores: Stores) -> int:
    """Delete rows of dumps that were purged, a few at a time; of how many dumps there were any."""
    with reading(stores.engine) as session:
        rows = select(DumpRequest.dump_id).where(DumpRequest.dump_id == Dump.id).exists()
        ids = session.exec(select(Dump.id).where(Dump.state == "purged", rows)).all()
    for dump_id in ids:
        more = True
        while more:
            with writing(stores.engine) as session:
                more = dump_rows.drop_rows(session, dump_id or 0)
    return len(ids)


def _unpurged(session: Session, dump_id: int) -> Dump:
    """The dump, locked against being purged before this transaction ends."""
    dump = session.exec(select(Dump).where(Dump.id == dump_id).with_for_update()).one()
    if dump.state == "purged":
        raise Conflict(f"Dump {dump_id} is purged.", why=dump.says)
    return dump


def _indexes(suspects: Iterable[Mapping[str, Any]]) -> Iterable[int]:
    return (one["index"] for one in suspects if isinstance(one.get("index"), int))
