"""Whether the server before a restart still lives is told by a connection that stays open."""

import signal
import socket
import subprocess
import sys
from pathlib import Path

import pytest

from app.clients.old_server import OldServer
from tests.ports import free_port
from tests.waiting import until

PROGRAM = Path(__file__).parents[1] / "programs/tiny_server.py"


def listens(port: int) -> bool:
    with socket.socket() as connection:
        return connection.connect_ex(("127.0.0.1", port)) == 0


@pytest.mark.parametrize("stopped", [False, True], ids=["well", "hanging"])
def test_a_server_is_there_until_it_has_ended_also_when_another_takes_its_port(
    *, stopped: bool
) -> None:
    port = free_port()
    command = [sys.executable, str(PROGRAM), str(port)]
    with subprocess.Popen(command) as first:
        until(lambda: listens(port))
        if stopped:
            first.send_signal(signal.SIGSTOP)
        with OldServer(f"http://127.0.0.1:{port}") as old:
            assert not old.is_gone()

            first.kill()
            until(old.is_gone)
            with subprocess.Popen(command) as second:
                until(lambda: listens(port))
                assert old.is_gone()
                second.kill()


def test_where_none_was_there_none_is_there() -> None:
    with OldServer(f"http://127.0.0.1:{free_port()}/path") as old:
        assert old.is_gone()
