"""From the press to the file: console, worker, agent and server as they are in production.

What is asserted of the server is what its own driver saw: how many bytes, and no more.
"""

import os
import shutil
import signal
from collections.abc import Iterator
from pathlib import Path

import httpx
import pytest
from fastapi.testclient import TestClient

from app.agent.coredump.endings import Limits
from app.jobs.engine import Engine
from app.main import create_app
from app.settings import Settings
from tests.conftest import BASE_URL, Prepared
from tests.integration import processes
from tests.integration.story import (
    HOST,
    Agent,
    Console,
    Dumping,
    dumping,
    quick_agent,
    sha256_of,
)
from tests.integration.test_agent_process import running
from tests.ports import free_port
from tests.waiting import until

pytestmark = pytest.mark.slow

ON_IT = "A CUDA coredump is on this process already."


@pytest.fixture(scope="module")
def console(prepared: Prepared, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Console]:
    """One console with a worker inside, for all stories in which it is not killed."""
    data_dir = tmp_path_factory.mktemp("data")
    shutil.copy(prepared.file, data_dir / "console.sqlite")
    settings = Settings(_env_file=None, data_dir=data_dir, min_free_bytes=0)
    app = create_app(settings, start_work=Engine.start)
    with TestClient(app, BASE_URL, follow_redirects=False) as client:
        client.headers["Sec-Fetch-Site"] = "same-origin"
        client.cookies.set("session", prepared.cookies["admin"])
        yield Console(client)


@pytest.fixture
def agent(tmp_path: Path) -> Iterator[Agent]:
    with quick_agent(tmp_path / "agent") as found:
        yield found


def _room(folder: Path) -> None:
    if shutil.disk_usage(folder).free < Limits().min_free_bytes:
        pytest.skip("the agent keeps 10 GiB free, and this disk has less")


def test_the_whole_way_from_the_page_to_the_bytes(console: Console, tmp_path: Path) -> None:
    _room(tmp_path)
    with (
        running(tmp_path / "agent") as told,
        dumping(tmp_path / "server", "held") as server,
    ):
        agent = Agent(told.process, told.url, told.state_dir)  # type: ignore[arg-type]
        incident_id = console.incident(console.register(agent), server)
        _refuse_what_is_not_confirmed(console, incident_id)
        assert (agent.did("coredump"), server.said("received")) == ([], [])

        number = _led_to(console.type(incident_id, "coredump", confirm=HOST))
        _see_it_grow(console, number, incident_id)
        server.let_end()
        done = console.ended(number)

        [item], [file] = done["items"], server.dumps
        assert (done["state"], item["state"], item["rank"]) == ("done", "complete", "TP0"), done
        [kept] = console.artifacts(incident_id)
        assert (kept["id"], kept["kind"], kept["tier"]) == (item["artifact_id"], "coredump", "T2")
        assert console.downloaded_sha256(kept["id"]) == kept["sha256"] == item["detail"]["sha256"]
        assert kept["sha256"] == sha256_of(file)
        assert item["detail"]["path"] == str(file)
        assert server.said("received") == ["received 1"]
        assert [line["who"] for line in agent.did("coredump")] == ["admin", "admin"]
        _see_it_ended(console, number, kept["id"])


def _led_to(answer: httpx.Response) -> int:
    """The diagnostic whose page a sent form leads to."""
    assert answer.status_code == 303, answer.text
    return int(answer.headers["location"].rpartition("/")[2])


def _see_it_ended(console: Console, number: int, artifact_id: int) -> None:
    page = console.client.get(f"/diagnostics/{number}").text
    part = console.client.get(f"/diagnostics/{number}/found")
    assert "Coredump of TP0: complete" in page
    assert f'href="/artifacts/{artifact_id}"' in page
    assert part.headers["HX-Refresh"] == "true"


def _refuse_what_is_not_confirmed(console: Console, incident_id: int) -> None:
    bare = console.ask(incident_id, "coredump")
    assert bare.status_code == 409
    for told in (f"ask 1 process on {HOST} for a CUDA coredump", "Their GPUs stop", HOST):
        assert told in bare.json()["detail"]
    assert console.ask(incident_id, "coredump", confirm="gpu-elsewhere").status_code == 409
    page = console.client.get(f"/incidents/{incident_id}").text
    assert "Take the coredump" in page
    assert "Type the host name to go on" in page
    wrong = console.type(incident_id, "coredump", confirm="gpu-elsewhere")
    assert (wrong.status_code, HOST in wrong.text) == (409, True)
    assert console.get(f"/incidents/{incident_id}/diagnostics")["items"] == []


def _see_it_grow(console: Console, number: int, incident_id: int) -> None:
    """While it grows the page says so and asks for itself, and there is nothing to download."""
    until(lambda: console.states(number) == ["growing"])
    [item] = console.diagnostic(number)["items"]
    page = console.client.get(f"/diagnostics/{number}").text
    part = console.client.get(f"/diagnostics/{number}/found")
    assert "growing" in page
    assert f'hx-get="/diagnostics/{number}/found"' in page
    assert ("HX-Refresh" in part.headers, "growing" in part.text) == (False, True)
    assert (item["artifact_id"], console.artifacts(incident_id)) == (None, [])


@pytest.mark.parametrize(
    ("variant", "state", "says"),
    [
        ("ignored", "no-file", "No dump was produced in"),
        ("dies_first", "no-file", "The process ended before a coredump appeared"),
        ("dies_during", "truncated", "The process ended before the driver had written all"),
    ],
)
def test_what_does_not_end_well_says_how(
    console: Console, agent: Agent, tmp_path: Path, variant: str, state: str, says: str
) -> None:
    with dumping(tmp_path / "server", variant) as server:
        incident_id = console.incident(console.register(agent), server)
        done = console.ended(console.press(incident_id))

        [item] = done["items"]
        assert (item["state"], says in item["says"]) == (state, True), item
        assert item["fix"]
        assert says in console.client.get(f"/diagnostics/{done['id']}").text
        kinds = [one["kind"] for one in console.artifacts(incident_id)]
        assert kinds == (["truncated coredump"] if state == "truncated" else [])
        sent = ["received 1", "received 4096"] if variant == "ignored" else ["received 1"]
        assert server.said("received") == sent


def test_a_killed_agent_goes_on_watching_and_sends_no_second_byte(
    console: Console, agent: Agent, tmp_path: Path
) -> None:
    with dumping(tmp_path / "server", "held") as server:
        number = console.press(console.incident(console.register(agent), server))
        until(lambda: console.states(number) == ["growing"])
        agent.kill()
        until(lambda: "Last heard of it at" in console.diagnostic(number)["items"][0]["says"])
        assert console.states(number) == ["growing"]
        with quick_agent(agent.state_dir, port=int(agent.url.rpartition(":")[2])):
            server.let_end()
            [item] = console.ended(number)["items"]

        assert "sends nothing again" in " ".join(item["detail"]["notes"])
        _check_whole_after_one_byte(console, number, server)


def test_a_killed_worker_asks_again_and_adopts_what_was_sent(
    admin: TestClient, settings: Settings, agent: Agent, tmp_path: Path
) -> None:
    console = Console(admin)
    with dumping(tmp_path / "server", "held") as server:
        with processes.working(settings.data_dir) as worker:
            host_id = console.register(agent)
            incident_id = console.incident(host_id, server)
            until(lambda: console.get(f"/hosts/{host_id}")["agent_id"])  # not asked again for long
            agent.process.send_signal(signal.SIGSTOP)
            number = console.press(incident_id)
            until(lambda: console.states(number) == ["asked"])
            until(agent.is_asked)
            worker.send_signal(signal.SIGSTOP)  # it will never read the answer
            agent.process.send_signal(signal.SIGCONT)
            until(lambda: server.said("received"))
            processes.kill(worker)
        with processes.working(settings.data_dir):
            cut_off = console.ended(number)
            assert (cut_off["state"], console.states(number)) == ("interrupted", ["asked"])
            page = admin.get(f"/diagnostics/{number}").text
            assert "not repeated unless somebody asks" in page
            console.post(f"/jobs/{cut_off['job_id']}/resume")
            server.let_end()
            until(lambda: console.diagnostic(number)["state"] == "done")

        _check_whole_after_one_byte(console, number, server)
        assert len(agent.did("coredump")) == 2  # asked, and what came of it


def _check_whole_after_one_byte(console: Console, number: int, server: Dumping) -> None:
    [item] = console.diagnostic(number)["items"]
    assert item["state"] == "complete", item
    assert console.downloaded_sha256(item["artifact_id"]) == sha256_of(server.dumps[0])
    assert server.said("received") == ["received 1"]


def test_a_worker_killed_while_the_dump_grows_just_goes_on(
    admin: TestClient, settings: Settings, agent: Agent, tmp_path: Path
) -> None:
    console = Console(admin)
    with dumping(tmp_path / "server", "held") as server:
        with processes.working(settings.data_dir) as worker:
            number = console.press(console.incident(console.register(agent), server))
            until(lambda: console.states(number) == ["growing"])
            processes.kill(worker)
        with processes.working(settings.data_dir):
            server.let_end()
            done = console.ended(number)

        assert done["state"] == "done"
        _check_whole_after_one_byte(console, number, server)


def test_an_agent_that_is_down_is_said_to_be_and_nothing_was_sent(
    console: Console, agent: Agent, tmp_path: Path
) -> None:
    with dumping(tmp_path / "server") as server:
        host_id = console.register(agent)
        incident_id = console.incident(host_id, server)
        until(lambda: console.get(f"/hosts/{host_id}")["agent_id"])
        agent.kill()
        done = console.ended(console.press(incident_id))

        [item] = done["items"]
        assert (done["state"], item["state"], item["rank"]) == ("refused", "refused", "TP0")
        assert item["says"] == "The agent does not answer. Nothing listens there."
        with quick_agent(agent.state_dir, port=int(agent.url.rpartition(":")[2])):
            [again] = console.ended(console.press(incident_id))["items"]
        assert again["state"] == "complete", again
        assert server.said("received") == ["received 1"]


def test_a_disk_without_room_for_the_dump_is_refused_with_the_fix(
    console: Console, tmp_path: Path
) -> None:
    with (
        quick_agent(tmp_path / "agent", free_bytes=2**60) as agent,
        dumping(tmp_path / "server") as server,
    ):
        [item] = console.ended(console.press(console.incident(console.register(agent), server)))[
            "items"
        ]
        assert item["state"] == "refused"
        assert f"are free in {server.folder}" in item["says"]
        assert (item["fix"], item["command"]) == (
            "Free space there first.",
            f"df -h {server.folder}",
        )
        assert server.said("received") == []


def test_an_agent_whose_own_disk_is_full_does_nothing_and_says_so(
    console: Console, tmp_path: Path
) -> None:
    if os.geteuid():
        pytest.skip("only root can mount a small disk")
    state_dir = tmp_path / "agent"
    state_dir.mkdir()
    small = f'mount -t tmpfs -o size=256k none "{state_dir}" && exec "$@"'
    with (
        quick_agent(state_dir, under=["unshare", "--mount", "sh", "-c", small, "sh"]) as outside,
        dumping(tmp_path / "server") as server,
    ):
        within = Path(f"/proc/{outside.process.pid}/root{state_dir}")
        agent = Agent(outside.process, outside.url, within)
        incident_id = console.incident(console.register(agent), server)
        _fill(within / "full")
        dump, stacks = (
            console.ended(console.press(incident_id, kind))["items"][0]
            for kind in ("coredump", "stacks")
        )
        for item in (dump, stacks):
            assert (item["state"], item["kind"]) == ("refused", "no-space"), item
            assert item["fix"] == "Free space where the agent keeps its state."
        assert server.said("received") == []
        assert agent.did("coredump") == agent.did("stacks") == []


def _fill(file: Path) -> None:
    with file.open("wb", buffering=0) as out:
        try:
            while out.write(b"x" * 4096):
                pass
        except OSError:
            return


def test_stacks_are_refused_while_the_dump_of_a_process_runs(
    console: Console, agent: Agent, tmp_path: Path
) -> None:
    with dumping(tmp_path / "server", "held") as server:
        incident_id = console.incident(console.register(agent), server)
        number = console.press(incident_id)
        until(lambda: console.states(number) == ["growing"])
        stacks = console.ended(console.press(incident_id, "stacks"))

        [item] = stacks["items"]
        assert (stacks["state"], item["state"], item["rank"]) == ("refused", "refused", "TP0")
        assert (item["says"], item["kind"]) == (ON_IT, "busy")
        server.let_end()
        assert console.ended(number)["items"][0]["state"] == "complete"


def test_all_ranks_of_a_host_are_dumped_one_after_the_other(
    console: Console, agent: Agent, tmp_path: Path
) -> None:
    with dumping(tmp_path / "server", "slow", ranks=2, seconds=1) as server:
        incident_id = console.incident(console.register(agent), server, ranks=2)
        done = console.ended(console.press(incident_id))

        first, second = done["items"]
        assert (first["state"], second["state"]) == ("complete", "complete"), done
        assert (first["rank"], second["rank"]) == ("TP0", "TP1")
        assert second["taken_at"] > first["detail"]["changed_at"]
        assert server.said("received") == ["received 1", "received 1"]
        assert len(console.artifacts(incident_id)) == 2


def test_of_two_consoles_on_one_agent_one_gets_its_turn(
    console: Console, admin: TestClient, settings: Settings, agent: Agent, tmp_path: Path
) -> None:
    other = Console(admin)
    with (
        dumping(tmp_path / "server", "held") as server,
        processes.working(settings.data_dir),
    ):
        mine = console.incident(console.register(agent), server)
        theirs = other.incident(other.register(agent, "gpu-as-they-call-it"), server)
        number = console.press(mine)
        until(lambda: console.states(number) == ["growing"])
        second = other.ended(other.press(theirs, confirm="gpu-as-they-call-it"))
        server.let_end()
        [refused], [done] = second["items"], console.ended(number)["items"]

        assert (second["state"], refused["state"]) == ("refused", "refused")
        assert "being written already" in refused["says"]
        assert done["state"] == "complete", done
        assert other.artifacts(theirs) == []
        assert server.said("received") == ["received 1"]


def test_stacks_touch_the_server_of_the_target_and_no_other(
    console: Console, agent: Agent, tmp_path: Path
) -> None:
    with (
        dumping(tmp_path / "one", ranks=2) as meant,
        dumping(tmp_path / "two", ranks=2) as neighbour,
    ):
        host_id = console.register(agent)
        incident_id = console.incident(host_id, meant, ranks=2)
        other = console.server(host_id, neighbour.port, 2)
        found = console.server(host_id, meant.port, 2)
        ranks = {one["id"] for one in found["processes"] if one["role"] == "scheduler"}
        number = _led_to(console.type(incident_id, "stacks"))
        until(lambda: console.states(number) == ["done", "done"])
        items = console.diagnostic(number)["items"]

        assert {item["process_id"] for item in items} == ranks
        asked = {one for line in agent.did("stacks") for one in line["process_ids"]}
        assert asked == ranks
        assert not asked & {one["id"] for one in other["processes"]}
        for item in items:
            text = console.client.get(f"/api/v1/artifacts/{item['artifact_id']}/content").json()
            assert {thread["pid"] for thread in text} == {item["pid"]}
        console.post(f"/jobs/{console.diagnostic(number)['job_id']}/cancel")
        assert console.ended(number)["state"] == "cancelled"


def test_a_bundle_waits_while_stacks_are_taken(
    console: Console, agent: Agent, tmp_path: Path
) -> None:
    with dumping(tmp_path / "server") as server:
        silent = f"http://127.0.0.1:{free_port()}"
        incident_id = console.incident(console.register(agent), server, url=silent)
        number = console.press(incident_id, "stacks", samples=2, interval_seconds=6.0)
        until(lambda: console.states(number))
        [target_id] = console.get(f"/incidents/{incident_id}")["target_ids"]
        sent = {"target_id": target_id}
        job_id = console.post(f"/incidents/{incident_id}/bundles", sent)["job"]["id"]
        until(lambda: "Stacks" in console.get(f"/jobs/{job_id}")["says"])
        stacks = console.ended(number)
        until(lambda: console.get(f"/jobs/{job_id}")["finished_at"])

        assert stacks["state"] == "done"
        assert console.get(f"/jobs/{job_id}")["finished_at"] > stacks["finished_at"]
