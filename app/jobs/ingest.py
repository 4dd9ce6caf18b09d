"""Read a dump: apart from us, its rows into the store as they come, its summary at the end.

The bytes are kept already. Cut off in the middle it is read anew from the start, as rows without
the end of their file say nothing; an attempt that was superseded writes nothing any more.
"""

from collections.abc import Mapping, Sequence
from concurrent.futures import wait
from datetime import UTC, datetime
from threading import Event
from typing import Any

from app.clients.dumps import Reading, index_file
from app.domain.dumps.recorded import Row
from app.domain.playbook import DumpRead, IngestDump
from app.jobs.unpacking import MOST_MEMBERS, unpack
from app.jobs.work import LOOK_SECONDS, Work
from app.store import attempts, audit, dumps, incidents, jobs, timeline
from app.store.aside import aside
from app.store.attempts import Cancelled
from app.store.audit import CONSOLE
from app.store.database import reading, writing
from app.store.dump_tables import Dump
from app.store.evidence import get_artifact
from app.store.tables import Artifact, Job


def ingest(work: Work) -> bool:
    """Read the dump of the job; False: it is over."""
    dump_id = IngestDump(**work.job.arguments).dump_id
    with reading(work.stores.engine) as session:
        artifact = get_artifact(session, dumps.get_dump(session, dump_id).artifact_id)
    dumps.begin(work.stores, work.attempt, dump_id)
    document = _document(work, dump_id, artifact)
    if 1 < len(document.get("members") or ()) <= MOST_MEMBERS:
        document = _of_archive(work, artifact, document)
    _finish(work, dump_id, document)
    return False


def _document(work: Work, dump_id: int, artifact: Artifact) -> Mapping[str, Any]:
    """What reading *artifact* told, its rows written. Raises what ``Work.check`` raises."""
    stopped = Event()

    def take(rows: Sequence[Row]) -> None:
        if stopped.is_set():
            raise Cancelled  # ends the reader, which nobody waits for any more
        dumps.add_rows(work.stores, work.attempt, dump_id, rows)

    def read() -> Mapping[str, Any]:
        told = Reading(called=artifact.name, key=work.stores.vault.fingerprint_key)
        with work.stores.artifacts.as_file(artifact.sha256) as path:
            return index_file(path, reading=told, take=take)

    future = aside(read, name=f"read dump {dump_id}")
    try:
        while not wait([future], LOOK_SECONDS).done:
            work.check()
    finally:
        stopped.set()
    return future.result()


def _of_archive(work: Work, artifact: Artifact, document: Mapping[str, Any]) -> Mapping[str, Any]:
    """*document* of an archive whose files were unpacked, each to be read by a job of its own."""
    unpacked = unpack(work, artifact, document["members"])
    left = tuple(f"Left out: {why}." for why in unpacked.left_out)
    return {**document, "dumps_inside": unpacked.dumps, "problems": left}


def _finish(work: Work, dump_id: int, document: Mapping[str, Any]) -> None:
    """Dump, artifact, incident and job: all of it or nothing."""
    now = datetime.now(UTC)
    with writing(work.stores.engine) as session:
        job = attempts.held(session, work.attempt)
        dump = dumps.settle(session, dump_id, document, at=now)
        _describe(get_artifact(session, dump.artifact_id), dump)
        told = DumpRead(dump_id, dump.name, dump.says, readable=_is_read(dump))
        timeline.record(session, told, incident_id=dump.incident_id, actor=CONSOLE, at=now)
        audit.note(session, CONSOLE, "dump.read", f"dump:{dump_id}", at=now, says=dump.says)
        incidents.take_in(session, dump.incident_id, at=now)
        _end(job, dump)
        jobs.succeeded(session, job, dump.says, at=now)


def _describe(artifact: Artifact, dump: Dump) -> None:
    """What the artifact is, and of which time it is evidence, as far as the file tells."""
    if dump.state != "ready":
        return
    artifact.kind = dump.kind or artifact.kind
    if dump.first_at is not None and dump.last_at is not None:
        artifact.covers_from, artifact.covers_to = map(_moment, (dump.first_at, dump.last_at))


def _moment(seconds: float) -> datetime | None:
    """None for a time that no calendar has: the file may say anything."""
    try:
        return datetime.fromtimestamp(seconds, UTC)
    except (OverflowError, ValueError, OSError):
        return None


def _is_read(dump: Dump) -> bool:
    return dump.state == "ready" or bool((dump.document or {}).get("dumps_inside"))


def _end(job: Job, dump: Dump) -> None:
    job.result = {"dump_id": dump.id}
    job.done = job.total = dump.requests_total or 0
