"""Asks the agent of one host. Every request is signed, every answer checked before it is read.

Limits that a host cannot move: a deadline for the whole exchange, a cap on bytes, no redirects,
no compression, no proxy of the environment. Off loopback only https, and only to the very
certificate that was registered. What the agent refuses is raised in its own words.
"""

import asyncio
import hashlib
from collections.abc import Callable, Sequence
from datetime import datetime
from typing import TypeVar
from urllib.parse import urlencode

from pydantic import TypeAdapter, ValidationError

from app.clients.agent_address import AgentAddress
from app.clients.agent_line import Answer, Line, Question
from app.errors import Damaged, Malformed, Unreachable
from app.protocol.messages import (
    Coredump,
    CoredumpRequest,
    DumpFound,
    Dumps,
    FileTaken,
    HostFacts,
    Info,
    Message,
    Preflight,
    Processes,
    Profile,
    ProfileRequest,
    RasAnswer,
    StacksAnswer,
    StacksRequest,
)
from app.protocol.signing import MAX_PIECE_BYTES

__all__ = ("AgentAddress", "AgentClient")

HEAR_SECONDS = 3.0  # for what an agent has at hand
LOOK_SECONDS = 20.0  # for what it has to look for
TOOL_SECONDS = 60.0  # for what a tool takes, beyond the time that was asked for
HASH_SECONDS = 600.0  # for reading a large file on the host once
PIECE_SECONDS = 60.0  # for one piece of a file

Told = TypeVar("Told")


class AgentClient:
    """A line to one agent, on behalf of *actor*. Each method is one exchange.

    Raises Unreachable where nobody answers in time or somebody else does, and NotFound, Conflict
    or Rejected as the agent says. Nothing is ever sent twice.
    """

    def __init__(self, address: AgentAddress, *, actor: str = "") -> None:
        self._address, self._actor = address, actor
        self._agent_id = address.agent_id

    def info(self) -> Info:
        return self._get(Info, "/info", HEAR_SECONDS)

    def processes(self, *, limit_seconds: float = LOOK_SECONDS) -> Processes:
        return self._get(Processes, "/processes", limit_seconds)

    def preflight(self, process_ids: Sequence[str] = ()) -> Preflight:
        """What could be captured right now; of all servers when no process is named."""
        return self._get(Preflight, _with("/preflight", process_id=process_ids), LOOK_SECONDS)

    def stacks(self, request: StacksRequest, *, wait_seconds: float = 0.0) -> StacksAnswer:
        """*wait_seconds*: how long the agent is to wait before the first sample."""
        between_seconds = (request.samples - 1) * request.interval_seconds
        limit_seconds = TOOL_SECONDS * request.samples + between_seconds + wait_seconds
        return self._post(StacksAnswer, "/stacks", limit_seconds, request)

    def trigger_coredump(self, request: CoredumpRequest) -> Coredump:
        """Intrusive. The answer comes at once; ``coredump`` tells how it goes on."""
        return self._post(Coredump, "/coredumps", LOOK_SECONDS, request)

    def coredump(self, coredump_id: str) -> Coredump:
        return self._get(Coredump, f"/coredumps/{coredump_id}", LOOK_SECONDS)

    def coredumps(self) -> list[Coredump]:
        """All that the agent knows of, those of earlier triggers too."""
        return self._get(list[Coredump], "/coredumps", LOOK_SECONDS)

    def start_profile(self, request: ProfileRequest) -> Profile:
        return self._post(Profile, "/profiles", LOOK_SECONDS, request)

    def profile(self, profile_id: str) -> Profile:
        return self._get(Profile, f"/profiles/{profile_id}", LOOK_SECONDS)

    def ras(self, process_id: str | None = None, *, interval_seconds: float = 10.0) -> RasAnswer:
        """NCCL's own view, read twice, *interval_seconds* apart."""
        query = {"process_id": process_id, "interval_seconds": interval_seconds}
        return self._get(RasAnswer, _with("/ras", **query), TOOL_SECONDS + interval_seconds)

    def facts(self, process_ids: Sequence[str] = ()) -> HostFacts:
        return self._get(HostFacts, _with("/facts", process_id=process_ids), TOOL_SECONDS)

    def flight_recorder(self, process_id: str) -> FileTaken:
        body = TypeAdapter(dict[str, str]).dump_json({"process_id": process_id})
        return self._told(FileTaken, self._post_bytes("/flight-recorders", TOOL_SECONDS, body))

    def dumps(self, process_ids: Sequence[str] = (), folders: Sequence[str] = ()) -> Dumps:
        """Crash and request dumps of the servers of *process_ids*; of all when none is named.

        *folders*: where they were told to write requests; an agent that knows the folders of
        their command lines alone passes these over.
        """
        path = _with("/dumps", process_id=process_ids, folder=folders)
        return self._get(Dumps, path, LOOK_SECONDS)

    def dump(self, dump_id: str, folders: Sequence[str] = ()) -> DumpFound:
        """Have the agent read and hash a dump, so that it can be downloaded."""
        path = _with(f"/dumps/{dump_id}", folder=folders)
        return self._told(DumpFound, self._post_bytes(path, HASH_SECONDS, b""))

    def files(self, after: datetime | None = None) -> list[FileTaken]:
        """What the agent holds, taken after *after*."""
        told = after.isoformat() if after else None
        return self._get(list[FileTaken], _with("/artifacts", after=told), LOOK_SECONDS)

    def download(self, file: FileTaken, write: Callable[[bytes], object]) -> None:
        """Hand the bytes of *file* to *write*, piece by piece.

        Raises Damaged at the end when they are not what the agent told: then none may be used.
        """
        digest = hashlib.sha256()

        async def all_pieces() -> None:
            async with await self._line() as line:
                for start in range(0, file.size_bytes, MAX_PIECE_BYTES):
                    piece = await _piece(line, file, start)
                    digest.update(piece)
                    await asyncio.to_thread(write, piece)

        asyncio.run(all_pieces())
        if digest.hexdigest() != file.sha256:
            raise Damaged(
                f"The bytes of {file.name} are not those that the agent hashed.",
                why=f"It told {file.sha256}; they hash to {digest.hexdigest()}.",
                fix="The file lies on the host still; ask for it again.",
            )

    def _get(self, kind: type[Told], path: str, limit_seconds: float) -> Told:
        return self._told(kind, self._asked(Question("GET", _PREFIX + path, limit_seconds)))

    def _post(self, kind: type[Told], path: str, limit_seconds: float, message: Message) -> Told:
        body = message.model_dump_json().encode()
        return self._told(kind, self._post_bytes(path, limit_seconds, body))

    def _post_bytes(self, path: str, limit_seconds: float, body: bytes) -> Answer:
        return self._asked(Question("POST", _PREFIX + path, limit_seconds, body))

    def _asked(self, question: Question) -> Answer:
        async def ask() -> Answer:
            async with await self._line() as line:
                return await line.ask(question)

        return asyncio.run(ask())

    async def _line(self) -> Line:
        if self._agent_id is None:
            async with Line(self._address, "", self._actor) as line:
                self._agent_id = _agent_id(await line.alive(HEAR_SECONDS))
        return Line(self._address, self._agent_id, self._actor)

    @staticmethod
    def _told(kind: type[Told], answer: Answer) -> Told:
        try:
            return TypeAdapter(kind).validate_json(answer.body)
        except ValidationError as error:
            first = error.errors(include_input=False, include_url=False)[0]
            place = ".".join(str(part) for part in first["loc"])[:200]
            raise Malformed(
                f"The agent's answer does not read as {kind!r}: {place}: {first['msg']}.",
                fix="Run the same version of console and agent.",
            ) from error


_PREFIX = "/agent/v1"


async def _piece(line: Line, file: FileTaken, start: int) -> bytes:
    end = min(start + MAX_PIECE_BYTES, file.size_bytes)
    headers = {"range": f"bytes={start}-{end - 1}"}
    question = Question("GET", f"{_PREFIX}/artifacts/{file.id}", PIECE_SECONDS, headers=headers)
    piece = (await line.ask(question)).body
    if len(piece) != end - start:
        raise Damaged(f"{file.name} broke off at byte {start + len(piece)}.")
    return piece


def _agent_id(answer: Answer) -> str:
    """What the agent calls itself, unproven; a wrong one only makes signatures fail."""
    try:
        body = answer.json()
    except Malformed:
        body = None
    told = body.get("agent_id") if isinstance(body, dict) else None
    if not isinstance(told, str) or not (told.isascii() and told.isalnum() and len(told) <= 64):
        raise Unreachable("What answers there is no agent of this product.")
    return told


def _with(path: str, **query: str | float | Sequence[str] | None) -> str:
    given = {name: value for name, value in query.items() if value not in (None, (), [])}
    return f"{path}?{urlencode(given, doseq=True)}" if given else path
