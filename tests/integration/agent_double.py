"""An agent by its protocol alone: it checks signatures and says what a test tells it to say."""

import hashlib
import json
import ssl
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any
from urllib.parse import parse_qs, urlsplit

from app.protocol import signing
from app.protocol.messages import FileTaken
from tests.integration import make

PREFIX = "/agent/v1"
KEY = bytes(range(32))


@dataclass
class Asked:
    """A request that the double got."""

    method: str
    path: str  # below the prefix
    query: dict[str, list[str]]
    body: Any
    actor: str
    at: Any = field(default_factory=make.now)


Say = Callable[[Asked], Any]  # a message, a tuple (status, JSON), or bytes


@dataclass
class Double:
    """What it knows, says and was asked; *says* by "GET /info"."""

    agent_id: str = "00000000000000a1"
    key: bytes = KEY
    says: dict[str, Say] = field(default_factory=dict)
    files: dict[str, bytes] = field(default_factory=dict)
    asked: list[Asked] = field(default_factory=list)
    url: str = ""

    def file(self, data: bytes, name: str = "stacks.json", kind: str = "stacks") -> FileTaken:
        """A file that can be downloaded."""
        digest = hashlib.sha256(data).hexdigest()
        self.files[digest[:32]] = data
        return FileTaken(
            id=digest[:32],
            name=name,
            kind=kind,
            size_bytes=len(data),
            sha256=digest,
            taken_at=make.now(),
        )

    def those(self, what: str) -> list[Asked]:
        """Requests of one kind: "POST /stacks". The worker asks each host of itself besides."""
        return [one for one in self.asked if f"{one.method} {one.path}" == what]

    def times(self, what: str) -> int:
        """How often it was asked that."""
        return len(self.those(what))


@contextmanager
def agent_double(double: Double, tls: ssl.SSLContext | None = None) -> Iterator[Double]:
    """*double*, listening on loopback."""
    server = _Server(("127.0.0.1", 0), _Handler)
    server.double = double
    if tls:
        server.socket = tls.wrap_socket(
            server.socket, server_side=True, do_handshake_on_connect=False
        )
    scheme = "https" if tls else "http"
    double.url = f"{scheme}://127.0.0.1:{server.server_port}"
    thread = threading.Thread(target=server.serve_forever, args=(0.05,))
    thread.start()
    try:
        yield double
    finally:
        server.shutdown()
        thread.join()
        server.server_close()


def _unknown(_: Asked) -> tuple[int, dict[str, str]]:
    return 404, {"error": "not-found", "detail": "The double has no answer."}


class _Server(ThreadingHTTPServer):
    double: Double


class _Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    server: _Server

    @property
    def double(self) -> Double:
        return self.server.double

    def do_GET(self) -> None:
        self._answer()

    def do_POST(self) -> None:
        self._answer()

    def log_message(self, *_: object) -> None:
        """Says nothing on stderr."""

    def _answer(self) -> None:
        body = self.rfile.read(int(self.headers.get("content-length", 0)))
        parts = urlsplit(self.path)
        path = parts.path.removeprefix(PREFIX)
        if path == "/alive":
            self._send(200, json.dumps({"agent_id": self.double.agent_id}).encode(), "")
            return
        signed = self._proven(body)
        if signed is None:
            told = {"error": "signature-wrong", "detail": "The signature does not fit."}
            self._send(401, json.dumps(told).encode(), "")
            return
        said = json.loads(body) if body else None
        asked = Asked(self.command, path, parse_qs(parts.query), said, signed.actor)
        self.double.asked.append(asked)
        status, answer = self._said(asked)
        self._send(status, answer, signed.nonce)

    def _proven(self, body: bytes) -> signing.Signed | None:
        """What the request says of itself, if it is signed with our key and for us."""
        found = signing.read({name.lower(): value for name, value in self.headers.items()})
        if found is None or found[0].agent_id != self.double.agent_id:
            return None
        signed, signature = found
        right = signing.request_signature(self.double.key, signed, self.command, self.path, body)
        return signed if signing.same(signature, right) else None

    def _said(self, asked: Asked) -> tuple[int, bytes]:
        if asked.path.startswith("/artifacts/"):
            start, _, end = self.headers["range"].removeprefix("bytes=").partition("-")
            data = self.double.files[asked.path.removeprefix("/artifacts/")]
            return 206, data[int(start) : int(end) + 1]
        said = self.double.says.get(f"{asked.method} {asked.path}", _unknown)(asked)
        if isinstance(said, tuple):
            return said[0], json.dumps(said[1]).encode()
        if isinstance(said, bytes):
            return 200, said
        return 200, said.model_dump_json().encode()

    def _send(self, status: int, body: bytes, nonce: str) -> None:
        self.send_response(status)
        if nonce:
            signature = signing.answer_signature(self.double.key, nonce, status, body)
            self.send_header(signing.SIGNATURE, signature)
        self.send_header("content-length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)
