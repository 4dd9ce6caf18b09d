"""Which signed requests were seen: none is taken twice, not even after a restart.

A nonce is remembered as long as its time would be accepted. They are few: only a request with a
right signature gets as far as this.
"""

import os
from collections.abc import Iterator
from contextlib import nullcontext, suppress
from pathlib import Path
from threading import Lock

import orjson

from app.agent.kept.lines import LineFile
from app.errors import NoSpace, Throttled
from app.protocol.signing import SKEW_SECONDS

MAX_NONCES = 20_000  # of two minutes
_REWRITE_AFTER = 2_000  # forgotten ones in the file


class Nonces:
    """The nonces of one agent, in a file of its state folder. Safe between threads."""

    def __init__(self, path: Path) -> None:
        self._path = path
        self._lock = Lock()
        self._seen = dict(_read(path))
        self._file = LineFile(path)
        self._forgotten_to = 0.0  # no nonce older than this can be told from a new one
        self._forgotten = 0

    def take(self, nonce: str, time: int, *, now: float, durable: bool) -> bool:
        """Whether *nonce* is new; it is seen from here on. Raises Throttled.

        *durable*: it is on the disk before the answer, so that even a power cut cannot repeat it;
        raises NoSpace. Else a full disk keeps nobody from reading what is there.
        """
        with self._lock:
            self._forget(now)
            if nonce in self._seen or time < self._forgotten_to:
                return False
            if len(self._seen) >= MAX_NONCES:
                raise Throttled("Too many requests.", retry_after_seconds=SKEW_SECONDS)
            self._seen[nonce] = time
            with nullcontext() if durable else suppress(NoSpace):
                self._file.append({"nonce": nonce, "time": time}, durable=durable)
            return True

    def _forget(self, now: float) -> None:
        oldest = now - SKEW_SECONDS - 1
        late = [nonce for nonce, time in self._seen.items() if time < oldest]
        for nonce in late:
            del self._seen[nonce]
        self._forgotten += len(late)
        self._forgotten_to = max(self._forgotten_to, oldest)  # also when the clock is set back
        if self._forgotten >= _REWRITE_AFTER:
            with suppress(OSError):  # tried again with the next request
                self._rewrite()

    def _rewrite(self) -> None:
        """Leave only what is remembered, in one step."""
        lines = [orjson.dumps({"nonce": nonce, "time": time}) for nonce, time in self._seen.items()]
        fresh = self._path.with_name(f".{self._path.name}")
        fresh.touch(mode=0o600)
        with fresh.open("wb") as file:
            file.write(b"".join(line + b"\n" for line in lines))
            file.flush()
            os.fsync(file.fileno())
        fresh.replace(self._path)
        self._forgotten = 0


def _read(path: Path) -> Iterator[tuple[str, int]]:
    for line in LineFile(path).grown():
        nonce, time = line.get("nonce"), line.get("time")
        if isinstance(nonce, str) and isinstance(time, int):
            yield nonce, time
