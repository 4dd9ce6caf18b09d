"""The end of a server's log, from the file that it holds open."""

import os
import subprocess
from pathlib import Path

import pytest

from app.agent.evidence.server_logs import TAIL_BYTES, take_log_tails
from app.protocol.messages import FileTaken, Refusal
from tests.integration.telling import agent_files, telling

SECRET = "sk-live-0123456789abcdef"
PROMPT = "my medical history"


def _tails(folder: Path, log: Path, *, mode: str = "ab") -> tuple[list[FileTaken], list[Refusal]]:
    with log.open(mode) as output, telling(output=output) as told:
        return take_log_tails(told.server, files=agent_files(folder / "files"))


def _text(folder: Path, file: FileTaken) -> str:
    opened, _ = agent_files(folder / "files").open_file(file.id)
    with opened:
        return opened.read().decode()


def test_the_log_is_kept_once_without_secrets_and_prompts(tmp_path: Path) -> None:
    log = tmp_path / "server.log"
    log.write_text(f"start --api-key {SECRET}\nReceive: rid=7, text='{PROMPT}'\nplain line\n")
    (file,), refused = _tails(tmp_path, log)
    text = _text(tmp_path, file)
    assert not refused
    assert SECRET not in text
    assert PROMPT not in text
    assert "plain line" in text
    assert "Receive: rid=7, text='‹content masked›" in text
    assert file.redacted == ["content, line 2", "secret, line 1"]


def test_only_the_end_is_taken_and_it_begins_with_a_whole_line(tmp_path: Path) -> None:
    log = tmp_path / "server.log"
    log.write_text(f"text='{PROMPT}" + "x" * TAIL_BYTES + f"{PROMPT}'\nlast line\n")
    (file,), _ = _tails(tmp_path, log)
    text = _text(tmp_path, file)
    assert text.startswith("last line\n")
    assert PROMPT not in text


def test_a_log_that_was_moved_away_is_still_read(tmp_path: Path) -> None:
    log = tmp_path / "server.log"
    log.write_text("before\n")
    with log.open("ab") as output, telling(output=output) as told:
        log.unlink()
        log.symlink_to("/etc/hostname")
        (file,), _ = take_log_tails(told.server, files=agent_files(tmp_path / "files"))
    assert _text(tmp_path, file).startswith("before\n")


def test_a_file_that_the_server_only_reads_is_not_its_log(tmp_path: Path) -> None:
    log = tmp_path / "private"
    log.write_text("not for the server's user\n")
    descriptor = os.open(log, os.O_PATH)
    with telling(output=descriptor) as told:
        files, refused = take_log_tails(told.server, files=agent_files(tmp_path / "files"))
    os.close(descriptor)
    assert not files
    assert "does not write to" in refused[0].reason


def test_a_log_of_another_user_is_not_read(tmp_path: Path) -> None:
    log = tmp_path / "server.log"
    log.write_text("x\n")
    try:
        os.chown(log, 12345, 12345)
    except PermissionError:
        pytest.skip("only root may give a file away")
    files, refused = _tails(tmp_path, log)
    assert not files
    assert "uid 12345" in refused[0].reason


def test_a_log_in_a_pipe_is_refused_with_where_to_ask(tmp_path: Path) -> None:
    with telling(output=subprocess.PIPE) as told:
        files, refused = take_log_tails(told.server, files=agent_files(tmp_path))
    assert told.root.stdout is not None
    told.root.stdout.close()
    assert not files
    assert len(refused) == 1
    assert "goes into a pipe" in refused[0].reason
    assert refused[0].command


def test_a_log_that_is_thrown_away_is_said_to_be(tmp_path: Path) -> None:
    with telling() as told:
        files, refused = take_log_tails(told.server, files=agent_files(tmp_path))
    assert not files
    assert "thrown away" in refused[0].reason
