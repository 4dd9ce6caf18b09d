"""A target that may be killed again and again: made fresh, sent to, and checked."""

import asyncio
import time
from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from typing import Self

from app.clients import looks
from app.clients.commands import Command, Ended, Words, run, undisturbed
from app.clients.old_server import OldServer
from app.clients.player import play
from app.clients.target import TargetAddress, TargetClient
from app.domain.capture import Outcome as Answer
from app.domain.counting import counted
from app.domain.endpoints import KIB, Access, Endpoint, Form
from app.domain.redaction import Fingerprint
from app.domain.replay.guards import strangers
from app.domain.replay.judging import Says
from app.domain.replay.limits import Limits
from app.domain.replay.options import Options
from app.domain.replay.outcomes import Outcome, own_making
from app.domain.replay.planned import Sending
from app.domain.replay.target import loads_of
from app.errors import Conflict, Unreachable

POLL_SECONDS = 0.1
_CONNECT_SECONDS = 1.0  # a target that hangs is not asked for longer whether it is there
_PATIENCE_SECONDS = 0.5  # with a target that went away: that is what is looked for
_CANNOT_TELL = 125  # as for git bisect run
_NOT_RUN = (126, 127)
_NOTHING_BEHIND = (502, 504)  # as a proxy says that a server is not there


@dataclass(frozen=True, slots=True)
class Ways:
    """How the target is treated. Seconds are at most, *settle_seconds* apart: those are waited."""

    check: Words
    restart: Words | None = None
    ready_path: str = "/health"
    ready_seconds: float = 600.0
    check_seconds: float = 60.0
    settle_seconds: float = 1.0  # after the last answer: a crash may take its time
    limits: Limits = field(default_factory=Limits)


@dataclass(frozen=True, slots=True)
class Sent:
    """How a set of requests went. *stopped*: it was broken off, and says nothing.

    *why_not* is why the first of those was not sent, or not as it should be, of which none took
    part.
    """

    errors: dict[str, int]
    completed: int
    stopped: bool
    why_not: str | None

    @property
    def took_part(self) -> bool:
        return self.why_not is None


class Disposable:
    """One target. *fresh*: it had no request since it started; None is unknown.

    Left, what the restart command started has ended.
    """

    def __init__(self, address: TargetAddress, ways: Ways, fingerprint: Fingerprint) -> None:
        self.fresh: bool | None = None
        self._address, self._ways, self._fingerprint = address, ways, fingerprint
        self._server: Command | None = None
        self._was_gone = False  # since something was sent to it
        self._environment = {"BASE_URL": address.base_url}
        self._ready = Endpoint(
            "target-ready", ways.ready_path, "Does it take requests?", "None.",
            Access.NORMAL, Form.TEXT, max_bytes=64 * KIB,
        )  # fmt: skip

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        if self._server is not None:
            self._server.end()

    @property
    def restarts(self) -> bool:
        return self._ways.restart is not None

    def make_fresh(self) -> None:
        """Restart it, or wait for whoever else does; returns once it is ready.

        Raises Conflict where the command fails, Unreachable where it is not ready in time.
        """
        if self._ways.restart is None:
            self._wait_for_others()
            return
        if self._server is not None:
            self._server.end()
        with OldServer(self._address.base_url) as old:
            with undisturbed():
                self._server = Command(self._ways.restart, self._environment)
            self._wait_until_ready(self._server, old)
        self.fresh = True

    def check_alone(self) -> None:
        """Raises Conflict where a target that we have sent nothing to serves requests."""
        if self.fresh:
            others = strangers(loads_of(looks.settled(self._address, self._fingerprint)))
            if others:
                raise Conflict(f"It serves {counted(others, 'request')} of others: no longer ours.")

    def send(self, sendings: Sequence[Sending], options: Options, stop: Callable[[], bool]) -> Sent:
        """Send all, and wait a little for what they do to the target."""
        outcomes: list[Outcome] = []
        self.fresh = self._was_gone = False
        played = play(
            sendings,
            self._address,
            options,
            take=outcomes.extend,
            stop=stop,
            limits=replace(self._ways.limits, patience_seconds=_PATIENCE_SECONDS),
        )
        time.sleep(self._ways.settle_seconds)
        errors = Counter(one.error for one in outcomes if one.error is not None)
        return Sent(
            errors={str(error): count for error, count in errors.most_common()},
            completed=sum(one.completed for one in outcomes),
            stopped=played.stopped and stop(),
            why_not=_why_not(outcomes),
        )

    def check(self) -> tuple[Says, Ended]:
        """What the check command says; it fails where it ends with another status than 0.

        Raises Conflict where the command itself cannot be run.
        """
        ended = run(self._ways.check, self._environment, self._ways.check_seconds)
        if ended.status in _NOT_RUN:
            raise Conflict(f"The check could not be run: {_last_words(ended.printed)}")
        if ended.status is None or ended.status < 0 or ended.status == _CANNOT_TELL:
            return "unknown", ended
        return ("fails" if ended.status else "passes"), ended

    def is_gone(self) -> bool:
        """Whether nothing listens there any more."""
        gone = self._asked(_CONNECT_SECONDS)[0] is Answer.REFUSED
        self._was_gone = self._was_gone or gone
        return gone

    def is_ready(self) -> bool:
        return self._asked()[1] == 200

    def _asked(self, seconds: float | None = None) -> tuple[Answer, int | None]:
        async def ask() -> tuple[Answer, int | None]:
            async with TargetClient(self._address, fingerprint=self._fingerprint) as client:
                capture = await client.ask(self._ready, timeout_seconds=seconds)
                return capture.outcome, capture.status

        return asyncio.run(ask())

    def _wait_for_others(self) -> None:
        """Without a command, a supervisor may start it anew; then it was gone in between."""
        until = time.monotonic() + self._ways.ready_seconds
        while self.is_gone() or not self.is_ready():
            if time.monotonic() > until:
                seconds = f"{self._ways.ready_seconds:g} s"
                raise Unreachable(
                    f"{self._address.base_url} was not ready again in {seconds}.",
                    fix="Give the command that restarts it with --restart.",
                )
            time.sleep(POLL_SECONDS)
        self.fresh = True if self._was_gone else None

    def _wait_until_ready(self, command: Command, old: OldServer) -> None:
        """Until a server answers that was not there before *command*, which may have ended.

        As long as the *old* one is there, an answer is its own, and no target is fresh.
        """
        until = time.monotonic() + self._ways.ready_seconds
        was_gone = False
        while time.monotonic() < until:
            was_gone = was_gone or old.is_gone()
            answer, status = self._asked()[1], command.status()
            was_gone = was_gone or answer in _NOTHING_BEHIND
            if status:
                raise Conflict(
                    f"The restart command ended with {status}: {_last_words(command.printed())}"
                )
            if answer == 200 and was_gone:
                return
            time.sleep(POLL_SECONDS)
        raise _not_ready(self._ways, self._address.base_url, old_is_there=not was_gone)


def _why_not(outcomes: Sequence[Outcome]) -> str | None:
    """Why not one request reached the target; None where one did."""
    for one in outcomes:
        if one.error is None or not own_making(one.error, answered_before=False):
            return None
    return next((f"{one.error}: {one.says}" for one in outcomes), "nothing was sent")


def _not_ready(ways: Ways, base_url: str, *, old_is_there: bool) -> Unreachable:
    seconds = f"{ways.ready_seconds:g} s"
    if old_is_there:
        return Unreachable(
            f"The server at {base_url} did not end: {seconds} after the restart command began,"
            " it is the one that was there before.",
            fix="The command has to stop that one first, or you do.",
        )
    return Unreachable(f"{base_url}{ways.ready_path} was not ready {seconds} after its restart.")


def _last_words(printed: str) -> str:
    lines = [line for line in printed.splitlines() if line.strip()]
    if not lines:
        return "it printed nothing."
    told = ascii(lines[-1])[1:-1] if not lines[-1].isprintable() else lines[-1]
    return told[:300]
