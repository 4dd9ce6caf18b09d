"""One of the processes that send a replay, as the player sees it."""

import os
import subprocess
import sys
import tempfile
from collections.abc import Mapping, Sequence
from contextlib import suppress
from pathlib import Path
from types import TracebackType
from typing import Any, Self

import orjson

import app
from app.clients.sandbox import START, error_class
from app.clients.spool import Place, Spool, table
from app.domain.replay.died import Absence
from app.domain.replay.outcomes import Outcome
from app.errors import ConsoleError, Rejected, Unreachable

_MODULE = "app.clients.play_process"
_PIECE_BYTES = 1 << 20
_MOST_ERRORS_BYTES = 65_536
_KEPT_ENVIRONMENT = ("PATH", "LC_ALL", "SSL_CERT_FILE", "SSL_CERT_DIR")


class Playing:
    """Sends its *places* of *spool*; entered, the process runs, and left, it has ended.

    The keys of the target go in through its input: neither its arguments nor its environment,
    which others on this machine can read, have them.
    """

    def __init__(self, told: Mapping[str, Any], spool: Spool, places: Sequence[Place]) -> None:
        self._unheard = {place.index: place for place in places}
        self._rest = b""
        self._over = False  # it says nothing more
        self.absences: list[Absence] = []  # when the target was not there
        descriptor = spool.file.fileno()
        journal: int | None = told["journal"]
        question = {**told, "descriptor": descriptor, "places": len(places)}
        self._question = orjson.dumps(question) + b"\n" + table(places)
        self._errors = tempfile.TemporaryFile()  # noqa: SIM115  (closed with the process)
        self._process = subprocess.Popen(  # noqa: S603  (a list, no shell)
            [sys.executable, "-I", "-c", START, str(Path(app.__file__).parents[1]), _MODULE],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=self._errors,
            env={name: os.environ[name] for name in _KEPT_ENVIRONMENT if name in os.environ},
            cwd="/",
            pass_fds=(descriptor,) if journal is None else (descriptor, journal),
            start_new_session=True,  # Ctrl-C is for us, who say what was measured until then
        )

    def __enter__(self) -> Self:
        self._say(self._question)
        del self._question
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        at: TracebackType | None,
    ) -> None:
        self._process.kill()
        with suppress(BrokenPipeError):
            self._process.__exit__(kind, error, at)  # closes the pipes and waits
        self._errors.close()

    @property
    def output(self) -> int:
        """A descriptor that is ready when something was said."""
        assert self._process.stdout is not None
        return self._process.stdout.fileno()

    def wait_until_ready(self) -> None:
        """Returns once it can send; raises Rejected or Unreachable where the target cannot be."""
        assert self._process.stdout is not None
        line = self._process.stdout.readline()
        told = orjson.loads(line) if line else {}
        if "refused" in told:
            refusal = Rejected if told["code"] == Rejected.code else Unreachable
            raise refusal(told["refused"])
        if "ready" not in told:
            raise ConsoleError(f"A process that sends did not start: {self.why_ended()}.")

    def start(self, start: float, epoch: float) -> None:
        """Say when the replay starts, on the monotonic clock, and when that clock was zero."""
        self._say(orjson.dumps([start, epoch]) + b"\n")

    def stop(self) -> None:
        """Let it break off what is in flight, say how that went, and end."""
        assert self._process.stdin is not None
        with suppress(BrokenPipeError):
            self._process.stdin.close()

    def no_more(self) -> None:
        """Let it send nothing more, and what is in flight go on to its end."""
        self._say(b"no more\n")

    def heard(self) -> list[Outcome] | None:
        """The outcomes that it has said since the last time; None once it says nothing more."""
        piece = os.read(self.output, _PIECE_BYTES)
        if not piece:
            self._over = True
            return None
        *lines, self._rest = (self._rest + piece).split(b"\n")
        outcomes: list[Outcome] = []
        for told in map(orjson.loads, lines):
            if isinstance(told, dict):
                self.absences.append(Absence(**told["absence"]))
            else:
                outcomes += [Outcome(**one) for one in told]
        for outcome in outcomes:
            self._unheard.pop(outcome.index, None)
        return outcomes

    def missing(self) -> list[Place]:
        """The requests of which it said nothing, in the order in which they were due."""
        return list(self._unheard.values())

    @property
    def stays_away(self) -> bool:
        """Whether it found the target gone, and so sends nothing more."""
        return any(one.back_at is None for one in self.absences)

    def broken(self) -> str | None:
        """What ended it before it was done, in a few words; None: it ended in order, or runs."""
        return self.why_ended() if self._over and self._process.wait() else None

    def why_ended(self) -> str:
        """What ended it, in a few words."""
        status = self._process.wait()
        if status < 0:
            return f"signal {-status}"
        self._errors.seek(0, os.SEEK_END)
        self._errors.seek(max(0, self._errors.tell() - _MOST_ERRORS_BYTES))
        return error_class(self._errors.read())

    def _say(self, words: bytes) -> None:
        assert self._process.stdin is not None
        with suppress(BrokenPipeError, ValueError):  # it ended, or was stopped: its output tells
            self._process.stdin.write(words)
            self._process.stdin.flush()
