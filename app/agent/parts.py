"""The agent as one thing: its state, what it may touch, and what it does in the background."""

from collections.abc import Iterator, Sequence
from contextlib import contextmanager, nullcontext, suppress
from dataclasses import dataclass, field, replace
from threading import BoundedSemaphore, Event
from typing import Annotated

from fastapi import Depends, Request

from app.agent.coredump.coredumps import Coredumps
from app.agent.door.guard import Asked
from app.agent.evidence.profiles import Profiles
from app.agent.kept.files import AgentFiles
from app.agent.kept.ledger import Entry
from app.agent.kept.state import AgentState
from app.agent.metrics import Metrics
from app.agent.processes.table import ProcessTable
from app.agent.touching.holds import Holds
from app.errors import Conflict, ConsoleError, NoSpace
from app.protocol.messages import FileTaken

DOWNLOAD = "download"
MOST_AT_ONCE = 24  # the server has 40 threads for all requests, and a look needs one too


@dataclass
class Act:
    """What an action came to, told by whoever does it."""

    result: str = "done"
    files: list[FileTaken] = field(default_factory=list)


@dataclass(frozen=True)
class Agent:
    """Everything a route needs; nothing in it belongs to one event loop."""

    state: AgentState
    metrics: Metrics
    table: ProcessTable
    holds: Holds
    coredumps: Coredumps
    profiles: Profiles
    embedded: bool
    room: BoundedSemaphore = field(default_factory=lambda: BoundedSemaphore(MOST_AT_ONCE))
    stopping: Event = field(default_factory=Event)  # set: what takes long ends with what it has

    @property
    def agent_id(self) -> str:
        return self.state.agent_id

    @property
    def key(self) -> bytes:
        return self.state.key

    @property
    def files(self) -> AgentFiles:
        return self.state.files

    def start(self) -> None:
        """Take the folder and go on watching what was begun; raises Conflict. Once is enough."""
        if self.state.lock():
            self.coredumps.resume()

    def stop(self) -> None:
        """End what runs in the background and let go of the folder."""
        self.stopping.set()
        self.profiles.close()
        self.coredumps.close()
        self.state.unlock()

    @contextmanager
    def acting(self, asked: Asked, what: str, *process_ids: str) -> Iterator[Act]:
        """Writes the action down before it is done, and what came of it afterwards.

        What cannot be written down is not done (NoSpace), but for reading what is there already.
        Raises Conflict where so much is done already that nobody could look at it any more.
        """
        if not self.room.acquire(blocking=False):
            raise Conflict(
                f"The agent does {MOST_AT_ONCE} things already.",
                fix="Wait until one of them is done, then ask again.",
            )
        try:
            with self._written_down(asked, what, process_ids) as act:
                yield act
        finally:
            self.room.release()

    @contextmanager
    def _written_down(self, asked: Asked, what: str, process_ids: Sequence[str]) -> Iterator[Act]:
        entry = Entry(asked.request_id, asked.who, what, process_ids)
        with suppress(NoSpace) if what == DOWNLOAD else nullcontext():
            self.state.ledger.note(entry)
        act = Act()
        try:
            yield act
        except ConsoleError as error:
            self._ended(replace(entry, result=f"refused: {error.what}"), "refused")
            raise
        hashes = [file.sha256 for file in act.files]
        self._ended(replace(entry, result=act.result, sha256=hashes), "done")

    def _ended(self, entry: Entry, how: str) -> None:
        with suppress(NoSpace):  # it is done all the same, and the console hears of it
            self.state.ledger.note(entry)
        self.metrics.acted(entry.what, how)


async def _agent(request: Request) -> Agent:
    agent: Agent = request.app.state.agent
    return agent


async def _asked(request: Request) -> Asked:
    asked: Asked = request.state.asked
    return asked


ThisAgent = Annotated[Agent, Depends(_agent)]
WhoAsked = Annotated[Asked, Depends(_asked)]
