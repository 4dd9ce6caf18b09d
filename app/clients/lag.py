"""How long this process's event loop stood still, which delays whatever is measured in it."""

import asyncio
import gc
import time
from bisect import bisect_left
from typing import Literal

_LOOK_SECONDS = 0.01
_MOST_KEPT = 4096


class Lag:
    """Looks every 10 ms how late it looks; pauses for garbage count as they are."""

    def __init__(self) -> None:
        # Only what can still be the longest since some moment: later ones are all shorter.
        self._at: list[float] = []
        self._seconds: list[float] = []
        self._collecting_since = 0.0

    def start(self) -> None:
        """Begin to look, in the running event loop, for as long as that runs."""
        gc.callbacks.append(self._collected)
        self._loop = asyncio.get_running_loop()
        self._next = time.monotonic() + _LOOK_SECONDS
        self._loop.call_later(_LOOK_SECONDS, self._look)

    def longest_since(self, moment: float) -> float:
        """The longest standstill in seconds that ended after *moment*, on the monotonic clock."""
        place = bisect_left(self._at, moment)
        return self._seconds[place] if place < len(self._at) else 0.0

    def note(self, at: float, seconds: float) -> None:
        """The loop stood still for *seconds* until *at*."""
        while self._seconds and self._seconds[-1] <= seconds:
            self._seconds.pop()
            self._at.pop()
        if len(self._at) >= _MOST_KEPT:
            del self._at[: _MOST_KEPT // 2], self._seconds[: _MOST_KEPT // 2]
        self._at.append(at)
        self._seconds.append(seconds)

    def _look(self) -> None:
        now = time.monotonic()
        self.note(now, max(0.0, now - self._next))
        self._next = now + _LOOK_SECONDS
        self._loop.call_later(_LOOK_SECONDS, self._look)

    def _collected(self, phase: Literal["start", "stop"], _: dict[str, int]) -> None:
        now = time.monotonic()
        if phase == "start":
            self._collecting_since = now
        else:
            self.note(now, now - self._collecting_since)
