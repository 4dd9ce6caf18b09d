"""Sends a replay: on its schedule, in processes of their own, and hands on how each request went.

Outcomes come in batches, a fifth of a second after they were measured, and are at once in the
journal, where there is one. Whatever happens to this process, those that it started end with it.
"""

import os
import selectors
import time
from collections.abc import Callable, Iterable, Sequence
from contextlib import ExitStack
from dataclasses import asdict, dataclass
from importlib.util import find_spec
from math import ceil

from app.clients.playing import Playing
from app.clients.spool import Place, Spool
from app.clients.target import TargetAddress
from app.domain.replay.died import Absence
from app.domain.replay.limits import USUAL, Limits
from app.domain.replay.options import Options
from app.domain.replay.outcomes import ErrorClass, Outcome
from app.domain.replay.planned import Sending
from app.errors import Misconfigured

_LOOK_SECONDS = 0.1  # between two looks whether to stop; a cancel is honoured within one second
_AHEAD_SECONDS = 0.05  # from saying when to start until then
_STOP_SECONDS = 2.0  # that a process may take to stop before it is ended
_OVERTIME_SECONDS = 10.0  # after the time that the whole replay has
# What one process sends with little lateness, streams of some length included.
_A_PROCESS_PER_SECOND, _A_PROCESS_IN_FLIGHT = 250, 256
_BATCH = 1000

Take = Callable[[Sequence[Outcome]], None]


@dataclass(frozen=True, slots=True)
class Played:
    """How a replay was sent. *started_at* is its start in seconds since 1970; None: nothing was.

    *stopped*: it was told to stop, or had no time left, before all was done. *broken*: what ended
    a process that was sending. *absences* are when the target was not there; after one that had
    no end nothing more was sent.
    """

    started_at: float | None
    processes: int
    stopped: bool
    broken: str | None = None
    absences: tuple[Absence, ...] = ()


def play(  # noqa: PLR0913
    sendings: Iterable[Sending],
    address: TargetAddress,
    options: Options,
    *,
    take: Take,
    stop: Callable[[], bool] = lambda: False,
    limits: Limits = USUAL,
    journal: int | None = None,
) -> Played:
    """Send all of *sendings* and hand an outcome for each to *take*; returns when all is over.

    Once *stop* says so nothing more is sent, and what is in flight is broken off. Once the target
    went away and did not come back in the time of *limits*, nothing more is sent. What *take*
    raises ends the replay at once. Raises Rejected and Unreachable for an address that cannot be
    asked, and Misconfigured, before anything is sent. *journal* is the descriptor of a file that
    has each outcome as soon as it is measured.
    """
    if find_spec("httptools") is None:
        raise Misconfigured(
            "This installation has no httptools, which sending a replay needs.",
            fix="Install the console: pip install 'incident-console[console]'.",
        )
    with ExitStack() as opened:
        spool = opened.enter_context(Spool())
        spool.take(sendings)
        if not spool.places:
            return Played(None, 0, stopped=False)
        count = limits.processes or _processes(spool.places, options)
        told = {
            "address": asdict(address),
            "limits": asdict(limits),
            "mode": options.mode,
            "journal": journal,
            "parallel": ceil(options.parallel / count),
        }
        playing = [Playing(told, spool, spool.places[n::count]) for n in range(count)]
        for one in playing:
            opened.enter_context(one)
        return _Replay(playing, take, stop, limits).run()


class _Replay:
    """The processes of a replay while they send."""

    def __init__(
        self, playing: Sequence[Playing], take: Take, stop: Callable[[], bool], limits: Limits
    ) -> None:
        self._playing, self._take, self._stop = playing, take, stop
        self._limits = limits
        self._stopped_at: float | None = None
        self._gone = False

    def run(self) -> Played:
        for one in self._playing:
            one.wait_until_ready()
        start = time.monotonic() + _AHEAD_SECONDS
        epoch = time.time() - time.monotonic()
        for one in self._playing:
            one.start(start, epoch)
        over = start + self._limits.total_seconds
        self._listen(over)
        stopped = self._stopped_at is not None or time.monotonic() >= over
        broken = (
            None if stopped else next(filter(None, (one.broken() for one in self._playing)), None)
        )
        for one in self._playing:
            self._tell_missing(one, stopped=stopped)
        absences = tuple(absence for one in self._playing for absence in one.absences)
        return Played(
            start + epoch, len(self._playing), stopped=stopped, broken=broken, absences=absences
        )

    def _listen(self, over: float) -> None:
        with selectors.DefaultSelector() as selector:
            for one in self._playing:
                selector.register(one.output, selectors.EVENT_READ, one)
            while selector.get_map():
                for key, _ in selector.select(_LOOK_SECONDS):
                    playing: Playing = key.data
                    if (outcomes := playing.heard()) is None:
                        selector.unregister(key.fileobj)
                    elif outcomes:
                        self._take(outcomes)
                self._heed_absence()
                if not self._goes_on(over):
                    return

    def _heed_absence(self) -> None:
        """A target that stayed away for one process is sent nothing by the others either."""
        if not self._gone and any(one.stays_away for one in self._playing):
            self._gone = True
            for one in self._playing:
                one.no_more()

    def _goes_on(self, over: float) -> bool:
        """Tells the processes to stop where that is due; False once they had time enough to."""
        now = time.monotonic()
        if self._stopped_at is None and self._stop():
            self._stopped_at = now
            for one in self._playing:
                one.stop()
        if self._stopped_at is not None:
            return now < self._stopped_at + _STOP_SECONDS
        return now < over + _OVERTIME_SECONDS

    def _tell_missing(self, one: Playing, *, stopped: bool) -> None:
        """An outcome for each request of which nothing was heard."""
        missing = one.missing()
        if not missing:
            return
        error: ErrorClass = "not-sent"
        if stopped:
            says = "The replay was stopped, or out of time, before it was sent."
        elif self._gone and not one.broken():
            seconds = f"{self._limits.patience_seconds:g} s"
            says = f"The target went away and did not come back in {seconds}."
        else:
            error, says = "cancelled", f"The process that was to send it ended: {one.why_ended()}."
        for at in range(0, len(missing), _BATCH):
            self._take([_unheard(place, error, says) for place in missing[at : at + _BATCH]])


def _unheard(place: Place, error: ErrorClass, says: str) -> Outcome:
    return Outcome(
        index=place.index,
        rid=place.rid,
        status=None,
        error=error,
        says=says,
        sent_at=None,
        due_seconds=place.due_seconds,
        lateness_ms=None,
    )


def _processes(places: Sequence[Place], options: Options) -> int:
    """How many send: by the busiest second, or by how many are in flight."""
    if options.mode == "open":
        wanted = ceil(_most_in_a_second(places) / _A_PROCESS_PER_SECOND)
    else:
        wanted = ceil(min(options.parallel, len(places)) / _A_PROCESS_IN_FLIGHT)
    return max(1, min(wanted, len(os.sched_getaffinity(0)), len(places)))


def _most_in_a_second(places: Sequence[Place]) -> int:
    most = first = 0
    for last, place in enumerate(places):
        while places[first].due_seconds < place.due_seconds - 1.0:
            first += 1
        most = max(most, last - first + 1)
    return most
