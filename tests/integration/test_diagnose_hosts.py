"""Diagnostics over several hosts, beside a bundle, and of agents that fail."""

from collections.abc import Iterator
from datetime import datetime
from threading import Event

import pytest

from app.protocol.messages import StackSample, StacksAnswer
from app.store import jobs
from app.store.bundles import request_bundle
from app.store.database import reading, writing
from app.store.stores import Stores
from app.store.tables import Host, Job, Target
from app.store.target_servers import confirm
from app.store.timeline import timeline
from tests.integration import diagnosing, make
from tests.integration.agent_double import Asked, Double, agent_double
from tests.integration.at_work import at_work
from tests.integration.conftest import MakeStores
from tests.integration.diagnosing import ROOT, TP0, TP1, Dumping
from tests.integration.scripted_target import answers, scripted_target, waits_for
from tests.ports import free_port
from tests.waiting import BUSY, until

pytestmark = pytest.mark.slow


@pytest.fixture(scope="module")
def stores(make_stores: MakeStores, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Stores]:
    with at_work(make_stores(tmp_path_factory.mktemp("data"))) as opened:
        yield opened


@pytest.fixture
def double() -> Iterator[Double]:
    with agent_double(Double()) as running:
        running.says["POST /stacks"] = lambda asked: _taken(running, asked)
        yield running


def _taken(double: Double, asked: Asked) -> StacksAnswer:
    samples = [
        StackSample(
            process_id=process_id,
            pid=int(process_id.partition(".")[0]),
            rank=None,
            sample=asked.body["first_sample"],
            taken_at=make.now(),
            seconds=0.1,
            mode="plain",
            exact=True,
            state_before="S",
            state_after="S",
            threads=1,
            file=double.file(f"[{asked.body['first_sample']}]".encode()),
        )
        for process_id in asked.body["process_ids"]
    ]
    return StacksAnswer(matched=asked.body["process_ids"], done=samples, refused=[])


def _host(stores: Stores, double: Double) -> Host:
    return diagnosing.host(stores, double, diagnosing.new_name(), diagnosing.server())


def _linked(stores: Stores, *linked: Host, url: str = "http://127.0.0.1:9") -> Target:
    target = make.target(stores, url, f"decode-{free_port()}")
    with writing(stores.engine) as session:
        for one in linked:
            confirm(session, target, one.id or 0, ROOT, make.MIRA, make.now())
    return target


def test_all_hosts_of_a_server_are_told_the_same_moment(stores: Stores, double: Double) -> None:
    with agent_double(Double(agent_id="b2", says=double.says)) as other:
        target = _linked(stores, _host(stores, double), _host(stores, other))
        diagnostic_id = diagnosing.press(stores, diagnosing.incident(stores, target))
        diagnosing.ended(stores, diagnostic_id)
        [first], [second] = double.those("POST /stacks"), other.those("POST /stacks")
    assert first.body["not_before"] == second.body["not_before"]
    not_before = datetime.fromisoformat(first.body["not_before"])
    assert max(first.at, second.at) < not_before
    assert len(diagnosing.items(stores, diagnostic_id)) == 4
    assert first.actor == "mira"


def test_a_host_that_does_not_answer_takes_nothing_from_the_others(
    stores: Stores, double: Double
) -> None:
    gone = Double(agent_id="b2", url=f"http://127.0.0.1:{free_port()}")
    target = _linked(stores, _host(stores, double), silent := _host(stores, gone))
    diagnostic_id = diagnosing.press(stores, diagnosing.incident(stores, target))
    row = diagnosing.ended(stores, diagnostic_id)
    assert row.state == "done"
    told = {
        (one.host_name == silent.name, one.state) for one in diagnosing.items(stores, row.id or 0)
    }
    assert told == {(False, "done"), (True, "refused")}
    assert "Nothing listens there" in row.says


def test_what_cannot_be_brought_over_is_told_and_named(stores: Stores, double: Double) -> None:
    target = _linked(stores, _host(stores, double))

    def forged(asked: Asked) -> StacksAnswer:
        answer = _taken(double, asked)
        double.files = dict.fromkeys(double.files, b"[9]")
        return answer

    double.says["POST /stacks"] = forged
    diagnostic_id = diagnosing.press(stores, diagnosing.incident(stores, target))
    row = diagnosing.ended(stores, diagnostic_id)
    items = diagnosing.items(stores, diagnostic_id)
    assert (row.state, {one.state for one in items}) == ("refused", {"refused"})
    assert items[0].says.startswith("Taken, but not brought over: ")
    assert items[0].detail["file"]["name"] == "stacks.json"


def test_a_cancel_is_honoured_while_an_agent_is_silent(stores: Stores, double: Double) -> None:
    target = _linked(stores, _host(stores, double))
    over = Event()

    def silent(asked: Asked) -> StacksAnswer:
        over.wait(100)
        return _taken(double, asked)

    double.says["POST /stacks"] = silent
    diagnostic_id = diagnosing.press(stores, diagnosing.incident(stores, target))
    until(lambda: double.those("POST /stacks"))
    job = diagnosing.job(stores, diagnostic_id)
    began = make.now()
    with writing(stores.engine) as session:
        jobs.request_cancel(session, jobs.get_job(session, job.id or 0), make.MIRA, make.now())
    row = diagnosing.ended(stores, diagnostic_id)
    assert row.state == "cancelled"
    assert (make.now() - began).total_seconds() < 1.0 * BUSY
    over.set()


def test_stacks_wait_for_a_bundle(stores: Stores, double: Double) -> None:
    answer = Event()
    paths = {"/ready": waits_for(answer, answers(b"OK")), "/metrics": answers(b"a 1\n")}
    with scripted_target(paths) as server:
        target = _linked(stores, _host(stores, double), url=server.base_url)
        incident_id = diagnosing.incident(stores, target)
        job_id = _collect(stores, incident_id, target)
        until(server.paths)
        diagnostic_id = diagnosing.press(stores, incident_id)
        until(lambda: "waiting for it" in diagnosing.diagnostic(stores, diagnostic_id).says)
        assert double.those("POST /stacks") == []
        answer.set()
        diagnosing.ended(stores, diagnostic_id)
        whole_at = make.until(stores, job_id, "succeeded").finished_at
    [asked] = double.those("POST /stacks")
    assert whole_at is not None
    assert asked.at > whole_at


def test_a_bundle_waits_for_stacks(stores: Stores, double: Double) -> None:
    answer = Event()

    def slowly(asked: Asked) -> StacksAnswer:
        if asked.body["first_sample"] == 2:
            answer.wait(100)
        return _taken(double, asked)

    double.says["POST /stacks"] = slowly
    with scripted_target({"/ready": answers(b"OK")}) as server:
        target = _linked(stores, _host(stores, double), url=server.base_url)
        incident_id = diagnosing.incident(stores, target)
        diagnostic_id = diagnosing.press(stores, incident_id, samples=2, interval_seconds=0.5)
        until(lambda: diagnosing.items(stores, diagnostic_id))
        job_id = _collect(stores, incident_id, target)
        until(lambda: "Stacks of this target" in make.until(stores, job_id, "running").says)
        assert server.paths() == []
        answer.set()
        row = diagnosing.ended(stores, diagnostic_id)
        collected = make.until(stores, job_id, "succeeded")
    assert collected.acted_at is not None
    assert row.finished_at is not None
    assert collected.acted_at >= row.finished_at


def _collect(stores: Stores, incident_id: int, target: Target) -> int:
    with writing(stores.engine) as session:
        job, _ = request_bundle(
            session,
            stores,
            incident_id=incident_id,
            target=target,
            probe="never",
            interval_seconds=0.2,
            actor=make.MIRA,
            at=make.now(),
        )
    assert job.id is not None
    return job.id


def _dump(stores: Stores, double: Double) -> int:
    host = _host(stores, double)
    target = _linked(stores, host)
    given = {"process_ids": [TP0], "host_ids": [host.id], "confirm": host.name}
    return diagnosing.press(stores, diagnosing.incident(stores, target), "coredump", **given)


def test_a_coredump_is_followed_and_brought_over_when_it_is_whole(
    stores: Stores, double: Double
) -> None:
    Dumping(double, "growing", "growing", "complete", data=b"\x7fELF" * 100)
    diagnostic_id = _dump(stores, double)
    row = diagnosing.ended(stores, diagnostic_id)
    [item] = diagnosing.items(stores, diagnostic_id)
    assert (row.state, item.state, item.rank) == ("done", "complete", "TP0")
    assert item.artifact_id is not None
    assert item.detail["path"] == "/dumps/core.nvcudmp"
    assert double.times("POST /coredumps") == 1
    with reading(stores.engine) as session:
        told = [m.says for m in timeline(session, row.incident_id)]
    assert any(
        says.startswith("Sent the coredump trigger to TP0, pid 101 on gpu-") for says in told
    )


@pytest.mark.parametrize("state", ["no-file", "timed-out", "refused"])
def test_a_coredump_that_brings_no_file_says_so(stores: Stores, double: Double, state: str) -> None:
    Dumping(double, state)
    diagnostic_id = _dump(stores, double)
    row = diagnosing.ended(stores, diagnostic_id)
    [item] = diagnosing.items(stores, diagnostic_id)
    assert (item.state, item.artifact_id) == (state, None)
    assert f"It is {state}." in row.says


def test_an_agent_that_refuses_a_coredump_is_told_with_its_fix(
    stores: Stores, double: Double
) -> None:
    told = {"error": "conflict", "detail": "MPS runs.", "fix": "Stop it.", "command": None}
    double.says["POST /coredumps"] = lambda _: (409, told)
    row = diagnosing.ended(stores, _dump(stores, double))
    [item] = diagnosing.items(stores, row.id or 0)
    assert (row.state, item.state, item.says, item.fix) == (
        "refused",
        "refused",
        "MPS runs.",
        "Stop it.",
    )


def test_a_trigger_whose_answer_was_lost_is_found_again_and_never_sent_twice(
    stores: Stores, double: Double
) -> None:
    dumping = Dumping(double, "complete", data=b"\x7fELF")

    def lost(asked: Asked) -> tuple[int, dict[str, str]]:
        dumping.begin(asked)
        return 502, {"error": "bad-gateway", "detail": "A proxy lost the answer."}

    double.says["POST /coredumps"] = lost
    row = diagnosing.ended(stores, _dump(stores, double))
    [item] = diagnosing.items(stores, row.id or 0)
    assert (item.state, double.times("POST /coredumps")) == ("complete", 1)


def test_both_ranks_are_asked_once_each(stores: Stores, double: Double) -> None:
    Dumping(double, "no-file")
    host = _host(stores, double)
    target = _linked(stores, host)
    incident_id = diagnosing.incident(stores, target)
    row = diagnosing.ended(
        stores, diagnosing.press(stores, incident_id, "coredump", confirm=host.name)
    )
    asked = [one.body["process_id"] for one in double.those("POST /coredumps")]
    assert (sorted(asked), row.state) == ([TP0, TP1], "done")


def test_the_next_rank_of_a_host_is_left_alone_while_the_last_one_may_still_be_written(
    stores: Stores, double: Double
) -> None:
    Dumping(double, "timed-out")
    host = _host(stores, double)
    incident_id = diagnosing.incident(stores, _linked(stores, host))
    number = diagnosing.press(stores, incident_id, "coredump", confirm=host.name)
    diagnosing.ended(stores, number)
    first, second = diagnosing.items(stores, number)
    assert (first.state, second.state) == ("timed-out", "refused")
    assert second.says.startswith("Not begun:")
    assert double.times("POST /coredumps") == 1


def test_jobs_of_diagnostics_tell_whether_they_are_intrusive(
    stores: Stores, double: Double
) -> None:
    Dumping(double, "no-file")
    dump = diagnosing.ended(stores, _dump(stores, double))
    plain = diagnosing.ended(
        stores,
        diagnosing.press(
            stores, diagnosing.incident(stores, _linked(stores, _host(stores, double)))
        ),
    )
    with reading(stores.engine) as session:
        found = [session.get_one(Job, one.job_id).intrusive for one in (dump, plain)]
    assert found == [True, False]
