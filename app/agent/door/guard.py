"""The agent's door: who does not hold its key is told so, and nothing else.

Every request but a sign of life is signed over method, path, query, body, actor, time, nonce and
this agent's id (``protocol.signing``), and so is every answer to one. What is refused here is
answered without a signature: it is not known who asks. A browser is never let in.
"""

import time
from collections.abc import Iterable
from dataclasses import dataclass
from ipaddress import ip_address

import anyio
from starlette.datastructures import Headers, MutableHeaders
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from app.agent.failures import said
from app.agent.kept.state import AgentState
from app.agent.metrics import Metrics
from app.errors import ConsoleError, Throttled
from app.protocol import signing

ALIVE, METRICS = "/agent/v1/alive", "/agent/v1/metrics"
MAX_BODY_BYTES = 256 * 1024
BODY_SECONDS = 10.0


@dataclass(frozen=True, slots=True)
class Asked:
    """A request that holds the key: its number, and whom the console names."""

    request_id: str
    who: str


class _RefusedError(Exception):
    def __init__(self, status: int, code: str, what: str, fix: str | None = None) -> None:
        super().__init__(what)
        self.status, self.code, self.told = status, code, ConsoleError(what, fix=fix)


class Guard:
    """Lets signed requests through to *app*, with ``request.state.asked``, and signs answers."""

    def __init__(self, app: ASGIApp, *, state: AgentState, metrics: Metrics) -> None:
        self.app, self._state, self._metrics = app, state, metrics

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] == "lifespan":
            await self.app(scope, receive, send)
            return
        if scope["type"] != "http":
            await send({"type": "websocket.close"})
            return
        try:
            if _is_open(scope):
                await self.app(scope, receive, send)
                return
            signed, body = await self._admitted(scope, receive)
        except _RefusedError as refusal:
            self._metrics.refused(refusal.code)
            self._state.ledger.refused(refusal.code)
            await said(refusal.status, refusal.code, refusal.told)(scope, receive, send)
            return
        scope.setdefault("state", {})["asked"] = Asked(signed.nonce, signed.actor)
        answer = await self._answered(scope, receive, body)
        await self._send_signed(answer, signed.nonce, send)
        self._metrics.answered(answer.status)

    async def _admitted(self, scope: Scope, receive: Receive) -> tuple[signing.Signed, bytes]:
        """What a request says of itself and its body, once both are proven."""
        headers = Headers(scope=scope)
        found = signing.read(headers)
        if found is None:
            raise _RefusedError(
                401,
                "signature-missing",
                "The request is not signed.",
                fix="Only a console that has this agent's key may ask it.",
            )
        signed, signature = found
        if not signing.same(signed.agent_id, self._state.agent_id):
            raise _RefusedError(
                401,
                "agent-unknown",
                "The request is for another agent.",
                fix="Register this host again: its agent has a new state folder.",
            )
        body = await _body(headers, receive)
        method, target = scope["method"], _target(scope)
        right = signing.request_signature(self._state.key, signed, method, target, body)
        if not signing.same(signature, right):
            raise _RefusedError(
                401,
                "signature-wrong",
                "The signature does not fit the request.",
                fix="Register this host again with the agent's present key.",
            )
        self._check_new(signed, method)
        return signed, body

    def _check_new(self, signed: signing.Signed, method: str) -> None:
        now = time.time()
        off_seconds = signed.time - now
        if abs(off_seconds) > signing.SKEW_SECONDS:
            raise _RefusedError(
                401,
                "clock-off",
                f"The request is {abs(off_seconds):.0f} s {'ahead' if off_seconds > 0 else 'late'}"
                f" by this host's clock; {signing.SKEW_SECONDS} s are allowed.",
                fix="Set the clocks of console and host by NTP.",
            )
        try:
            new = self._state.nonces.take(
                signed.nonce, signed.time, now=now, durable=method != "GET"
            )
        except ConsoleError as error:
            status = 429 if isinstance(error, Throttled) else 507
            raise _RefusedError(status, error.code, error.what, error.fix) from error
        if not new:
            raise _RefusedError(401, "replayed", "This request was made before.")

    async def _answered(self, scope: Scope, receive: Receive, body: bytes) -> "_Answer":
        """The whole answer of the app, which makes answers of its mistakes too (``failures``)."""
        answer = _Answer()
        given = iter(({"type": "http.request", "body": body, "more_body": False},))

        async def receive_body() -> Message:
            for message in given:
                return message
            return await receive()

        await self.app(scope, receive_body, answer.take)
        return answer

    async def _send_signed(self, answer: "_Answer", nonce: str, send: Send) -> None:
        body = b"".join(answer.pieces)
        headers = MutableHeaders(raw=answer.headers)
        headers[signing.SIGNATURE] = signing.answer_signature(
            self._state.key, nonce, answer.status, body
        )
        headers["cache-control"] = "no-store"
        start = {"type": "http.response.start", "status": answer.status, "headers": headers.raw}
        await send(start)
        await send({"type": "http.response.body", "body": body})


class _Answer:
    """An answer that is held back until it is whole and can be signed."""

    def __init__(self) -> None:
        self.status = 500
        self.headers: list[tuple[bytes, bytes]] = []
        self.pieces: list[bytes] = []

    async def take(self, message: Message) -> None:
        if message["type"] == "http.response.start":
            self.status, self.headers = message["status"], list(message["headers"])
        elif message["type"] == "http.response.body":
            self.pieces.append(message.get("body", b""))


def _is_open(scope: Scope) -> bool:
    """Whether anybody may ask this; raises for what a browser sent, whatever it asks."""
    headers = Headers(scope=scope)
    if "origin" in headers:
        raise _RefusedError(403, "origin-refused", "The agent does not answer pages.")
    if scope["method"] != "GET":
        return False
    if scope["path"] == METRICS:
        return signing.SIGNATURE not in headers and _from_loopback(scope)
    return bool(scope["path"] == ALIVE)


def _from_loopback(scope: Scope) -> bool:
    client = scope.get("client") or ("", 0)
    try:
        return ip_address(client[0]).is_loopback
    except ValueError:
        return False


def _target(scope: Scope) -> str:
    """Path and query as they stand in the request line."""
    raw: bytes = scope["raw_path"]
    query: bytes = scope["query_string"]
    return (raw + (b"?" + query if query else b"")).decode("latin-1")


async def _body(headers: Headers, receive: Receive) -> bytes:
    told = headers.get("content-length", "0")
    if not told.isdecimal() or int(told[:20]) > MAX_BODY_BYTES:
        raise _too_large()
    pieces: list[bytes] = []
    with anyio.move_on_after(BODY_SECONDS):
        while True:
            message = await receive()
            pieces.append(message.get("body", b""))
            if _total(pieces) > MAX_BODY_BYTES:
                raise _too_large()
            if not message.get("more_body"):
                return b"".join(pieces)
    raise _RefusedError(408, "body-too-slow", f"The body did not come in {BODY_SECONDS:.0f} s.")


def _total(pieces: Iterable[bytes]) -> int:
    return sum(map(len, pieces))


def _too_large() -> _RefusedError:
    return _RefusedError(413, "body-too-large", f"The body is over {MAX_BODY_BYTES // 1024} KiB.")
