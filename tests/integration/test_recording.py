"""Request dumping is switched on once, and off at its time, whatever happens in between."""

import time
from collections.abc import Iterator
from contextlib import AbstractContextManager, contextmanager
from datetime import timedelta
from pathlib import Path
from typing import Any
from uuid import uuid4

import orjson
import pytest
from sqlmodel import Session, select

from app.errors import Conflict, Rejected
from app.settings import Settings
from app.store import jobs, migrations, recordings
from app.store.database import reading, writing
from app.store.recordings import NewRecording, Recording, request_off, request_recording
from app.store.stores import Stores
from app.store.tables import BundleRow, IncidentTarget, Job, Target, TimelineEvent
from app.store.targets import delete_target, get_target
from tests.integration import make, processes
from tests.integration.at_work import at_work
from tests.integration.conftest import MakeStores
from tests.integration.scripted_target import (
    Behaviour,
    ScriptedTarget,
    answers,
    hangs,
    resets,
    scripted_target,
)
from tests.ports import free_port
from tests.waiting import BUSY, until

pytestmark = pytest.mark.slow

PATH = "/configure_logging"
ON = {"dump_requests_folder": "/var/dumps", "dump_requests_threshold": 50}
OFF = {"dump_requests_folder": ""}


@pytest.fixture(scope="module")
def stores(make_stores: MakeStores, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Stores]:
    with at_work(make_stores(tmp_path_factory.mktemp("data"))) as opened:
        time.sleep(1.5)  # the engine looks for its queue once a second after the very first start
        yield opened


def _answers(behaviour: Behaviour) -> AbstractContextManager[ScriptedTarget]:
    return scripted_target({PATH: behaviour})


def _incident(stores: Stores, base_url: str, **seen: Any) -> tuple[int, Target]:
    """An incident that is about a target of that address."""
    incident_id = make.incident(stores)
    target = make.target(stores, base_url, name=f"decode {incident_id}")
    with writing(stores.engine) as session:
        session.add(IncidentTarget(incident_id=incident_id, target_id=target.id or 0))
        row = session.get_one(Target, target.id)
        row.admin_token_sealed = stores.vault.seal("admin-key-of-ours")
        if seen:
            _seen(session, row, seen)
    return incident_id, target


def _seen(session: Session, target: Target, summary: dict[str, Any]) -> None:
    bundle = BundleRow(
        target_id=target.id, base_url=target.base_url, collected_at=make.now(), summary=summary
    )
    session.add(bundle)
    session.flush()
    target.last_bundle_id = bundle.id


def _press(stores: Stores, incident_id: int, seconds: float = 60.0, **given: Any) -> int:
    new = NewRecording(
        **{
            "incident_id": incident_id,
            "target_id": None,
            "folder": "/var/dumps",
            "threshold": 50,
            "duration_seconds": seconds,
            **given,
        }
    )
    with writing(stores.engine) as session:
        job = request_recording(session, stores, new, actor=make.MIRA, at=make.now())
    assert job.id is not None
    return job.id


def _off(stores: Stores, incident_id: int) -> int:
    with writing(stores.engine) as session:
        job = request_off(
            session,
            stores,
            incident_id=incident_id,
            target_id=None,
            actor=make.MIRA,
            at=make.now(),
        )
    assert job.id is not None
    return job.id


def _recording(stores: Stores, job_id: int) -> Recording:
    with reading(stores.engine) as session:
        return Recording.of(session.get_one(Job, job_id))


def _in_phase(stores: Stores, job_id: int, phase: str, seconds: float = 60.0) -> Recording:
    def there() -> Recording | None:
        one = _recording(stores, job_id)
        return one if one.phase == phase else None

    found = until(there, seconds=seconds)
    assert found is not None
    return found


def _sent(target: ScriptedTarget) -> list[Any]:
    return [orjson.loads(body) for path, body in target.bodies if path == PATH]


def _told(stores: Stores, incident_id: int) -> list[str]:
    with reading(stores.engine) as session:
        query = select(TimelineEvent).where(TimelineEvent.incident_id == incident_id)
        events = session.exec(query.order_by("id")).all()
    return [str(one.detail.get("state") or one.kind) for one in events]


def test_it_is_switched_on_with_two_keys_and_off_at_its_time(stores: Stores) -> None:
    with _answers(answers(b"")) as target:
        incident_id, _ = _incident(stores, target.base_url)
        job_id = _press(stores, incident_id, 5.0)
        on = _in_phase(stores, job_id, "on")
        assert _sent(target) == [ON]
        assert not on.ended
        job = make.until(stores, job_id, "succeeded")
    assert _sent(target) == [ON, OFF]
    assert all(
        dict(headers)["authorization"] == "Bearer admin-key-of-ours" for _, headers in target.asked
    )
    assert job.finished_at is not None
    assert on.until is not None
    assert job.finished_at - on.until < timedelta(seconds=2.0 * BUSY)
    assert job.due_at is None
    assert _recording(stores, job_id).phase == "off"
    assert _told(stores, incident_id) == ["StepRequested", "on", "off"]


def test_it_can_be_switched_off_before_its_time(stores: Stores) -> None:
    with _answers(answers(b"")) as target:
        incident_id, _ = _incident(stores, target.base_url)
        job_id = _press(stores, incident_id)
        _in_phase(stores, job_id, "on")
        assert _off(stores, incident_id) == job_id
        make.until(stores, job_id, "succeeded")
    assert _sent(target) == [ON, OFF]


def test_cancelling_its_job_switches_it_off_rather_than_leaving_it_on(stores: Stores) -> None:
    with _answers(answers(b"")) as target:
        incident_id, _ = _incident(stores, target.base_url)
        job_id = _press(stores, incident_id)
        _in_phase(stores, job_id, "on")
        with writing(stores.engine) as session:
            jobs.request_cancel(session, jobs.get_job(session, job_id), make.MIRA, make.now())
        assert make.until(stores, job_id, "succeeded", "cancelled").state == "succeeded"
    assert _sent(target) == [ON, OFF]


def test_a_second_one_at_the_same_server_is_refused(stores: Stores) -> None:
    with _answers(answers(b"")) as target:
        incident_id, _ = _incident(stores, target.base_url)
        other_id, _ = _incident(stores, target.base_url)
        job_id = _press(stores, incident_id)
        _in_phase(stores, job_id, "on")
        with pytest.raises(Conflict, match=f"by job {job_id}"):
            _press(stores, other_id)
        _off(stores, incident_id)
        make.until(stores, job_id, "succeeded")
        again = _press(stores, other_id)
        _in_phase(stores, again, "on")
        _off(stores, other_id)
        make.until(stores, again, "succeeded")
    assert _sent(target) == [ON, OFF, ON, OFF]


@pytest.mark.parametrize(
    ("status", "says"),
    [
        pytest.param("401 Unauthorized", "it wants its admin key", id="no-admin-key"),
        pytest.param("403 Forbidden", "it wants its admin key", id="forbidden"),
        pytest.param("404 Not Found", "the Rust ingress", id="not-offered"),
        pytest.param("400 Bad Request", "refused it with 400", id="malformed"),
        pytest.param("307 Temporary Redirect", "refused it with 307", id="redirect"),
    ],
)
def test_a_refusal_is_said_and_leaves_nothing_to_switch_off(
    stores: Stores, status: str, says: str
) -> None:
    with _answers(answers(b"", status=status)) as target:
        incident_id, _ = _incident(stores, target.base_url)
        job = make.until(stores, _press(stores, incident_id), "failed")
    assert _sent(target) == [ON]
    assert says in (job.reason or "")
    assert job.due_at is None
    assert not Recording.of(job).may_be_on


def test_nobody_there_means_that_nothing_was_sent(stores: Stores) -> None:
    incident_id, _ = _incident(stores, f"http://127.0.0.1:{free_port()}")
    job = make.until(stores, _press(stores, incident_id), "failed")
    assert (job.reason or "").startswith("Nothing was sent.")
    assert job.due_at is None


@pytest.mark.parametrize(
    "behaviour",
    [
        pytest.param(resets, id="reset"),
        pytest.param(answers(b"", status="500 Internal Server Error"), id="broke"),
    ],
)
def test_a_lost_answer_is_unknown_never_sent_again_and_switched_off_at_its_time(
    stores: Stores, behaviour: Behaviour
) -> None:
    with scripted_target({PATH: _first(behaviour, answers(b""))}) as target:
        incident_id, _ = _incident(stores, target.base_url)
        job_id = _press(stores, incident_id, 5.0)
        unknown = _in_phase(stores, job_id, "not known")
        assert "not known" in unknown.says
        assert _sent(target) == [ON]
        make.until(stores, job_id, "succeeded")
    assert _sent(target) == [ON, OFF]
    assert _told(stores, incident_id) == ["StepRequested", "not known", "off"]


def _first(first: Behaviour, then: Behaviour) -> Behaviour:
    left = [first]

    async def behave(writer: Any) -> None:
        await (left.pop() if left else then)(writer)

    return behave


def test_a_target_that_is_gone_at_switch_off_is_asked_again_and_told_of(stores: Stores) -> None:
    port = free_port()
    incident_id, _ = _incident(stores, f"http://127.0.0.1:{port}")
    with _listening(port, answers(b"")) as target:
        job_id = _press(stores, incident_id, 5.0)
        _in_phase(stores, job_id, "on")
    still = _in_phase(stores, job_id, "still on?")
    waiting = until(
        lambda: (
            one
            if (one := _recording(stores, job_id)).tries and "again in 5 s" in one.says
            else None
        )
    )
    assert waiting is not None
    assert still.may_be_on
    with _listening(port, answers(b"")) as back:
        make.until(stores, job_id, "succeeded")
    assert (_sent(target), _sent(back)) == ([ON], [OFF])
    assert _told(stores, incident_id) == ["StepRequested", "on", "not known", "off"]


@contextmanager
def _listening(port: int, behaviour: Behaviour) -> Iterator[ScriptedTarget]:
    with scripted_target({PATH: behaviour}, port=port) as target:
        yield target


def test_after_the_last_try_it_is_left_as_perhaps_on_with_the_command(stores: Stores) -> None:
    with _answers(answers(b"", status="503 Service Unavailable")) as target:
        incident_id, _ = _incident(stores, target.base_url)
        job_id = _left_on(stores, incident_id, target, tries=19)
        job = make.until(stores, job_id, "failed")
        assert Recording.of(job).phase == "still on?"
        assert "curl -X POST" in (job.reason or "")
        assert f"{target.base_url}{PATH}" in (job.reason or "")
        with pytest.raises(Conflict):
            _press(stores, incident_id)


def _left_on(
    stores: Stores,
    incident_id: int,
    target: ScriptedTarget,
    *,
    tries: int,
    due: timedelta = timedelta(minutes=-3),
    tokenizers: int = 1,
) -> int:
    """A recording that is due so much later, and was tried so often."""
    past = make.now() + due
    with reading(stores.engine) as session:
        about = recordings.target_of(session, incident_id, None)
    with writing(stores.engine) as session:
        job = Job(
            key=uuid4().hex,
            kind="record",
            incident_id=incident_id,
            target_id=about.id,
            partition=f"record:{about.id}",
            arguments={
                "target_id": about.id,
                "folder": "/var/dumps",
                "threshold": 50,
                "duration_seconds": 60.0,
                "tokenizers": tokenizers,
            },
            requested_by="mira",
            created_at=past,
            due_at=past,
            result={
                "phase": "on",
                "until": past.isoformat(),
                "base_url": target.base_url,
                "tries": tries,
            },
        )
        session.add(job)
    assert job.id is not None
    return job.id


def test_one_that_is_overdue_is_switched_off_at_once_and_the_delay_is_said(stores: Stores) -> None:
    with _answers(answers(b"")) as target:
        incident_id, _ = _incident(stores, target.base_url)
        job = make.until(stores, _left_on(stores, incident_id, target, tries=0), "succeeded")
    assert _sent(target) == [OFF]
    assert "3 min late: no worker of this console was free" in job.says


def test_off_is_sent_again_and_again_to_several_tokenizers_until_one_does_not_take_it(
    stores: Stores,
) -> None:
    with _answers(answers(b"")) as target:
        incident_id, _ = _incident(stores, target.base_url)
        job_id = _left_on(stores, incident_id, target, tries=0, tokenizers=2)
        job = make.until(stores, job_id, "succeeded")
    assert _sent(target) == [OFF] * 16
    assert "look whether files still come" in job.says
    with _answers(answers(b"", status="503 Service Unavailable")) as broken:
        incident_id, _ = _incident(stores, broken.base_url)
        job_id = _left_on(stores, incident_id, broken, tries=19, tokenizers=2)
        make.until(stores, job_id, "failed")
    assert _sent(broken) == [OFF]


def test_a_later_recording_is_not_switched_off_by_an_earlier_one(stores: Stores) -> None:
    with _answers(answers(b"")) as target:
        incident_id, about = _incident(stores, target.base_url)
        earlier = _left_on(stores, incident_id, target, tries=0, due=timedelta(minutes=5))
        later = _left_on(stores, incident_id, target, tries=0, due=timedelta(minutes=9))
        with writing(stores.engine) as session:
            jobs.request_cancel(session, jobs.get_job(session, earlier), make.MIRA, make.now())
        job = make.until(stores, earlier, "succeeded")
        assert job.says.startswith(f"Left alone: job {later}")
        assert target.asked == []
        assert _off(stores, incident_id) == later
        make.until(stores, later, "succeeded")
    assert about.id == job.target_id
    assert _sent(target) == [OFF]


def test_off_alone_can_be_sent_where_somebody_else_switched_it_on(stores: Stores) -> None:
    with _answers(answers(b"")) as target:
        incident_id, _ = _incident(stores, target.base_url)
        make.until(stores, _off(stores, incident_id), "succeeded")
        with reading(stores.engine) as session:
            assert recordings.recordings_of(session, incident_id) == []
    assert _sent(target) == [OFF]


def test_a_rust_ingress_is_refused_before_anything_is_sent(stores: Stores) -> None:
    with _answers(answers(b"")) as target:
        incident_id, _ = _incident(stores, target.base_url, frontend="rust")
        with pytest.raises(Conflict, match="Rust ingress"):
            _press(stores, incident_id)
    assert target.asked == []


@pytest.mark.parametrize(
    "given",
    [
        pytest.param({"folder": "relative"}, id="relative"),
        pytest.param({"folder": "/a/../etc"}, id="upwards"),
        pytest.param({"folder": "/"}, id="root"),
        pytest.param({"folder": "/a\n"}, id="not-printable"),
        pytest.param({"folder": "/" + "a" * 300}, id="long"),
        pytest.param({"threshold": 0}, id="no-threshold"),
        pytest.param({"duration_seconds": 0.0}, id="no-time"),
        pytest.param({"duration_seconds": 1e9}, id="for-ever"),
    ],
)
def test_what_makes_no_sense_is_refused(stores: Stores, given: dict[str, Any]) -> None:
    incident_id, _ = _incident(stores, "http://127.0.0.1:9")
    with pytest.raises(Rejected):
        _press(stores, incident_id, **given)


def test_its_target_cannot_be_deleted_while_it_is_on(stores: Stores) -> None:
    with _answers(answers(b"")) as target:
        incident_id, about = _incident(stores, target.base_url)
        job_id = _press(stores, incident_id)
        _in_phase(stores, job_id, "on")
        with writing(stores.engine) as session, pytest.raises(Conflict):
            delete_target(
                session, get_target(session, about.id or 0), actor=make.MIRA, at=make.now()
            )
        _off(stores, incident_id)
        make.until(stores, job_id, "succeeded")


@pytest.fixture
def killed(tmp_path: Path) -> Iterator[Stores]:
    """The data folder that a worker process works on, as seen from another process."""
    opened = Stores.open(Settings(data_dir=tmp_path, min_free_bytes=0))
    migrations.upgrade(opened.engine)
    yield opened
    opened.close()


@pytest.mark.slow
@pytest.mark.parametrize(
    "engine_forgets", [pytest.param(False, id="as-it-is"), pytest.param(True, id="file-deleted")]
)
def test_a_console_that_was_killed_while_it_was_on_switches_it_off_after_its_restart(
    killed: Stores, tmp_path: Path, engine_forgets: bool
) -> None:
    with _answers(answers(b"")) as target:
        incident_id, _ = _incident(killed, target.base_url)
        with processes.working(tmp_path) as worker:
            job_id = _press(killed, incident_id, 6.0)
            due = _in_phase(killed, job_id, "on").until
            processes.kill(worker)
        assert due is not None
        time.sleep(max(0.0, (due - make.now()).total_seconds()))
        assert _sent(target) == [ON], "nothing works while the console is down"
        if engine_forgets:
            for path in tmp_path.glob("jobs.sqlite*"):
                path.unlink()
        with processes.working(tmp_path):
            make.until(killed, job_id, "succeeded")
    assert _sent(target) == [ON, OFF]


@pytest.mark.slow
def test_a_console_that_was_killed_while_it_sent_does_not_send_it_again(
    killed: Stores, tmp_path: Path
) -> None:
    with scripted_target({PATH: _first(hangs, answers(b""))}) as target:
        incident_id, _ = _incident(killed, target.base_url)
        with processes.working(tmp_path) as worker:
            job_id = _press(killed, incident_id)
            until(lambda: bool(target.bodies))
            processes.kill(worker)
        with processes.working(tmp_path):
            _in_phase(killed, job_id, "not known")
            _off(killed, incident_id)
            make.until(killed, job_id, "succeeded")
    assert _sent(target) == [ON, OFF]
