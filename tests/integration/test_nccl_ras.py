"""NCCL's RAS over real sockets, well-behaved and hostile."""

import json
import socket
import subprocess
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from app.agent.evidence import ras_client
from app.agent.evidence.ras import read_ras
from app.agent.touching.holds import Holds
from app.errors import Unreachable
from app.protocol.messages import RasAnswer
from tests.integration.telling import Told, agent_files, telling
from tests.ports import free_port
from tests.waiting import BUSY


@contextmanager
def answering(how: str) -> Iterator[Told]:
    port = free_port()
    with telling("--ras", how, environment={"NCCL_RAS_ADDR": f"localhost:{port}"}) as told:
        yield told


def _read(told: Told, folder: Path, holds: Holds | None = None) -> RasAnswer:
    return read_ras(
        table=told.table,
        files=agent_files(folder),
        holds=holds or Holds(),
        process_id=told.server.id,
        interval_seconds=0.1,
    )


def _bytes(folder: Path, file_id: str) -> bytes:
    opened, _ = agent_files(folder).open_file(file_id)
    with opened:
        return opened.read()


def test_two_readings_are_kept_as_json(tmp_path: Path) -> None:
    with answering("well") as told:
        answer = _read(told, tmp_path)
    assert not answer.refused
    assert [one.name.rpartition(".")[2] for one in answer.readings] == ["json", "json"]
    assert json.loads(_bytes(tmp_path, answer.readings[1].id))["nccl_version"] == "2.28.9"
    assert answer.says == "NCCL answered 2 times of 2, 0.1 s apart."


@pytest.mark.parametrize("how", ["old", "hangs up"])
def test_an_nccl_without_json_is_read_as_text(how: str, tmp_path: Path) -> None:
    with answering(how) as told:
        answer = _read(told, tmp_path)
    assert _bytes(tmp_path, answer.readings[0].id).startswith(b"NCCL version 2.24.3")
    assert answer.readings[0].name.endswith(".txt")


def test_an_endless_answer_is_cut(tmp_path: Path) -> None:
    with answering("endless") as told:
        answer = _read(told, tmp_path)
    assert [one.size_bytes for one in answer.readings] == [ras_client.MAX_BYTES] * 2
    assert "cut" in answer.readings[0].name


@pytest.mark.parametrize("how", ["garbage", "endless greeting"])
def test_what_does_not_speak_the_protocol_is_refused(how: str, tmp_path: Path) -> None:
    with answering(how) as told:
        answer = _read(told, tmp_path)
    assert not answer.readings
    assert "does not speak" in answer.refused[0].reason
    assert answer.says == "NCCL gave no answer."


def test_an_answer_that_drips_is_kept_as_far_as_it_came() -> None:
    with answering("drips") as told:
        began = time.monotonic()
        said = _status(told, seconds=2.0)
    assert time.monotonic() - began < 2.0 * BUSY
    assert said.cut
    assert set(said.data) == set(b".")


def test_an_nccl_that_says_nothing_is_given_up() -> None:
    with answering("silent") as told, pytest.raises(Unreachable, match="within 1 s"):
        _status(told, seconds=1.0)


def test_nothing_is_asked_while_a_tool_is_on_a_rank(tmp_path: Path) -> None:
    holds = Holds()
    with answering("well") as told, holds.hold(told.root.pid, "py-spy, native"):
        answer = _read(told, tmp_path, holds)
    assert not answer.readings
    assert answer.refused[0].kind == "busy"
    assert "py-spy, native is on process" in answer.refused[0].reason


def test_a_port_that_another_process_has_is_not_taken_for_the_servers(tmp_path: Path) -> None:
    with answering("well") as other:
        address = _environment(other)["NCCL_RAS_ADDR"]
        with telling(environment={"NCCL_RAS_ADDR": address}) as told:
            answer = _read(told, tmp_path)
    assert not answer.readings
    assert "does not listen" in answer.refused[0].reason


@pytest.mark.parametrize("address", ["10.1.2.3:28028", "localhost", "localhost:99999"])
def test_the_server_does_not_choose_whom_the_agent_talks_to(address: str, tmp_path: Path) -> None:
    with telling(environment={"NCCL_RAS_ADDR": address}) as told:
        answer = _read(told, tmp_path)
    assert not answer.readings
    assert "NCCL_RAS_ADDR" in answer.refused[0].reason


def test_a_server_in_another_network_namespace_is_asked_there(tmp_path: Path) -> None:
    port = free_port()
    up = 'ip link set lo up && exec "$@"'
    under = ("unshare", "-n", "sh", "-c", up, "sh")
    if subprocess.run(["unshare", "-n", "ip", "link", "set", "lo", "up"], check=False).returncode:
        pytest.skip("no right to make a network namespace here")
    environment = {"NCCL_RAS_ADDR": f"localhost:{port}"}
    with telling("--ras", "well", environment=environment, under=under) as told:
        answer = _read(told, tmp_path)
        assert Path("/proc/self/ns/net").readlink() == Path("/proc/thread-self/ns/net").readlink()
    assert len(answer.readings) == 2, answer.refused


def _environment(told: Told) -> dict[str, str]:
    block = Path(f"/proc/{told.root.pid}/environ").read_text()
    return dict(entry.split("=", 1) for entry in block.split("\0") if "=" in entry)


def _status(told: Told, *, seconds: float) -> ras_client.Reading:
    port = int(_environment(told)["NCCL_RAS_ADDR"].rpartition(":")[2])
    return ras_client.read_status(
        lambda wait: socket.create_connection(("localhost", port), wait), reading_seconds=seconds
    )
