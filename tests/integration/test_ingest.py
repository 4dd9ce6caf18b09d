"""Dumps are read by a job, on both databases: whole, once, and however the file is made."""

import io
import zipfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from sqlmodel import select

from app.errors import Conflict, NotFound
from app.store import attaching, dump_rows, dumps, jobs, looked
from app.store.attaching import Sent, Taken
from app.store.attempts import Attempt, Superseded
from app.store.database import reading, writing
from app.store.dump_rows import Wanted
from app.store.dump_tables import Dump, DumpRequest
from app.store.evidence import purge
from app.store.stores import Stores
from app.store.tables import Artifact, TimelineEvent
from tests import recorded
from tests.integration import make
from tests.integration.at_work import at_work
from tests.integration.conftest import MakeStores

pytestmark = pytest.mark.slow

ATTACKS = Path(__file__).parents[3] / "shared/attacks"


@pytest.fixture(scope="module")
def stores(make_stores: MakeStores, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Stores]:
    with at_work(make_stores(tmp_path_factory.mktemp("data"))) as opened:
        yield opened


def _send(stores: Stores, incident_id: int, content: bytes, name: str = "crash.pkl") -> Taken:
    sent = Sent(name, "upload from a test")
    stored = stores.artifacts.put(content)
    return attaching.take_in(
        stores, stored, sent, incident_id=incident_id, actor=make.MIRA, at=make.now()
    )


def _read(stores: Stores, taken: Taken, *states: str) -> Dump:
    """The dump as soon as its job is in one of *states*, "succeeded" unless given."""
    assert taken.dump_id is not None
    with reading(stores.engine) as session:
        job_id = dumps.get_dump(session, taken.dump_id).job_id
    assert job_id is not None
    make.until(stores, job_id, *(states or ("succeeded",)), seconds=60)
    with reading(stores.engine) as session:
        return dumps.get_dump(session, taken.dump_id)


def test_a_crash_dump_is_read_told_and_kept_at_tier_two(stores: Stores) -> None:
    incident_id = make.incident(stores)

    taken = _send(stores, incident_id, recorded.crash_dump(20, 3), "unnamed")
    dump = _read(stores, taken)

    assert (dump.state, dump.kind) == ("ready", "crash dump")
    assert (dump.requests_total, dump.finished, dump.unfinished, dump.aborted) == (23, 20, 3, 0)
    assert dump.says == "Crash dump: 23 requests, 3 unfinished."
    assert (dump.first_at, dump.last_at) == (recorded.BEGAN, recorded.BEGAN + 0.19 + 1.5)
    assert dump.document is not None
    assert "requests" not in dump.document
    assert "sk-FAKE-1" not in str(dump.document)
    with reading(stores.engine) as session:
        artifact = session.get_one(Artifact, taken.artifact_id)
        events = session.exec(
            select(TimelineEvent.kind).where(TimelineEvent.incident_id == incident_id)
        ).all()
        row = dump_rows.row_of(dump_rows.request_at(session, dump.id or 0, 4))
        unfinished = dump_rows.count_of(session, dump.id or 0, Wanted(state="unfinished"))
    assert (artifact.kind, artifact.tier) == ("crash dump", "T2")
    assert artifact.covers_from is not None
    assert events == ["ArtifactAttached", "StepRequested", "DumpRead"]
    assert unfinished == 3
    assert (row["prompt_tokens"], row["stream"]) == (8, True)
    assert row["sampling"]["temperature"] == 0.5


def test_what_was_in_flight_becomes_a_claim_of_the_incident(stores: Stores) -> None:
    incident_id = make.incident(stores)
    _read(stores, _send(stores, incident_id, recorded.crash_dump(5, 1)))
    with reading(stores.engine) as session:
        [found] = looked.findings_of(session, incident_id)
    claims = {one["id"]: one for one in found["claims"]}
    flight = claims["requests-in-flight"]
    assert flight["says"] == "1 of 6 requests was unfinished when crash.pkl was written."
    assert flight["status"] == "established"
    assert found["problem_class"] is None


def test_a_request_dump_claims_nothing(stores: Stores) -> None:
    incident_id = make.incident(stores)
    content = recorded.dump([recorded.request(one) for one in range(4)], crash=False)
    dump = _read(stores, _send(stores, incident_id, content, "2026-11-30_12-00-00.pkl"))
    assert dump.kind == "request dump"
    with reading(stores.engine) as session:
        assert looked.findings_of(session, incident_id) == []


def test_the_same_file_twice_is_one_dump_and_that_is_told(stores: Stores) -> None:
    incident_id, content = make.incident(stores), recorded.crash_dump(3, 0)
    first = _send(stores, incident_id, content)
    _read(stores, first)
    second = _send(stores, incident_id, content, "another-name.pkl")
    elsewhere = _send(stores, make.incident(stores), content)
    assert second == Taken(first.artifact_id, dump_id=first.dump_id, here_already=True)
    assert elsewhere.dump_id != first.dump_id
    with reading(stores.engine) as session:
        query = select(DumpRequest).where(DumpRequest.dump_id == first.dump_id)
        assert len(session.exec(query).all()) == 3


@pytest.mark.parametrize(
    ("content", "why"),
    [
        pytest.param(b"", "empty", id="empty"),
        pytest.param(b"<!doctype html><title>Sign in</title>", "web page", id="a-web-page"),
        pytest.param(b"\x80\x04\x95" + b"\xff" * 8 + b"]", "", id="a-frame-that-lies"),
    ],
)
def test_what_cannot_be_read_says_why_and_stays_evidence(
    stores: Stores, content: bytes, why: str
) -> None:
    taken = _send(stores, make.incident(stores), content, "crash.pkl")
    dump = _read(stores, taken)
    assert dump.state == "unreadable"
    assert dump.says.startswith("Cannot be read: ")
    assert why in dump.says
    with reading(stores.engine) as session:
        artifact = session.get_one(Artifact, taken.artifact_id)
    assert (artifact.kind, artifact.purged_at) == ("dump", None)
    assert stores.artifacts.verify(artifact.sha256)


def test_an_archive_of_several_dumps_becomes_several_dumps(stores: Stores) -> None:
    incident_id, file = make.incident(stores), io.BytesIO()
    with zipfile.ZipFile(file, "w", zipfile.ZIP_DEFLATED) as archive:
        archive.writestr("host-a/crash.pkl", recorded.crash_dump(5, 1))
        archive.writestr("host-b/../../etc/crash.pkl", recorded.crash_dump(7, 2))
        archive.writestr("notes.txt", "nothing")
        archive.writestr("inner.zip", b"PK\x03\x04" + bytes(60))
    taken = _send(stores, incident_id, file.getvalue(), "all.zip")
    whole = _read(stores, taken)
    assert whole.says == "Archive of 4 files: 2 of them became dumps of their own."
    assert whole.document is not None
    assert whole.document["problems"] == [
        "Left out: notes.txt: no file of requests.",
        "Left out: inner.zip: it is packed itself.",
    ]
    with reading(stores.engine) as session:
        found = dumps.dumps_of(session, incident_id)
    inside = [_read(stores, Taken(one.artifact_id, dump_id=one.id)) for one in found[:-1]]
    assert {(one.name, one.requests_total, one.unfinished) for one in inside} == {
        ("crash.pkl", 6, 1),
        ("crash.pkl", 9, 2),
    }
    with reading(stores.engine) as session:
        artifact = session.get_one(Artifact, inside[0].artifact_id)
    assert artifact.tier == "T2"
    assert artifact.taken_from.startswith(f"all.zip (artifact {taken.artifact_id}), file host-")


@pytest.mark.slow
def test_no_hostile_file_breaks_the_job(stores: Stores, tmp_path: Path) -> None:
    if not ATTACKS.is_dir():
        pytest.skip("the shared folder with hostile files is not here")
    incident_id = make.incident(stores)
    files = sorted((ATTACKS / "pickle").glob("*.pkl"))
    sent = [_send(stores, incident_id, one.read_bytes(), one.name) for one in files]
    states = {one.name: _read(stores, taken).state for one, taken in zip(files, sent, strict=True)}
    assert set(states.values()) <= {"ready", "unreadable"}
    assert states["94_legit_proto4.pkl"] == "ready"


def test_purging_the_bytes_takes_the_rows_and_leaves_a_tombstone(stores: Stores) -> None:
    taken = _send(stores, make.incident(stores), recorded.crash_dump(9, 1))
    dump = _read(stores, taken)
    purge(stores, taken.artifact_id, actor=make.MIRA, reason="names in it", at=make.now())
    with reading(stores.engine) as session:
        left = dumps.get_dump(session, dump.id or 0)
        assert session.exec(select(DumpRequest).where(DumpRequest.dump_id == dump.id)).all() == []
        with pytest.raises(Conflict, match="is purged"):
            dumps.read_dump(session, dump.id or 0)
    assert (left.state, left.document) == ("purged", None)
    assert left.says == "Purged: names in it"
    assert _send(stores, dump.incident_id, recorded.crash_dump(9, 1)).here_already is False


def test_a_reading_that_was_cancelled_can_be_resumed(stores: Stores) -> None:
    incident_id = make.incident(stores)
    first = _send(stores, incident_id, recorded.dump([recorded.request(n) for n in range(20_000)]))
    second = _send(stores, incident_id, recorded.crash_dump(2, 1))  # waits for the first
    for taken in (first, second):
        _cancel(stores, taken)
    cancelled = [_read(stores, one, "cancelled") for one in (first, second)]
    _resume(stores, second)
    assert [one.state for one in cancelled] == ["cancelled", "cancelled"]
    assert _read(stores, second).state == "ready"
    with reading(stores.engine) as session, pytest.raises(Conflict, match="is cancelled"):
        dumps.read_dump(session, first.dump_id or 0)


def test_an_attempt_that_is_void_adds_no_row(stores: Stores) -> None:
    taken = _send(stores, make.incident(stores), recorded.crash_dump(2, 0))
    dump = _read(stores, taken)
    with pytest.raises(Superseded):
        dumps.add_rows(stores, Attempt(dump.job_id or 0, "of before"), dump.id or 0, [_row(7)])
    with reading(stores.engine) as session, pytest.raises(NotFound):
        dump_rows.request_at(session, dump.id or 0, 7)


def _job(stores: Stores, taken: Taken) -> int:
    with reading(stores.engine) as session:
        return dumps.get_dump(session, taken.dump_id or 0).job_id or 0


def _cancel(stores: Stores, taken: Taken) -> None:
    with writing(stores.engine) as session:
        job = jobs.get_job(session, _job(stores, taken))
        jobs.request_cancel(session, job, make.MIRA, make.now())


def _resume(stores: Stores, taken: Taken) -> None:
    with writing(stores.engine) as session:
        job = jobs.get_job(session, _job(stores, taken))
        jobs.request_resume(session, stores.outbox, job, make.MIRA, make.now())


def _row(index: int, **given: Any) -> Any:
    return {
        "index": index,
        "rid": f"r{index}",
        "state": "finished",
        "endpoint": "/generate",
        "prompt_tokens": 8,
        "completion_tokens": 3,
        "cached_tokens": None,
        "prompt_characters": None,
        "stream": False,
        "started_at": 1.0,
        "finished_at": 2.0,
        "elapsed_seconds": 1.0,
        "finish_reason": "stop",
        "sampling": {},
        "features": (),
        "problems": (),
        **given,
    }
