"""Replays as jobs, on both databases: from the press to the verdict, and every way to stop."""

import time
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import replace
from itertools import count
from typing import Any

import pytest
from sqlmodel import col, select

from app.domain.replay.options import Options
from app.domain.urgency import Rank
from app.errors import Conflict
from app.store import attaching, dump_rows, dumps, evidence, looked, replay_rows, replays
from app.store.attaching import Sent
from app.store.database import reading, writing
from app.store.replay_offers import replay_offers
from app.store.replay_rows import Wanted
from app.store.replays import NewReplay
from app.store.stores import Stores
from app.store.tables import (
    AuditEvent,
    BundleRow,
    Incident,
    IncidentTarget,
    ReplayTrial,
    Target,
    TimelineEvent,
)
from tests import recorded
from tests.integration import make
from tests.integration.at_work import at_work
from tests.integration.conftest import MakeStores
from tests.integration.replayed import (
    QUICK,
    asked,
    clean_target,
    ended,
    file_of,
    job_of,
    line,
    replay_at,
)
from tests.integration.scripted_target import answers, says, scripted_target
from tests.replaying import ReplayTarget, replay_target
from tests.waiting import BUSY, until

pytestmark = pytest.mark.slow

_NAMES = count()


@pytest.fixture(scope="module")
def stores(make_stores: MakeStores, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Stores]:
    with at_work(make_stores(tmp_path_factory.mktemp("data"))) as opened:
        yield opened


@pytest.fixture
def server() -> Iterator[ReplayTarget]:
    with replay_target() as target:
        yield target


def _new(stores: Stores, server: ReplayTarget) -> NewReplay:
    """For a clean target that nobody else replays to."""
    target = clean_target(stores, server.base_url, f"clean-{next(_NAMES)}")
    assert target.id is not None
    return NewReplay(make.incident(stores), target.id)


def test_a_replay_sends_measures_and_says_what_it_means(
    stores: Stores, server: ReplayTarget
) -> None:
    new = _new(stores, server)
    replay_id, _ = asked(stores, new, *(line(n, at=n / 10) for n in range(12)))

    replay = ended(stores, replay_id)

    assert (replay.state, replay.planned, replay.total) == ("done", 12, 12)
    assert (replay.sent, replay.completed, replay.failed) == (12, 12, 0)
    assert replay.verdict == "not reproduced"
    assert replay.summary is not None
    assert (replay.summary["sent"], replay.summary["symptom"]) == (12, "crash")
    [trial] = _trials(stores, replay_id)
    assert (trial.state, trial.sent, trial.errors) == ("done", 12, {})
    assert trial.strangers is not None
    assert trial.strangers["of_others"] == 0
    rows = _rows(stores, replay_id)
    assert [one["index"] for one in rows] == list(range(12))
    assert {one["completion_tokens"] for one in rows} == {4}
    assert rows[0]["recorded"]["e2e_seconds"] == 0.1
    assert job_of(stores, replay_id).done == 12
    assert {one["body"]["text"] for one in server.seen()} == {"cumulative"}


def test_what_a_replay_leaves_behind_is_evidence_of_the_incident_alone(
    stores: Stores, server: ReplayTarget
) -> None:
    new = _new(stores, server)
    replay_id, _ = asked(stores, new, *(line(n) for n in range(4)))
    ended(stores, replay_id)

    with reading(stores.engine) as session:
        kinds = [one.kind for one in evidence.artifacts_of(session, new.incident_id)]
        [trial] = replays.trials_of(session, replay_id)
        before = session.get_one(BundleRow, trial.bundle_before_id)
        after = session.get_one(BundleRow, trial.bundle_after_id)
        incident = session.get_one(Incident, new.incident_id)
        told = session.exec(select(TimelineEvent).order_by(col(TimelineEvent.id))).all()
        noted = session.exec(
            select(AuditEvent.action).where(AuditEvent.subject == f"replay:{replay_id}")
        ).all()
        artifact_id = replays.get_replay(session, replay_id).outcomes_artifact_id
        outcomes = evidence.get_artifact(session, artifact_id or 0)
    assert sorted(kinds) == ["bundle", "bundle", "not recognised yet", "replay outcomes"]
    assert (before.state, after.state) == ("complete", "complete")
    assert (before.incident_id, after.incident_id) == (None, None), "it judges no server of theirs"
    assert incident.verdict == "unknown", "no bundle of a server that it is about"
    assert incident.headline is not None
    assert incident.headline["id"] == "replay-not-reproduced"
    mine = [one.kind for one in told if one.incident_id == new.incident_id]
    assert "ReplayEnded" in mine
    assert noted == ["replay.send", "replay.read", "replay.end"]
    kept = stores.artifacts.read(outcomes.sha256, 10**6).splitlines()
    assert (outcomes.tier, len(kept)) == ("T2", 4)
    assert b"cumulative" not in b"".join(kept), "no text of a prompt"


def test_a_target_that_goes_away_is_a_finding_with_its_recipe(stores: Stores) -> None:
    with replay_target(dies_after=6) as server:
        new = _new(stores, server)
        one_by_one = replace(QUICK, parallel=1)
        lines = (line(n) for n in range(12))
        replay_id, _ = asked(stores, new, *lines, options=one_by_one)
        replay = ended(stores, replay_id)

    assert replay.verdict == "reproduced"
    [trial] = _trials(stores, replay_id)
    assert trial.died is not None
    assert (trial.died["last_sent"], trial.died["in_flight"]) == (5, [5])
    assert trial.after == "down"
    assert trial.recipe is not None
    assert trial.recipe["version"] == "0.5.23"
    assert trial.recipe["exports"]["CUDA_ENABLE_COREDUMP_ON_EXCEPTION"] == "1"
    assert trial.recipe["appears_at"].endswith("core.cuda.<seconds since 1970>.<pid>")
    with reading(stores.engine) as session:
        incident = session.get_one(Incident, new.incident_id)
        query = select(TimelineEvent).where(TimelineEvent.incident_id == new.incident_id)
        [died] = [one for one in session.exec(query) if one.kind == "ReplayTargetDied"]
    assert incident.headline is not None
    assert incident.headline["id"] == "replay-target-died"
    assert "after request 5" in incident.headline["says"]
    assert incident.rank != Rank.FAILING, "a server that serves nobody is down"
    assert died.detail["in_flight"] == [5]


def test_others_on_the_target_stop_a_replay_before_its_first_request(
    stores: Stores, server: ReplayTarget
) -> None:
    new = replace(_new(stores, server), typed=("clean-a",))
    server.get("/__running/2")
    typed = replace(new, typed=(_target(stores, new).name,))
    replay_id, _ = asked(stores, typed, line(0))

    replay = ended(stores, replay_id, "failed")

    assert replay.state == "refused"
    assert "serving 2 requests of others" in replay.says
    assert server.seen() == []
    assert _rows(stores, replay_id) == []
    [trial] = _trials(stores, replay_id)
    assert trial.bundle_before_id is not None, "it shows why"
    assert trial.strangers is not None
    assert trial.strangers["of_others"] == 2

    server.get("/__running/0")
    with writing(stores.engine) as session:
        row = replays.get_replay(session, replay_id)
        replays.start_replay(session, stores, row, actor=make.MIRA, at=make.now())
    assert ended(stores, replay_id).state == "done"
    assert len(server.seen()) == 1


def test_a_target_that_does_not_serve_is_sent_nothing(stores: Stores) -> None:
    with replay_target() as server:
        new = _new(stores, server)
    replay_id, _ = asked(stores, new, line(0))

    replay = ended(stores, replay_id, "failed")

    assert replay.state == "refused"
    assert "does not serve" in replay.says
    assert _trials(stores, replay_id)[0].bundle_before_id is not None, "it shows why"


def test_a_target_that_does_not_tell_its_load_has_to_be_typed(stores: Stores) -> None:
    frames = b"HTTP/1.1 200 X\r\nContent-Length: 2\r\n\r\n{}"
    healthy = {"/ready": answers(b"OK"), "/server_info": answers(b'{"version": "0.5.23"}')}
    with scripted_target({**healthy, "/generate": says(frames)}) as server:
        target = clean_target(stores, server.base_url, f"clean-{next(_NAMES)}")
        new = NewReplay(make.incident(stores), target.id or 0)
        silent_id, _ = asked(stores, new, line(0))
        silent = ended(stores, silent_id, "failed")
        typed_id, _ = asked(stores, replace(new, typed=(target.name,)), line(0))
        typed = ended(stores, typed_id)
        sent = server.paths().count("/generate")

    assert silent.state == "refused"
    assert "cannot be told from its loads" in silent.says
    assert (typed.state, sent) == ("done", 1)


def test_only_a_clean_or_typed_target_is_taken(stores: Stores, server: ReplayTarget) -> None:
    target = make.target(stores, server.base_url, f"serving-{next(_NAMES)}")
    new = NewReplay(make.incident(stores), target.id or 0)

    with pytest.raises(Conflict, match="is not marked as clean"):
        asked(stores, new, line(0))
    with pytest.raises(Conflict, match="is not marked as clean"):
        asked(stores, replace(new, typed=("serving",)), line(0))
    replay_id, _ = asked(stores, replace(new, typed=(target.name,)), line(0))

    assert ended(stores, replay_id).state == "done"


def test_a_server_that_the_incident_is_about_is_never_taken_for_clean(
    stores: Stores, server: ReplayTarget
) -> None:
    new = _new(stores, server)
    with writing(stores.engine) as session:
        session.add(IncidentTarget(incident_id=new.incident_id, target_id=new.target_id))

    with pytest.raises(Conflict, match="people may be served by it") as held_back:
        asked(stores, new, line(0))

    assert "whoever it serves goes down with it" in (held_back.value.fix or "")
    typed = replace(new, typed=(_target(stores, new).name,))
    replay_id, _ = asked(stores, typed, line(0))
    replay = ended(stores, replay_id)
    assert replay.state == "done"
    assert "people may be served by it" in replay.confirmed[0]["why"]


def test_one_replay_at_a_time_is_at_work_on_a_target(stores: Stores, server: ReplayTarget) -> None:
    new = _new(stores, server)
    replay_id, _ = asked(stores, new, *(line(n, "stands") for n in range(2)))
    same_server = clean_target(stores, server.base_url, f"clean-{next(_NAMES)}")

    with pytest.raises(Conflict, match=f"Replay {replay_id} is at work on the same target"):
        asked(stores, replace(new, target_id=same_server.id or 0), line(0))

    _cancel(stores, replay_id)
    ended(stores, replay_id, "cancelled")
    other_id, _ = asked(stores, new, line(0))
    assert ended(stores, other_id).state == "done"


def test_a_cancel_is_honoured_within_a_second_and_the_rest_can_be_sent_later(
    stores: Stores, server: ReplayTarget
) -> None:
    new = _new(stores, server)
    paced = Options(parallel=1)
    lines = [line(n, at=n * 0.1) for n in range(60)]
    replay_id, _ = asked(stores, new, *lines, options=paced)
    until(lambda: replay_at(stores, replay_id).completed >= 5)

    pressed = time.monotonic()
    _cancel(stores, replay_id)
    replay = ended(stores, replay_id, "cancelled")
    took = time.monotonic() - pressed

    assert took < 1.0 * BUSY
    assert replay.state == "cancelled"
    assert 5 <= replay.completed < 60
    [trial] = _trials(stores, replay_id)
    assert trial.state == "stopped"

    _resume(stores, replay_id)
    replay = ended(stores, replay_id)
    assert (replay.state, replay.completed) == ("done", 60)
    [trial] = _trials(stores, replay_id)
    assert trial.resumed == 1
    completed = [one for one in _rows(stores, replay_id) if one["state"] == "completed"]
    assert len(completed) == 60
    times = Counter(one["body"]["rid"] for one in server.seen())
    assert len(times) == 60
    assert times.total() - 60 <= 2, "only what was in flight is sent again"


def test_what_would_be_sent_can_be_looked_at_first(stores: Stores, server: ReplayTarget) -> None:
    new = replace(_new(stores, server), send=False, select="0:2")
    lines = [line(n, rid=f"r{n}") for n in range(5)]
    replay_id, _ = asked(stores, new, *lines)

    replay = ended(stores, replay_id)

    assert replay.state == "planned"
    assert replay.plans is not None
    assert (replay.plans["A"]["to_send"], replay.plans["A"]["not_chosen"]) == (2, 3)
    assert server.seen() == []

    with writing(stores.engine) as session:
        row = replays.get_replay(session, replay_id)
        replays.start_replay(session, stores, row, actor=make.MIRA, at=make.now())
    assert ended(stores, replay_id).state == "done"
    assert len(server.seen()) == 2


def test_two_sides_alternate_and_are_set_apart(stores: Stores, server: ReplayTarget) -> None:
    with replay_target() as bad:
        first = _new(stores, server)
        other = clean_target(stores, bad.base_url, f"bad-{next(_NAMES)}")
        new = replace(first, other_target_id=other.id, trials=2, symptom="error")
        replay_id, _ = asked(stores, new, *(line(n) for n in range(3)))
        replay = ended(stores, replay_id)
        sent = (len(server.seen()), len(bad.seen()))

    trials = _trials(stores, replay_id)
    assert [(one.number, one.side) for one in trials] == [(1, "A"), (2, "B"), (3, "A"), (4, "B")]
    assert [one.started_at for one in trials] == sorted(one.started_at for one in trials)  # type: ignore[type-var]
    assert sent == (6, 6)
    assert (replay.total, replay.completed) == (12, 12)
    assert replay.summary is not None
    assert set(replay.summary) == {"A", "B", "says"}
    assert replay.why == replay.summary["says"]


def test_a_hostile_target_is_told_by_class_and_ends_nothing(
    stores: Stores, server: ReplayTarget
) -> None:
    kinds = [
        "babble",
        "redirect",
        "packed",
        "cut",
        "reset",
        "mumbles",
        "swells",
        "aborts",
        "broken",
    ]
    new = replace(_new(stores, server), symptom="error")
    lines = [line(n, kind) for n, kind in enumerate(kinds)] + [line(len(kinds))]
    replay_id, _ = asked(stores, new, *lines)

    replay = ended(stores, replay_id)

    [trial] = _trials(stores, replay_id)
    assert (replay.completed, sum(trial.errors.values())) == (1, len(kinds))
    assert trial.errors["server-error"] == 1
    assert trial.errors["redirected"] == 1
    assert replay.verdict == "reproduced"
    failed = _page(stores, replay_id, Wanted(state="failed"))
    assert {one.error for one in failed.rows} == set(trial.errors)


def test_failures_of_our_own_making_are_inconclusive(stores: Stores, server: ReplayTarget) -> None:
    new = replace(_new(stores, server), symptom="error")
    replay_id, _ = asked(stores, new, *(line(n, "unauthorized") for n in range(3)))

    replay = ended(stores, replay_id)

    assert replay.verdict == "inconclusive"
    with reading(stores.engine) as session:
        [found] = looked.findings_of(session, new.incident_id)
    assert [one["id"] for one in found["claims"]] == ["replay-inconclusive"]


def test_requests_whose_bytes_are_gone_are_not_replayed(
    stores: Stores, server: ReplayTarget
) -> None:
    new = _new(stores, server)
    artifact_id = file_of(stores, new.incident_id, [line(0)])
    evidence.purge(stores, artifact_id, actor=make.MIRA, reason="asked to", at=make.now())

    with pytest.raises(Conflict, match="purged"), writing(stores.engine) as session:
        replays.request_replay(
            session,
            stores,
            replace(new, artifact_id=artifact_id),
            actor=make.MIRA,
            at=make.now(),
        )


def test_a_file_that_holds_no_requests_fails_with_its_reason(
    stores: Stores, server: ReplayTarget
) -> None:
    new = _new(stores, server)
    replay_id, _ = asked(stores, new, b"\x00\x01 not a dump\n")

    replay = ended(stores, replay_id, "failed")

    assert replay.state == "failed"
    assert server.seen() == []


def test_the_suspects_of_a_crash_dump_are_offered_and_replayed(
    stores: Stores, server: ReplayTarget
) -> None:
    new = replace(_new(stores, server), select="suspect")
    stored = stores.artifacts.put(recorded.crash_dump(20, 1))
    taken = attaching.take_in(
        stores,
        stored,
        Sent("crash.pkl", "a test"),
        incident_id=new.incident_id,
        actor=make.MIRA,
        at=make.now(),
    )
    assert taken.dump_id is not None
    with reading(stores.engine) as session:
        ingested = dumps.get_dump(session, taken.dump_id).job_id or 0
    make.until(stores, ingested, "succeeded", seconds=60)
    with reading(stores.engine) as session:
        [offer] = [
            one for one in replay_offers(session, new.incident_id) if one.dump_id == taken.dump_id
        ]
    assert offer.select == "suspect"

    with writing(stores.engine) as session:
        wanted = replace(new, dump_id=offer.dump_id, options=QUICK)
        _, replay = replays.request_replay(session, stores, wanted, actor=make.MIRA, at=make.now())
    replay = ended(stores, replay.id or 0)

    with reading(stores.engine) as session:
        assert replay_offers(session, new.incident_id) == (), "it was done"
        suspects = {one.position for one in dump_rows.suspects_of(session, taken.dump_id)}
        rows = replay_rows.outcomes_of(session, replay.id or 0).rows
    assert replay.state == "done"
    assert {one.position for one in rows} == suspects
    assert (rows[-1].position, rows[-1].recorded_state, rows[-1].state) == (
        20, "unfinished", "completed",
    )  # fmt: skip


def _target(stores: Stores, new: NewReplay) -> Target:
    with reading(stores.engine) as session:
        return session.get_one(Target, new.target_id)


def _trials(stores: Stores, replay_id: int) -> Sequence[ReplayTrial]:
    with reading(stores.engine) as session:
        return replays.trials_of(session, replay_id)


def _page(stores: Stores, replay_id: int, wanted: Wanted = replay_rows.EVERY) -> replay_rows.Page:
    with reading(stores.engine) as session:
        return replay_rows.outcomes_of(session, replay_id, wanted)


def _rows(stores: Stores, replay_id: int) -> list[dict[str, Any]]:
    return [replay_rows.row_of(one) for one in _page(stores, replay_id).rows]


def _cancel(stores: Stores, replay_id: int) -> None:
    with writing(stores.engine) as session:
        row = replays.get_replay(session, replay_id)
        replays.cancel_replay(session, row, actor=make.MIRA, at=make.now())


def _resume(stores: Stores, replay_id: int) -> None:
    with writing(stores.engine) as session:
        row = replays.get_replay(session, replay_id)
        replays.resume_replay(session, stores, row, actor=make.MIRA, at=make.now())
