"""The program that sends one share of a replay, started by ``player`` in a process of its own.

It does nothing else, so that nothing else delays what it sends or measures. Its input says what
to do, then when to start; one more line means to send no more, and its end to stop. Its output is
lines of JSON: that it is ready, or why it cannot be, then batches of outcomes, and when the target
was not there.
"""

import asyncio
import ctypes
import gc
import os
import resource
import sys
import time
from collections.abc import Mapping, Sequence
from contextlib import suppress
from itertools import islice
from queue import SimpleQueue
from threading import Thread
from typing import Any

import orjson
import uvloop

from app.clients.answering import Sent
from app.clients.generate import Line
from app.clients.journal import write_down
from app.clients.lag import Lag
from app.clients.outcome import outcome_of
from app.clients.presence import Presence
from app.clients.spool import Place, answered_at, body_at, read_places, recorded_at
from app.clients.target import TargetAddress
from app.domain.redaction import mask_known
from app.domain.replay.died import Absence
from app.domain.replay.limits import Limits
from app.domain.replay.outcomes import Outcome
from app.errors import ConsoleError

_SAY_SECONDS = 0.2  # what was measured is with the player this soon
_DIE_WITH_PARENT, _SIGKILL = 1, 9  # PR_SET_PDEATHSIG of prctl.h
_OWN_DESCRIPTORS = 64
_MOST_TOLD_BYTES = 64
_MOST_MEMORY_BYTES = 4 << 30  # a target may answer everybody at once and never end
# What is young is looked through seldom, what is there before the start never: a pause is a lag.
_COLLECT_AFTER = (20_000, 50, 100)


class Share:
    """One process's part of a replay while it is sent. *told* comes from the player."""

    def __init__(self, told: Mapping[str, Any], places: Sequence[Place], outlet: "Outlet") -> None:
        self._limits = Limits(**told["limits"])
        self._address = TargetAddress(**told["address"])
        self._secrets = self._address.secrets
        self._paced: bool = told["mode"] == "open"
        self._descriptor: int = told["descriptor"]
        self._journal: int | None = told["journal"]
        most = resource.getrlimit(resource.RLIMIT_NOFILE)[0] - _OWN_DESCRIPTORS
        self._slots = asyncio.Semaphore(most if self._paced else min(told["parallel"], most))
        self._places, self._outlet = places, outlet
        self._lag = Lag()
        self._tasks: set[asyncio.Task[None]] = set()
        self._outcomes: list[Outcome] = []

    async def play(self) -> None:
        """Send all, each at its time; ends early when the input does, or when time is up."""
        async with Line(self._address, self._limits) as self._line:
            self._outlet.say({"ready": True})
            self._start, self._epoch = orjson.loads(sys.stdin.buffer.readline() or b"[0, 0]")
            if not self._start:
                return
            self._lag.start()
            self._presence = Presence(
                self._line.knock, self._limits.patience_seconds, self._missed, self._epoch
            )
            saying = asyncio.create_task(self._say_often())
            await self._until_stopped(asyncio.create_task(self._send_all()))
            for task in self._tasks:
                task.cancel()
            await asyncio.gather(*self._tasks, return_exceptions=True)
            self._presence.close()
            saying.cancel()
        self._say()

    async def _until_stopped(self, sending: "asyncio.Task[None]") -> None:
        loop, own_input = asyncio.get_running_loop(), sys.stdin.fileno()

        def told() -> None:
            if os.read(own_input, _MOST_TOLD_BYTES):
                self._enough()
            else:
                sending.cancel()

        loop.add_reader(own_input, told)
        left = self._start + self._limits.total_seconds - time.monotonic()
        with suppress(TimeoutError, asyncio.CancelledError):
            await asyncio.wait_for(sending, left)
        loop.remove_reader(own_input)

    async def _send_all(self) -> None:
        self._handing_out = asyncio.create_task(self._hand_out())
        try:
            await asyncio.wait({self._handing_out})
        finally:
            self._enough()
        if not self._handing_out.cancelled():
            self._handing_out.result()
        await asyncio.gather(*self._tasks)

    def _enough(self) -> None:
        """Send no more; what is in flight goes on to its end."""
        self._handing_out.cancel()

    def _missed(self, absence: Absence) -> None:
        self._say()
        self._outlet.say({"absence": absence})
        if absence.back_at is None:
            self._enough()

    async def _hand_out(self) -> None:
        for place in self._places:
            due = self._start + place.due_seconds
            if self._paced and (ahead := due - time.monotonic()) > 0:
                await asyncio.sleep(ahead)
            await self._slots.acquire()
            if not self._paced:  # nothing is as fast as a refusal: all would be used up at once
                await self._presence.settled()
            task = asyncio.create_task(self._send(place, due if self._paced else time.monotonic()))
            self._tasks.add(task)
            task.add_done_callback(self._done)

    async def _send(self, place: Place, due: float) -> None:
        sent = Sent(began_at=time.monotonic())
        try:
            await self._line.send(place.path, body_at(self._descriptor, place), sent)
        except asyncio.CancelledError:  # that of _until_stopped alone: it is how it went
            sent.error = sent.error or "cancelled"
            sent.says = sent.says or "The replay was stopped while it ran."
        self._presence.saw(sent)
        if sent.says is not None:  # a target may tell us the key that it refuses
            sent.says = mask_known(sent.says, self._secrets, fingerprint=_nameless)
        outcome = outcome_of(
            place,
            sent,
            due=due,
            epoch=self._epoch,
            lag=self._lag.longest_since(due),
            recorded=answered_at(self._descriptor, place),
        )
        if self._journal is not None:
            write_down(self._journal, outcome, recorded_at(self._descriptor, place))
        self._outcomes.append(outcome)

    def _done(self, task: "asyncio.Task[None]") -> None:
        self._tasks.discard(task)
        self._slots.release()

    async def _say_often(self) -> None:
        while True:
            await asyncio.sleep(_SAY_SECONDS)
            self._say()

    def _say(self) -> None:
        if self._outcomes:
            self._outlet.say(self._outcomes)
            self._outcomes = []


class Outlet:
    """Writes what is said in a thread: a player that is slow to listen delays no request."""

    def __init__(self) -> None:
        self._waiting: SimpleQueue[bytes] = SimpleQueue()
        self._thread = Thread(target=self._write, daemon=True, name="outlet")
        self._thread.start()

    def say(self, value: object) -> None:
        """One line of JSON."""
        self._waiting.put(orjson.dumps(value, option=orjson.OPT_APPEND_NEWLINE))

    def close(self) -> None:
        """Returns once all of it is written."""
        self._waiting.put(b"")
        self._thread.join()

    def _write(self) -> None:
        with suppress(BrokenPipeError):  # the player is gone
            while line := self._waiting.get():
                sys.stdout.buffer.write(line)
                sys.stdout.buffer.flush()


def _nameless(_: str) -> str:
    """No fingerprint: the key for those is not needed here, so it is not here."""
    return "ours"


def main() -> None:
    ctypes.CDLL(None).prctl(_DIE_WITH_PARENT, _SIGKILL, 0, 0, 0)
    told = orjson.loads(sys.stdin.buffer.readline())
    places = list(read_places(islice(sys.stdin.buffer, told["places"])))
    _, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (hard, hard))
    resource.setrlimit(resource.RLIMIT_DATA, (_MOST_MEMORY_BYTES, _MOST_MEMORY_BYTES))
    outlet = Outlet()
    gc.collect()
    gc.freeze()
    gc.set_threshold(*_COLLECT_AFTER)
    try:
        uvloop.run(Share(told, places, outlet).play())
    except ConsoleError as error:
        outlet.say({"refused": error.what, "code": error.code})
    outlet.close()
    os._exit(0)  # nothing is left to be tidied up, and taking apart what is frozen takes time


if __name__ == "__main__":
    main()
