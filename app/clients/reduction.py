"""Tries smaller and smaller sets of requests on a disposable target, and writes down each step."""

import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

from app.clients.commands import Ended
from app.clients.disposable import Disposable
from app.clients.steps_file import StepsFile
from app.domain.counting import counted
from app.domain.replay.judging import Run, Says, decided
from app.domain.replay.options import Options
from app.domain.replay.planned import Sending
from app.domain.replay.reducing import Probe, reduced
from app.domain.replay.smallest import Found, bodies_of, sent_for
from app.domain.replay.steps import key, told
from app.errors import ConsoleError, Rejected

_AGAIN = 2  # times that the smallest is sent once more in the end
_WHOLE_PASSES = 3  # before all is over because not even all of them fail

Tell = Callable[[str], None]


@dataclass(frozen=True, slots=True)
class Budget:
    """What a reduction may take; *trials* is how often a set has to pass to count as passing."""

    seconds: float = 3600.0
    probes: int = 300
    trials: int = 1


class _OverError(Exception):
    """The budget is used up."""


class Reduction:
    """One reduction of *sendings*. What it found so far is there at any time."""

    def __init__(
        self,
        target: Disposable,
        sendings: Sequence[Sending],
        options: Options,
        budget: Budget,
        steps: StepsFile,
        tell: Tell,
    ) -> None:
        self._target, self._options, self._budget = target, options, budget
        self._steps, self._tell = steps, tell
        self._sendings: Mapping[int, Sending] = {one.index: one for one in sendings}
        self._order = [one.index for one in sendings]
        self._until = time.monotonic() + budget.seconds
        self._smallest: Probe | None = None
        self._probes = self._runs = self._unknown = 0
        self._soiled = False  # the last set did not pass, so the next gets a fresh target
        self._died: bool | None = None
        self._why_unknown: str | None = None
        self.by_hand = False

    def run(self) -> Found:
        """The smallest set that failed, when nothing is left to try or the budget is used up.

        KeyboardInterrupt ends it too, *by_hand* is then true. Raises Rejected where the check
        fails although nothing was sent, and Conflict or Unreachable where the target does not
        come up at the start.
        """
        self._tell("         waiting for a fresh target…")
        self._target.make_fresh()
        self._baseline()
        why, complete, again = None, False, (0, 0)
        try:
            self._reduce()
            complete = True
            again = self._sent_again()
        except _OverError as over:
            why = str(over)
        except ConsoleError as error:  # the target did not come back: what was found stands
            why = error.what
        except KeyboardInterrupt:
            why, self.by_hand = "it was stopped by hand.", True
        found = Found(
            smallest=self._smallest,
            complete=complete,
            why=why,
            probes=self._probes,
            runs=self._runs,
            unknown=self._unknown,
            why_unknown=self._why_unknown,
            again=again,
            died=self._died,
        )
        self._steps.note("end", complete=complete, why=why, probes=self._probes, again=again)
        return found

    def _reduce(self) -> None:
        lengths, answers = bodies_of(list(self._sendings.values()))
        probing = reduced({index: lengths[index] for index in self._order}, answers)
        try:
            probe = next(probing)
            while True:
                says = self._verdict(probe)
                if says == "fails":
                    self._smallest = probe
                probe = probing.send(says == "fails")
        except StopIteration:
            return

    def _verdict(self, probe: Probe) -> Says:
        """What *probe* says, from the steps where it is there.

        That all of them pass ended it, so who begins it again wants to know it again.
        """
        about = told(probe)
        says = self._steps.known.get(key(about))
        if says is None or (says == "passes" and self._is_whole(probe)):
            if self._probes >= self._budget.probes:
                raise _OverError(f"{counted(self._probes, 'probe')} were tried, as many as may be.")
            says = self._tried(probe)
            self._steps.note("verdict", **about, says=says)
        self._probes += 1
        self._unknown += says == "unknown"
        self._tell(f"{says:>7}  {_words(probe)}")
        return says

    def _tried(self, probe: Probe) -> Says:
        runs, trials = list[Run](), self._budget.trials
        if self._is_whole(probe):
            trials = max(trials, _WHOLE_PASSES)
        while True:
            runs.append(self._run(probe))
            says = decided(runs, restarts=self._target.restarts, trials=trials)
            if says is not None:
                return says

    def _is_whole(self, probe: Probe) -> bool:
        return probe == Probe(tuple(self._order))

    def _sent_again(self) -> tuple[int, int]:
        """How often the smallest fails when it is sent again, each time to a fresh target."""
        if self._smallest is None:
            return 0, 0
        self._tell("Once more, the smallest:")
        failed = 0
        for number in range(1, _AGAIN + 1):
            self._soiled = True
            try:
                failed += self._run(self._smallest).says == "fails"
            except _OverError:
                return failed, number - 1
        return failed, _AGAIN

    def _run(self, probe: Probe) -> Run:
        """Send *probe* once, to a target that is ready, and fresh where the last did not pass."""
        self._check_time()
        self._prepare()
        self._check_time()
        fresh = self._target.fresh
        start = time.monotonic()
        sent = self._target.send(
            sent_for(probe, self._sendings), self._options, lambda: self._is_over
        )
        if sent.stopped:
            self._check_time()
        check, ended = self._target.check()
        gone = self._target.is_gone()
        run = Run(check, fresh=fresh, died=gone, took_part=sent.took_part)
        self._runs += 1
        if run.says == "unknown":
            self._why_unknown = sent.why_not or f"the check {_how(ended)}"
        self._died = gone if run.says == "fails" else self._died
        self._soiled = run.says != "passes" or gone
        self._steps.note(
            "run",
            **told(probe),
            says=run.says,
            fresh=fresh,
            died=gone,
            errors=sent.errors,
            why_not=sent.why_not,
            completed=sent.completed,
            check_status=ended.status,
            check_printed=ended.printed,
            seconds=round(time.monotonic() - start, 3),
        )
        return run

    def _prepare(self) -> None:
        start = time.monotonic()
        if self._soiled or not self._target.is_ready():
            self._tell("         waiting for a fresh target…")
            self._target.make_fresh()
            self._target.check_alone()
            seconds = round(time.monotonic() - start, 3)
            self._steps.note("fresh", known=self._target.fresh, seconds=seconds)
            self._soiled = False

    def _baseline(self) -> None:
        """Raises Rejected where the check does not pass on a target that was sent nothing."""
        says, ended = self._target.check()
        self._steps.note("baseline", says=says, check_status=ended.status)
        if says != "passes":
            raise Rejected(
                f"The check {_how(ended)} although nothing was sent: it would blame any request.",
                why=ended.printed.strip()[-300:] or None,
                fix="It has to end with 0 while the target is well.",
            )

    @property
    def _is_over(self) -> bool:
        return time.monotonic() > self._until

    def _check_time(self) -> None:
        if self._is_over:
            raise _OverError(f"its {self._budget.seconds:g} s are used up.")


def _how(ended: Ended) -> str:
    """How the check ended that did not pass."""
    if ended.status is None:
        return "did not end in time"
    if ended.status < 0:
        return f"was ended by signal {-ended.status}"
    return f"ended with {ended.status}"


def _words(probe: Probe) -> str:
    """*probe* for a person: how many requests, and how much is cut."""
    words = counted(len(probe.indexes), "request")
    if probe.lengths:
        words += f", prompts cut to {'/'.join(map(str, probe.lengths.values()))}"
    if probe.new_tokens:
        words += f", answers to {'/'.join(map(str, probe.new_tokens.values()))}"
    return words[:120]
