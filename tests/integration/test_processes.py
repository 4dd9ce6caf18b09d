"""Real processes with real titles, as a server has them."""

import json
import os
import signal
import socket
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from app.agent.processes import proc
from app.agent.processes.gpus import GpuReader
from app.agent.processes.ports import Listeners
from app.agent.processes.table import ProcessTable
from app.errors import NotFound
from app.protocol.messages import Process, Server
from tests.integration.played import ROOT, SERVING, played
from tests.ports import free_port
from tests.waiting import until

pytestmark = pytest.mark.skipif(sys.platform != "linux", reason="reads procfs")


@pytest.fixture
def torch(tmp_path: Path) -> str:
    """A file that is mapped in the place of a library."""
    file = tmp_path / "libtorch_cpu.so"
    file.write_bytes(b"x")
    return str(file)


def look() -> ProcessTable:
    return ProcessTable(gpus=GpuReader(driver=()))


def server_of(root: subprocess.Popen[bytes], processes: int) -> Server:
    """The server of *root* as soon as it is whole: it listens, which is last, and is so many."""

    def whole() -> Server | None:
        for server in look().processes().servers:
            if server.id == proc.process_id(root.pid) and not server.starting:
                return server if server.ports and len(server.processes) >= processes else None
        return None

    until(whole)
    server = until(whole)  # a look reads titles before ports: the next one has both
    assert server is not None
    return server


def facts(server: Server) -> list[tuple[str, str | None]]:
    return [(p.role, p.rank.label if p.rank else None) for p in server.processes]


@contextmanager
def tensor_parallel(port: int, torch: str) -> Iterator[subprocess.Popen[bytes]]:
    ranks = [{"title": f"sglang::scheduler_TP{rank}", "maps": torch} for rank in (0, 1)]
    node = {"listens": port, "children": [*ranks, {"title": "sglang::detokenizer"}]}
    with played(node, "--port", str(port), "--api-key", "tops3cret-1") as root:
        yield root


def test_two_servers_of_one_host_are_two_with_their_own_ranks_and_ports(torch: str) -> None:
    ports = free_port(), free_port()
    with tensor_parallel(ports[0], torch) as one, tensor_parallel(ports[1], torch) as two:
        servers = [server_of(one, 5), server_of(two, 5)]
        assert [server.ports for server in servers] == [[ports[0]], [ports[1]]]
        assert [server.name for server in servers] == [f"sglang on port {p}" for p in ports]
        expected = [
            ("server", None),
            ("scheduler", "TP0"),
            ("scheduler", "TP1"),
            ("detokenizer", None),
            ("other", None),  # multiprocessing's tracker
        ]
        assert [facts(server) for server in servers] == [expected, expected]
        ids = [{process.id for process in server.processes} for server in servers]
        assert not ids[0] & ids[1]
        assert all(process.doubts == [] for s in servers for process in s.processes)
        assert "tops3cret" not in servers[0].model_dump_json()


def test_ranks_below_a_controller_belong_to_the_server(torch: str) -> None:
    port = free_port()
    ranks = [{"title": f"sglang::scheduler_DP{dp}_TP0", "maps": torch} for dp in (0, 1)]
    controller = {"title": "sglang::data_parallel_controller", "children": ranks}
    with played({"listens": port, "children": [controller]}, f"--port={port}") as root:
        whole = [
            ("server", None),
            ("dp controller", None),
            ("scheduler", "DP0_TP0"),
            ("scheduler", "DP1_TP0"),
        ]
        assert facts(server_of(root, 5))[:4] == whole


def test_ranks_that_only_start_have_no_title_and_the_server_is_starting() -> None:
    with played({"children": [{}, {}]}, "--port", str(free_port())) as root:

        def starting() -> list[Process]:
            servers = {s.id: s for s in look().processes().servers}
            server = servers.get(proc.process_id(root.pid) or "")
            found = [p for p in server.processes if p.role == "starting"] if server else []
            assert server is None or server.starting
            return found if len(found) == 2 else []

        assert all("spawn_main" in process.title for process in until(starting))


def test_the_port_of_a_rust_server_is_open_in_its_scheduler(torch: str) -> None:
    port = free_port()
    rank = {"title": "sglang::scheduler", "maps": torch, "listens": port}
    with played({"children": [rank]}, "--port", str(port)) as root:

        def opened() -> list[int]:
            return server_of(root, 3).ports

        assert until(opened) == [port]


def test_a_fork_of_a_rank_is_not_counted_as_a_rank(torch: str) -> None:
    port = free_port()
    rank = {"title": "sglang::scheduler", "maps": torch, "forks": True}
    with played({"listens": port, "children": [rank]}, "--port", str(port)) as root:
        roles = [process.role for process in server_of(root, 4).processes]
        assert roles.count("scheduler") == 1


def test_the_server_of_vllm_has_workers(tmp_path: Path, torch: str) -> None:
    script = tmp_path / "vllm"
    script.write_text(
        "import runpy\nif __name__ == '__main__':\n"
        "    runpy.run_module('sglang.launch_server', run_name='__main__', alter_sys=True)\n"
    )
    port = free_port()
    workers = [{"title": f"VLLM::Worker_TP{rank}", "maps": torch} for rank in (0, 1)]
    node = {"listens": port, "children": [{"title": "VLLM::EngineCore", "children": workers}]}
    with played(node, "m", "--port", str(port), command=[str(script), "serve"]) as root:
        server = server_of(root, 4)
        assert (server.engine, server.ports) == ("vllm", [port])
        assert facts(server)[:3] == [("server", None), ("worker", "TP0"), ("worker", "TP1")]


def test_ranks_outlive_their_server_as_what_is_left_of_it(torch: str) -> None:
    port = free_port()
    with tensor_parallel(port, torch) as root, tensor_parallel(free_port(), torch) as other:
        before, beside = server_of(root, 5), server_of(other, 5)
        table = look()
        assert table.find(before.processes[1].id).role == "scheduler"
        root.kill()
        root.wait(10)
        left = look().server_of(before.processes[1].id)
        assert left.name == f"sglang without its server, pid {before.processes[1].pid}"
        assert [process.doubts for process in left.processes] == [
            ["its server is gone, or it never had one"]
        ]
        again = next(s for s in look().processes().servers if s.id == beside.id)
        assert {p.id for p in again.processes} == {p.id for p in beside.processes}
        with pytest.raises(NotFound, match="has ended"):
            table.find(before.id)


def test_a_sleep_that_calls_itself_a_scheduler_is_nobodys_rank(torch: str) -> None:
    port = free_port()
    with tensor_parallel(port, torch) as root:
        server = server_of(root, 5)
        fake = subprocess.Popen(["sglang::scheduler_TP9\n\x1b[2J", "60"], executable="/bin/sleep")
        try:
            found = until(lambda: proc.process_id(fake.pid))
            alone = look().server_of(str(found))
            assert found not in [p.id for p in server_of(root, 5).processes]
            assert (alone.id, len(alone.processes)) == (found, 1)
            assert alone.processes[0].title == "sglang::scheduler_TP9\\n\\x1b[2J 60"
            doubts = alone.processes[0].doubts
            assert "it has neither CUDA nor torch loaded" in doubts
            assert "its server is gone, or it never had one" in doubts
            assert any(doubt.endswith(", not Python") for doubt in doubts)
        finally:
            fake.kill()
            fake.wait(10)
        assert facts(server_of(root, 5)) == facts(server)


def test_a_stopped_rank_and_a_dead_one_are_shown_in_their_state(torch: str) -> None:
    port = free_port()
    with tensor_parallel(port, torch) as root:
        ranks = server_of(root, 5).processes[1:3]
        os.kill(ranks[0].pid, signal.SIGSTOP)
        os.kill(ranks[1].pid, signal.SIGKILL)

        def states() -> bool:
            stats = [proc.read_stat(rank.pid) for rank in ranks]
            return [stat and stat.state for stat in stats] == ["T", "Z"]

        until(states)
        table = look()
        servers = table.processes().servers
        shown = {process.pid: process for server in servers for process in server.processes}
        assert [shown[r.pid].state for r in ranks] == ["T", "Z"]
        assert [shown[r.pid].role for r in ranks] == ["scheduler", "scheduler"]
        with pytest.raises(NotFound, match="has ended"):
            table.find(ranks[1].id)
        os.kill(ranks[0].pid, signal.SIGCONT)


def test_what_is_in_another_namespace_says_so(torch: str) -> None:
    if os.geteuid() != 0:
        pytest.skip("makes namespaces, needs root")
    command = ["unshare", "--pid", "--mount", "--fork", "--mount-proc", sys.executable]
    environment = {"PATH": os.environ["PATH"], "PYTHONPATH": f"{SERVING}:{ROOT}"}
    environment["PLAY"] = json.dumps({"children": [{"title": "sglang::scheduler", "maps": torch}]})
    around = subprocess.Popen(
        [*command, "-m", "sglang.launch_server"], env=environment, start_new_session=True
    )
    try:

        def rank() -> Process | None:
            for server in look().processes().servers:
                for process in server.processes:
                    if process.role == "scheduler" and process.own_pid_namespace:
                        return process
            return None

        found = until(rank)
        assert found is not None
        assert found.own_mount_namespace
        assert found.inner_pid is not None
        assert found.inner_pid < 10 < found.pid
    finally:
        os.killpg(around.pid, signal.SIGKILL)
        around.wait(10)


def test_ports_of_ipv6_are_found_as_well() -> None:
    if not socket.has_dualstack_ipv6():
        pytest.skip("no IPv6 here")
    with socket.create_server(("::", 0), family=socket.AF_INET6) as listener:
        assert listener.getsockname()[1] in Listeners(proc.PROC).of(os.getpid()).ports
