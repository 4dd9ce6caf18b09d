"""Replays of a few requests against a target on this machine, asked for as a person asks."""

from collections.abc import Iterable
from dataclasses import replace
from typing import Any

import orjson

from app.domain.replay.options import Options
from app.store import evidence, replays
from app.store.database import reading, writing
from app.store.replays import NewReplay
from app.store.stores import Stores
from app.store.tables import Job, Replay, Target
from tests.integration import make

BEGAN = 1_764_500_000.0
QUICK = Options(mode="flat-out", parallel=8)


def line(index: int, kind: str = "cumulative", *, at: float = 0.0, **more: Any) -> bytes:
    """A request as a line of ``dump export``; *kind* tells the target how to answer it."""
    told = {
        "index": index,
        "rid": f"rid-{index}",
        "started_at": BEGAN + at,
        "endpoint": "/generate",
        "payload": {"text": kind, "stream": True, "sampling_params": {"max_new_tokens": 4}},
        "recorded": {"state": "finished", "completion_tokens": 4, "e2e_seconds": 0.1},
        **more,
    }
    return orjson.dumps(told) + b"\n"


def file_of(stores: Stores, incident_id: int, lines: Iterable[bytes]) -> int:
    """The number of the artifact that these lines are, on an incident."""
    stored = stores.artifacts.put(b"".join(lines))
    with writing(stores.engine) as session:
        artifact = evidence.attach(
            session,
            stored,
            incident_id=incident_id,
            actor=make.MIRA,
            at=make.now(),
            name="requests.jsonl",
            taken_from="a test",
        )
    assert artifact.id is not None
    return artifact.id


def clean_target(stores: Stores, base_url: str, name: str) -> Target:
    target = make.target(stores, base_url, name)
    with writing(stores.engine) as session:
        session.get_one(Target, target.id).clean = True
    return target


def asked(
    stores: Stores, new: NewReplay, *lines: bytes, options: Options = QUICK
) -> tuple[int, int]:
    """The numbers of a replay of *lines* and of its job."""
    artifact_id = file_of(stores, new.incident_id, lines)
    full = replace(new, artifact_id=artifact_id, options=options)
    with writing(stores.engine) as session:
        job, replay = replays.request_replay(session, stores, full, actor=make.MIRA, at=make.now())
    assert job.id is not None
    assert replay.id is not None
    return replay.id, job.id


def replay_at(stores: Stores, replay_id: int) -> Replay:
    with reading(stores.engine) as session:
        return replays.get_replay(session, replay_id)


def ended(stores: Stores, replay_id: int, *states: str, seconds: float = 60) -> Replay:
    """The replay once its job is in one of *states*, "succeeded" unless given."""
    job_id = replay_at(stores, replay_id).job_id
    assert job_id is not None
    make.until(stores, job_id, *(states or ("succeeded",)), seconds=seconds)
    return replay_at(stores, replay_id)


def job_of(stores: Stores, replay_id: int) -> Job:
    with reading(stores.engine) as session:
        return session.get_one(Job, replays.get_replay(session, replay_id).job_id)
