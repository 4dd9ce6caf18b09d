"""A console, an agent and a server as three processes: what is asked is done, kept and told."""

import hashlib
import json
import threading
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import httpx
import pytest

from app.agent.door.certificate import fingerprint
from app.agent.main import create_agent
from app.agent.parts import Agent
from app.agent.touching.tools import find_tool
from app.clients.agent import AgentAddress, AgentClient
from app.clients.agent_address import INSIDE
from app.errors import Conflict, ConsoleError, NotFound
from app.protocol.messages import CoredumpRequest, ProfileRequest, Server, StacksRequest
from tests.integration.played import played
from tests.integration.test_agent_process import Running, running
from tests.ports import free_port
from tests.waiting import until

pytestmark = [
    pytest.mark.slow,
    pytest.mark.skipif(find_tool("py-spy") is None, reason="py-spy is not installed"),
]


@pytest.fixture(scope="module")
def port() -> Iterator[int]:
    port = free_port()
    ranks = [{"title": f"sglang::scheduler_TP{rank}"} for rank in (0, 1)]
    with played({"listens": port, "children": ranks}, "--port", str(port)):
        yield port


def _client(agent: Running) -> AgentClient:
    key = bytes.fromhex((agent.state_dir / "key").read_text())
    pem = agent.state_dir / "tls-cert.pem"
    told = fingerprint(pem) if pem.exists() else None
    return AgentClient(AgentAddress(agent.url, None, key, told), actor="mira é")


def _server(client: AgentClient, port: int) -> Server:
    def found() -> list[Server]:
        return [one for one in client.processes().servers if one.ports == [port]]

    until(found)
    [server] = until(found)  # a look reads titles before ports: the next one has both
    return server


def _ledger(folder: Path, what: str) -> list[dict[str, object]]:
    lines = (folder / "ledger.jsonl").read_text().splitlines()
    return [line for line in map(json.loads, lines) if line["what"] == what]


@pytest.mark.parametrize("host", ["127.0.0.1", "0.0.0.0"])
def test_stacks_are_taken_kept_downloaded_and_written_down(
    tmp_path: Path, port: int, host: str
) -> None:
    with running(tmp_path / "state", "--host", host) as agent:
        agent.url = f"http{'s' if host == '0.0.0.0' else ''}://127.0.0.1:{agent.url.split(':')[2]}"
        client = _client(agent)
        ids = [one.id for one in _server(client, port).processes]
        answer = client.stacks(StacksRequest(process_ids=ids))
        pieces: list[bytes] = []
        client.download(answer.done[0].file, pieces.append)

    assert [sample.process_id for sample in answer.done] == ids
    assert hashlib.sha256(b"".join(pieces)).hexdigest() == answer.done[0].file.sha256
    asked, done = _ledger(agent.state_dir, "stacks")
    assert (asked["who"], asked["result"]) == ("mira é", "asked")
    assert done["request_id"] == asked["request_id"]
    assert done["process_ids"] == ids
    assert done["sha256"] == [sample.file.sha256 for sample in answer.done]


def test_every_question_has_its_answer_and_every_refusal_its_reason(
    tmp_path: Path, port: int
) -> None:
    with running(tmp_path / "state") as agent:
        client = _client(agent)
        server = _server(client, port)
        rank = next(one for one in server.processes if one.role == "scheduler")

        refused = client.trigger_coredump(CoredumpRequest(process_id=rank.id, confirm="elsewhere"))
        assert refused.state == "refused"
        assert client.coredump(refused.id) == refused
        assert client.coredumps() == [refused]
        profile = client.start_profile(ProfileRequest(process_id=rank.id, seconds=1))
        until(lambda: client.profile(profile.id).state == "complete")
        assert {fact.topic for fact in client.facts([rank.id]).facts} >= {"memory", "disk"}
        assert client.ras(rank.id, interval_seconds=0.5).readings == []
        with pytest.raises(ConsoleError):
            client.flight_recorder(rank.id)
        assert client.preflight([rank.id]).processes[0].process_id == rank.id
        assert not any(dump.server_id == server.id for dump in client.dumps().dumps)
        with pytest.raises(NotFound):
            client.dump("0" * 32)


def test_after_a_kill_in_the_middle_what_was_kept_is_there_and_the_ledger_shows_the_gap(
    tmp_path: Path, port: int
) -> None:
    folder = tmp_path / "state"
    with running(folder) as agent:
        client = _client(agent)
        ids = [one.id for one in _server(client, port).processes]
        request = StacksRequest(process_ids=ids, samples=5, interval_seconds=10)
        asking = threading.Thread(target=_ask_in_vain, args=(client, request))
        asking.start()
        until(lambda: len(client.files()) >= len(ids))
        agent.process.kill()
        asking.join(100)
        assert not asking.is_alive()

    with running(folder) as agent:
        files = _client(agent).files()
        pieces: list[bytes] = []
        _client(agent).download(files[0], pieces.append)

    assert len(files) == len(ids)
    assert [line["result"] for line in _ledger(folder, "stacks")] == ["asked"]


def test_an_agent_told_to_stop_answers_with_what_it_has(tmp_path: Path, port: int) -> None:
    with running(tmp_path / "state") as agent:
        client = _client(agent)
        ids = [one.id for one in _server(client, port).processes]
        request = StacksRequest(process_ids=ids, samples=5, interval_seconds=30)
        with ThreadPoolExecutor(1) as threads:
            asking = threads.submit(client.stacks, request)
            until(lambda: len(client.files()) >= len(ids))
            agent.process.terminate()
            answer = asking.result(100)
        until(lambda: agent.process.poll() is not None)

    assert [sample.process_id for sample in answer.done] == ids
    assert len(_ledger(agent.state_dir, "stacks")) == 2  # asked, and ended


def test_inside_the_console_it_is_asked_without_a_network(tmp_path: Path, port: int) -> None:
    app = create_agent(tmp_path / "agent", embedded=True)
    agent: Agent = app.state.agent
    agent.start()
    try:
        transport = httpx.ASGITransport(app=app)
        address = AgentAddress(INSIDE, agent.agent_id, agent.key, transport=transport)
        client = AgentClient(address, actor="mira")
        assert client.info().embedded
        roles = [one.role for one in _server(client, port).processes]
        assert roles.count("scheduler") == 2
        with pytest.raises(Conflict):
            create_agent(tmp_path / "agent").state.agent.start()
    finally:
        agent.stop()


def _ask_in_vain(client: AgentClient, request: StacksRequest) -> None:
    try:
        client.stacks(request)
    except ConsoleError:
        return
