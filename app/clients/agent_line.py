"""One signed exchange with an agent, under limits that it cannot move."""

import asyncio
import secrets
import time
from collections.abc import Mapping
from dataclasses import dataclass, field
from http import HTTPStatus
from typing import Any, Self

import httpcore
import httpx

from app.clients.agent_address import AgentAddress
from app.clients.pinned import PinnedTransport
from app.clients.silences import SILENCES, silence
from app.domain.endpoints import MIB
from app.domain.plain_json import read_json
from app.errors import (
    Conflict,
    ConsoleError,
    Damaged,
    Malformed,
    NoSpace,
    NotFound,
    Rejected,
    TooLarge,
    Unreachable,
)
from app.protocol import signing
from app.protocol.harmless import harmless

MAX_ANSWER_BYTES = 16 * MIB
CONNECT_SECONDS = 3.0
MAX_WORDS = 2000  # of an agent that refuses
_NO_CONNECTION = (httpcore.ConnectError, httpcore.ConnectTimeout)

# Codes of an agent that does not let somebody in, and so cannot sign: what it means, what to do.
_NOT_LET_IN = {
    "agent-unknown": (
        "it is another agent than the one registered.",
        "Register this host again: its agent has a new state folder.",
    ),
    "clock-off": (
        f"its clock and ours are more than {signing.SKEW_SECONDS} s apart.",
        "Set the clocks of console and host by NTP.",
    ),
    "replayed": ("it has seen the request before.", "Ask again."),
    "signature-wrong": (
        "the signature does not fit.",
        "Register this host again with the agent's present key.",
    ),
}

# What an agent may refuse with; anything else is its own trouble.
_REFUSALS: Mapping[str, type[ConsoleError]] = {
    kind.code: kind
    for kind in (NotFound, Conflict, Damaged, Rejected, Malformed, TooLarge, NoSpace)
}


@dataclass(frozen=True, slots=True)
class Question:
    """What to ask, and how long the whole exchange may take."""

    method: str
    target: str  # path and query, as they stand in the request line
    limit_seconds: float
    body: bytes = b""
    headers: Mapping[str, str] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Answer:
    """An answer that is what it claims to be: whole, and signed where the question was."""

    status: int
    body: bytes

    def json(self) -> Any:  # noqa: ANN401  (any JSON)
        return read_json(self.body)


class Line:
    """An open connection to one agent; of one event loop, closed with it."""

    def __init__(self, address: AgentAddress, agent_id: str, actor: str) -> None:
        self._address, self._agent_id, self._actor = address, agent_id, actor
        transport = address.transport or PinnedTransport(address.tls_fingerprint)
        self._client = httpx.AsyncClient(
            transport=transport,
            base_url=address.url,
            timeout=httpx.Timeout(None, connect=CONNECT_SECONDS),
            trust_env=False,
        )

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(self, *_: object) -> None:
        await self._client.aclose()

    async def alive(self, limit_seconds: float) -> Answer:
        """The one answer that needs no signature; nothing in it is proven."""
        question = Question("GET", "/agent/v1/alive", limit_seconds)
        return _granted((await self._sent(question, {}))[0])

    async def ask(self, question: Question) -> Answer:
        """The answer to *question*, signature checked; raises what the agent refused with."""
        key, method = self._address.key, question.method
        signed = signing.Signed(
            self._agent_id, int(time.time()), secrets.token_hex(16), self._actor
        )
        # As it will stand in the request line: what is signed is what is sent.
        target = httpx.URL(self._address.url + question.target).raw_path.decode("ascii")
        headers = signed.headers(key, method, target, question.body)
        answer, signature = await self._sent(question, headers)
        expected = signing.answer_signature(key, signed.nonce, answer.status, answer.body)
        if not signing.same(signature, expected):
            raise _unsigned(answer)
        return _granted(answer)

    async def _sent(self, question: Question, headers: Mapping[str, str]) -> tuple[Answer, str]:
        try:
            async with asyncio.timeout(question.limit_seconds):
                return await self._exchange(question, headers)
        except TimeoutError as error:
            raise Unreachable(
                f"The agent gave no whole answer in {question.limit_seconds:.3g} s."
            ) from error
        except (httpx.HTTPError, *SILENCES) as error:
            if isinstance(error, ConsoleError):
                raise
            raise Unreachable(
                f"The agent does not answer. {_why(error)}".strip(),
                nothing_sent=isinstance(error, _NO_CONNECTION),
            ) from error

    async def _exchange(self, question: Question, headers: Mapping[str, str]) -> tuple[Answer, str]:
        own = {"accept-encoding": "identity", "content-type": "application/json"}
        body = bytearray()
        async with self._client.stream(
            question.method,
            question.target,
            content=question.body,
            headers={**own, **question.headers, **headers},
        ) as response:
            async for piece in response.aiter_raw():
                body += piece
                if len(body) > MAX_ANSWER_BYTES:
                    raise TooLarge(f"The agent sent more than {MAX_ANSWER_BYTES // MIB} MiB.")
            return Answer(response.status_code, bytes(body)), response.headers.get(
                signing.SIGNATURE, ""
            )


def _granted(answer: Answer) -> Answer:
    """*answer*, or what the agent refused with, raised in its own words."""
    if answer.status < HTTPStatus.BAD_REQUEST:
        return answer
    says, fix, command, code = _words(answer)
    raise _REFUSALS.get(code, Unreachable)(says, fix=fix, command=command)


def _unsigned(answer: Answer) -> Unreachable:
    """Who says it is not known: what to do about it is said in our own words, never in its."""
    code = _words(answer)[3]
    if answer.status in (HTTPStatus.UNAUTHORIZED, HTTPStatus.FORBIDDEN):
        says, fix = _NOT_LET_IN.get(code, _NOT_LET_IN["signature-wrong"])
        return Unreachable(f"The agent does not accept what this console signs: {says}", fix=fix)
    if answer.status >= HTTPStatus.TOO_MANY_REQUESTS:
        return Unreachable(
            f"It answered {answer.status} without a signature: too many ask, or it has no space.",
            fix="Look at the agent's log and at the disk of its state folder.",
        )
    return Unreachable(
        "The answer is not signed with the key of this host; it is not used.",
        why="Somebody else answers there, or the agent has a new key.",
        fix="Register the host again with the key that this command shows there.",
        command="incident-console agent key",
    )


def _words(answer: Answer) -> tuple[str, str | None, str | None, str]:
    """What the agent says, its fix and command, and the code of its error."""
    try:
        body = answer.json()
    except Malformed:
        body = None
    told = body if isinstance(body, dict) else {}
    says, fix, command, code = (
        harmless(text[:MAX_WORDS]) if isinstance(text := told.get(name), str) else None
        for name in ("detail", "fix", "command", "error")
    )
    return says or f"It answered {answer.status}.", fix, command, code or ""


def _why(error: Exception) -> str:
    if isinstance(error, httpx.HTTPError):
        return str(error)[:200]
    return silence(error)[1] or "Nothing listens there."
