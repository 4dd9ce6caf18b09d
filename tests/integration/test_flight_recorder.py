"""Torch's flight recorder, through a real FIFO."""

import os
from contextlib import AbstractContextManager
from pathlib import Path

import pytest

from app.agent.evidence.flight_recorder import read_flight_recorder
from app.agent.touching.holds import Holds
from app.errors import Conflict, ConsoleError, NotFound, Rejected, TooLarge, Unreachable
from app.protocol.messages import FileTaken
from tests.integration.telling import Told, agent_files, telling

WHOLE = b"".join(b"\x80\x04 not to be loaded %d\n" % number for number in range(3))


def _ask(told: Told, folder: Path, *, seconds: float = 60, holds: Holds | None = None) -> FileTaken:
    return read_flight_recorder(
        told.server.id,
        table=told.table,
        holds=holds or Holds(),
        files=agent_files(folder / "files"),
        wait_seconds=seconds,
    )


def _recording(folder: Path, *arguments: str) -> AbstractContextManager[Told]:
    environment = {
        "TORCH_FR_DUMP_TEMP_FILE": str(folder / "trace_rank_"),
        "TORCH_NCCL_DEBUG_INFO_PIPE_FILE": str(folder / "flight_rank_"),
    }
    return telling("--recorder", str(folder), *arguments, environment=environment)


def test_the_whole_dump_is_kept_unread_once_nobody_writes_to_it(tmp_path: Path) -> None:
    with _recording(tmp_path) as told:
        taken = _ask(told, tmp_path)
    opened, _ = agent_files(tmp_path / "files").open_file(taken.id)
    with opened:
        assert opened.read() == WHOLE
    assert (taken.kind, taken.tier) == ("flight recorder", "T2")
    assert taken.name == "flight-recorder-rank0.pickle"


def test_an_old_dump_is_not_taken_for_the_new_one(tmp_path: Path) -> None:
    (tmp_path / "trace_rank_0").write_bytes(b"of last week")
    silent = pytest.raises(Unreachable, match="The byte was sent; no dump appeared")
    with _recording(tmp_path, "--writes", "0") as told, silent:
        _ask(told, tmp_path, seconds=1.5)


def test_a_link_in_the_place_of_the_dump_is_not_followed(tmp_path: Path) -> None:
    (tmp_path / "secret").write_bytes(b"secret")
    (tmp_path / "trace_rank_0").symlink_to(tmp_path / "secret")
    with _recording(tmp_path, "--writes", "0") as told:
        (tmp_path / "secret").write_bytes(b"it changed")
        with pytest.raises(Unreachable):
            _ask(told, tmp_path, seconds=1.5)


def test_a_server_without_a_recorder_is_told_how_to_have_one(tmp_path: Path) -> None:
    with telling() as told, pytest.raises(Rejected) as refused:
        _ask(told, tmp_path)
    assert "no flight recorder pipe" in refused.value.what
    assert "TORCH_NCCL_DEBUG_INFO_PIPE_FILE" in (refused.value.command or "")


def test_a_regular_file_of_that_name_is_never_written_to(tmp_path: Path) -> None:
    bait = tmp_path / "flight_rank_0.pipe"
    bait.write_bytes(b"")
    descriptor = os.open(bait, os.O_RDONLY)
    variables = {"TORCH_NCCL_DEBUG_INFO_PIPE_FILE": str(tmp_path / "flight_rank_")}
    with telling(output=descriptor, environment=variables) as told, pytest.raises(Rejected):
        _ask(told, tmp_path)
    os.close(descriptor)
    assert bait.read_bytes() == b""


def test_a_pipe_that_is_not_the_recorders_is_never_written_to(tmp_path: Path) -> None:
    environment = {"TORCH_FR_DUMP_TEMP_FILE": str(tmp_path / "trace_rank_")}
    refused = pytest.raises(Rejected, match="no flight recorder pipe")
    with telling("--recorder", str(tmp_path), environment=environment) as told, refused:
        _ask(told, tmp_path)
    assert not (tmp_path / "trace_rank_0").exists()


def test_nothing_is_written_while_a_tool_is_on_the_process(tmp_path: Path) -> None:
    holds = Holds()
    refused = pytest.raises(Conflict, match="py-spy is on this process")
    with _recording(tmp_path) as told, holds.hold(told.root.pid, "py-spy"), refused:
        _ask(told, tmp_path, holds=holds)
    assert not (tmp_path / "trace_rank_0").exists()


def test_a_pipe_of_another_user_is_not_written_to(tmp_path: Path) -> None:
    if os.geteuid() != 0:
        pytest.skip("only root may give a file away")
    with _recording(tmp_path) as told:
        os.chown(tmp_path / "flight_rank_0.pipe", 12345, 12345)
        with pytest.raises(Rejected, match="uid 12345"):
            _ask(told, tmp_path)
    assert not (tmp_path / "trace_rank_0").exists()


def test_a_process_that_has_ended_is_said_to_have(tmp_path: Path) -> None:
    with _recording(tmp_path) as told:
        server_id, table = told.server.id, told.table
    with pytest.raises(NotFound):
        read_flight_recorder(server_id, table=table, holds=Holds(), files=agent_files(tmp_path))


def test_a_dump_beyond_the_limit_leaves_nothing_behind(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("app.agent.evidence.recorder_dump.MAX_BYTES", 10)
    with _recording(tmp_path) as told, pytest.raises(TooLarge) as refused:
        _ask(told, tmp_path)
    assert isinstance(refused.value, ConsoleError)
    assert agent_files(tmp_path / "files").listing() == []
