"""Whether the target is still there while a replay is sent, so that nothing is sent to nobody.

A lost connection raises the doubt, and knocking settles it: one answer, whatever it says, ends
it. What is overloaded or refuses some requests still answers, and is sent to.
"""

import asyncio
import time
from collections.abc import Awaitable, Callable
from typing import Literal

from app.clients.answering import Sent
from app.domain.replay.died import Absence
from app.domain.replay.outcomes import ErrorClass

Knock = Literal["answered", "refused", "silent"]

_APART_SECONDS = 0.25
_LOST: frozenset[ErrorClass] = frozenset(
    ("connection-refused", "connection-reset", "stream-cut", "unreachable")
)


class Presence:
    """Of one target. Once *patience_seconds* of knocking were in vain, *tell* is told so.

    It is told too when the target is back before that. *epoch* is the zero of the monotonic
    clock in seconds since 1970.
    """

    def __init__(
        self,
        knock: Callable[[], Awaitable[Knock]],
        patience_seconds: float,
        tell: Callable[[Absence], None],
        epoch: float,
    ) -> None:
        self._knock, self._patience_seconds = knock, patience_seconds
        self._tell, self._epoch = tell, epoch
        self._heard_at = 0.0
        self._knocking: asyncio.Task[None] | None = None

    def saw(self, sent: Sent) -> None:
        """Take in how a request has ended."""
        if sent.error not in _LOST:
            if sent.status is not None:
                self._heard_at = sent.ended_at
        elif self._knocking is None or self._knocking.done():
            self._knocking = asyncio.create_task(self._settle())

    async def settled(self) -> None:
        """Returns once there is no doubt; at once where there is none."""
        if self._knocking is not None and not self._knocking.done():
            await asyncio.wait({self._knocking})

    def close(self) -> None:
        if self._knocking is not None:
            self._knocking.cancel()

    async def _settle(self) -> None:
        since: float | None = None
        refused = False
        while (answer := await self._knock()) != "answered":
            now = time.monotonic()
            since = now if since is None else since
            refused = refused or answer == "refused"
            if now - max(since, self._heard_at) >= self._patience_seconds:
                self._tell(Absence(since + self._epoch, None, refused))
                return
            await asyncio.sleep(min(_APART_SECONDS, self._patience_seconds))
        if since is not None:
            back_at = time.monotonic() + self._epoch
            self._tell(Absence(since + self._epoch, back_at, refused))
