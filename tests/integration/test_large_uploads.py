"""A gigabyte through a real console: the connection breaks in the middle, memory stays small."""

import re
import socket
import subprocess
from collections.abc import Iterator
from pathlib import Path
from urllib.parse import urlsplit

import httpx
import orjson
import pytest

from tests.integration.command_line import run
from tests.integration.test_serve import serving
from tests.waiting import until

pytestmark = pytest.mark.slow

MIB = 1024**2
LINES = 1024
PIECE_BYTES = 128 * MIB
BROKEN_AFTER_BYTES = 40 * MIB


@pytest.fixture
def console(tmp_path: Path) -> Iterator[tuple[httpx.Client, subprocess.Popen[str]]]:
    data = tmp_path / "data"
    made = run(data, "token", "create", "--name", "t", "--role", "operator", "--json")
    token = orjson.loads(made.stdout)["token"]
    quiet = {"INCIDENT_CONSOLE_MIN_FREE_BYTES": "0", "INCIDENT_CONSOLE_LOG_LEVEL": "error"}
    with serving(data, "--no-agent", **quiet) as (process, printed):
        url = re.search(r"http://\S+", printed[0])
        assert url is not None
        with httpx.Client(
            base_url=url[0].rstrip("/"),
            headers={"Authorization": f"Bearer {token}"},
            timeout=120,
            trust_env=False,
        ) as client:
            yield client, process


def _recorded(path: Path) -> int:
    """Write a gigabyte of requests, one a line; its size."""
    with path.open("wb") as file:
        for number in range(LINES):
            file.write(b'{"rid": "%d", "text": "' % number)
            file.write(b"word " * (MIB // 5))
            file.write(b'", "sampling_params": {"max_new_tokens": 4}}\n')
    return path.stat().st_size


def _most_memory_bytes(pid: int) -> int:
    told = re.search(r"VmHWM:\s+(\d+) kB", Path(f"/proc/{pid}/status").read_text())
    assert told is not None
    return int(told[1]) * 1024


def _break_off(client: httpx.Client, upload_id: int, path: Path) -> None:
    """Promise a piece, send a part of it, and hang up."""
    address = urlsplit(str(client.base_url))
    with (
        socket.create_connection((address.hostname, address.port)) as line,
        path.open("rb") as file,
    ):
        line.sendall(
            f"PATCH /api/v1/uploads/{upload_id} HTTP/1.1\r\nHost: {address.netloc}\r\n"
            f"Authorization: {client.headers['Authorization']}\r\nUpload-Offset: 0\r\n"
            f"Content-Length: {PIECE_BYTES}\r\n\r\n".encode()
        )
        line.sendall(file.read(BROKEN_AFTER_BYTES))


def _offset(client: httpx.Client, upload_id: int) -> int:
    return int(client.head(f"/api/v1/uploads/{upload_id}").headers["Upload-Offset"])


def test_a_gigabyte_comes_in_pieces_and_is_read(
    console: tuple[httpx.Client, subprocess.Popen[str]], tmp_path: Path
) -> None:
    client, process = console
    path = tmp_path / "requests.jsonl"
    size_bytes = _recorded(path)
    opened = client.post("/api/v1/incidents", json={"title": "x"}).json()
    before = _most_memory_bytes(process.pid)
    upload_id = client.post(
        f"/api/v1/incidents/{opened['id']}/uploads",
        json={"name": path.name, "size_bytes": size_bytes},
    ).json()["id"]

    _break_off(client, upload_id, path)
    # What had reached the console is kept, but for the last piece that a socket buffered.
    until(lambda: _offset(client, upload_id))
    until(lambda: _free(client, upload_id))
    offset = _offset(client, upload_id)
    assert BROKEN_AFTER_BYTES // 2 < offset <= BROKEN_AFTER_BYTES
    with path.open("rb") as file:
        file.seek(offset)
        while piece := file.read(PIECE_BYTES):
            answer = client.patch(
                f"/api/v1/uploads/{upload_id}",
                content=piece,
                headers={"Upload-Offset": str(offset)},
            )
            assert answer.status_code == 204, answer.text
            offset = int(answer.headers["Upload-Offset"])
    made = client.post(f"/api/v1/uploads/{upload_id}/finish").json()
    dump = until(lambda: _read(client, made["dump_id"]), seconds=120)
    assert dump is not None

    assert (made["size_bytes"], offset) == (size_bytes, size_bytes)
    assert (dump["state"], dump["requests_total"]) == ("ready", LINES)
    assert _most_memory_bytes(process.pid) - before < 150 * MIB


def _free(client: httpx.Client, upload_id: int) -> bool:
    """Whether the broken request is over: a piece for no place is refused for its place alone."""
    answer = client.patch(
        f"/api/v1/uploads/{upload_id}", content=b"x", headers={"Upload-Offset": str(2**60)}
    )
    return "another request" not in answer.json()["detail"]


def _read(client: httpx.Client, dump_id: int) -> dict[str, object] | None:
    dump: dict[str, object] = client.get(f"/api/v1/dumps/{dump_id}").json()
    return dump if dump["state"] not in ("waiting", "reading") else None
