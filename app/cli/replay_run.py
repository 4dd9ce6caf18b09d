"""One ``incident-console replay`` from the first look at the target to the verdict."""

import os
import secrets
import signal
import sys
import time
from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, replace
from pathlib import Path
from types import FrameType
from typing import Any
from urllib.parse import urlsplit

import orjson
import typer

from app.cli.fingerprint_key import fingerprint_key
from app.cli.replay_out import OutFile
from app.cli.replay_text import plan_text, verdict_text
from app.cli.summary_text import printable
from app.clients import looks
from app.clients.dumps import Reading
from app.clients.player import play
from app.clients.recorded_file import RecordedFile
from app.clients.target import TargetAddress
from app.domain.counting import counted
from app.domain.observed import Observed
from app.domain.redaction import keyed_fingerprint
from app.domain.replay.guards import Asked, Refusal, refusals, to_type
from app.domain.replay.limits import Limits
from app.domain.replay.options import Options
from app.domain.replay.outcomes import Outcome, row
from app.domain.replay.plan import Plan, plan
from app.domain.replay.planned import Recorded, Sending
from app.domain.replay.questions import question_of
from app.domain.replay.selection import Selection
from app.domain.replay.summary import document
from app.domain.replay.symptoms import Symptom
from app.domain.replay.tally import Tally, Trial
from app.domain.replay.target import as_json, facts_of, loads_of, sameness, state_of
from app.domain.replay.verdict import verdict
from app.errors import Conflict, ConsoleError, Interrupted, Rejected, Unreachable


@dataclass(frozen=True, slots=True)
class Chosen:
    """What the command line says."""

    options: Options
    selection: Selection
    symptom: Symptom
    trials: int
    limits: Limits
    yes: bool
    as_json: bool


def run(path: Path, address: TargetAddress, chosen: Chosen, out: Path | None) -> None:
    """Plan, ask, send, and tell. Raises Interrupted when it was stopped by hand."""
    reading = Reading(key=fingerprint_key())
    if out is not None and os.path.lexists(out):
        raise Conflict(f"{out} is there already.", fix="Name another one with --out.")
    with ExitStack() as opened:
        recording = opened.enter_context(RecordedFile(path, reading=reading))
        replay = _Replay(recording, address, chosen)
        planned = replay.plan()
        typer.echo(plan_text(planned), err=True)
        replay.consent(planned)
        replay.out = opened.enter_context(OutFile(out)) if out else None
        interrupted = opened.enter_context(_interrupts())
        trials = list(replay.trials(planned, interrupted))
        replay.tell(planned, trials)
    _complain(replay, by_hand=interrupted.by_hand)


def _complain(replay: "_Replay", *, by_hand: bool) -> None:
    """Raises why not all was sent, where the target is not why."""
    if by_hand:
        raise Interrupted("Stopped by hand; what was measured is told and kept.")
    if replay.broken:
        raise ConsoleError(f"A process that was sending was ended: {replay.broken}.")
    if replay.out is not None:
        replay.out.complain()


class _Interrupts:
    """Whether Ctrl-C was pressed: the player then stops in order, and what it measured is told."""

    by_hand = False

    def note(self, number: int, frame: FrameType | None) -> None:
        self.by_hand = True


@contextmanager
def _interrupts() -> Iterator[_Interrupts]:
    interrupts = _Interrupts()
    before = {
        number: signal.signal(number, interrupts.note) for number in (signal.SIGINT, signal.SIGTERM)
    }
    try:
        yield interrupts
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)


class _Replay:
    """A recording on its way to a target."""

    def __init__(self, recording: RecordedFile, address: TargetAddress, chosen: Chosen) -> None:
        self._recording, self._address, self._chosen = recording, address, chosen
        self.out: OutFile | None = None  # gets a line for each outcome
        self.broken: str | None = None  # what ended a process that was sending
        self._fingerprint = keyed_fingerprint(fingerprint_key())
        self._before: Observed = looks.before(address, self._fingerprint)
        self._name = urlsplit(address.base_url).netloc
        self._suspects = frozenset(one["index"] for one in recording.document["suspects"])

    def plan(self) -> Plan:
        """What would be sent. Raises Unreachable for a target that answers nothing at all."""
        if state_of(self._before) == "down":
            raise Unreachable(f"Nothing listens at {self._address.base_url}.")
        made = plan(
            self._recording.requests(),
            self._chosen.options,
            facts_of(self._before),
            selection=self._chosen.selection,
            suspects=self._suspects,
            problems=self._recording.document["problems"],
        )
        if not made.schedule.slots:
            why = made.left_out[0].why if made.left_out else "none was chosen"
            raise Rejected(f"No request is left to be sent: {why}.")
        return made

    def consent(self, planned: Plan) -> None:
        """Returns when it may be sent; raises Conflict with what stands against it."""
        asked = self._asked()
        against = refusals(asked, None)
        typed = self._name if self._chosen.yes else None
        if typed is None and all(one.confirmable for one in against) and sys.stdin.isatty():
            for one in against:
                typer.echo(printable(one.says), err=True)
            typed = typer.prompt(to_type(asked, len(planned.schedule.slots)), err=True)
        _refuse(refusals(asked, typed), confirm=typed is None)

    def trials(self, planned: Plan, interrupted: _Interrupts) -> Iterator[Trial]:
        """One after another, as long as the target is there to take the next."""
        for number in range(1, self._chosen.trials + 1):
            if number > 1:
                self._before = looks.settled(self._address, self._fingerprint)
                _refuse(refusals(self._asked(), self._name), confirm=False)
            trial = self._trial(planned, number, interrupted)
            yield trial
            left = self._chosen.trials - number
            stopped = interrupted.by_hand or self._is_full or self.broken
            if stopped or trial.died or trial.after in ("down", "wedged"):
                if left:
                    typer.echo(f"{counted(left, 'more trial')}: not begun.", err=True)
                return

    def tell(self, planned: Plan, trials: Sequence[Trial]) -> None:
        """The verdict, as one JSON document or for people."""
        question = question_of(
            planned,
            self._chosen.symptom,
            suspects=self._suspects,
            sameness=sameness(self._before, self._recording.document),
        )
        judged = verdict(trials, question)
        told = document(planned, trials, judged, question, as_json(self._before))
        if self._chosen.as_json:
            sys.stdout.buffer.write(orjson.dumps(told, default=list) + b"\n")
        else:
            typer.echo(verdict_text(told))

    def _trial(self, planned: Plan, number: int, interrupted: _Interrupts) -> Trial:
        """One run of all requests, and how the target is found afterwards."""
        options = replace(planned.options, name=f"replay-{secrets.token_hex(4)}")
        tally = Tally(len(planned.schedule.slots), options.mode)
        recorded: dict[int, Recorded] = {}
        progress = _Progress(len(planned.schedule.slots), number)

        def noted() -> Iterator[Sending]:
            for one in replace(planned, options=options).sendings(self._recording.request_at):
                recorded[one.index] = one.recorded.without_answer()
                yield one

        def take(outcomes: Sequence[Outcome]) -> None:
            for outcome in outcomes:
                tally.see(outcome, recorded[outcome.index])
                self._keep(row(outcome, recorded[outcome.index]), number)
            progress.show(len(outcomes))

        played = play(
            noted(),
            self._address,
            options,
            take=take,
            stop=lambda: interrupted.by_hand or self._is_full,
            limits=self._chosen.limits,
        )
        self.broken = self.broken or played.broken
        up_before = state_of(self._before) == "up"
        if interrupted.by_hand:
            return tally.trial(up_before=up_before, absences=played.absences)
        left = looks.after(self._address, self._fingerprint)
        return tally.trial(up_before=up_before, after=state_of(left), absences=played.absences)

    def _asked(self) -> Asked:
        seen = self._before
        return Asked(
            self._name,
            clean=False,  # nobody is here who could have marked it
            loads=loads_of(seen),
            disaggregation=facts_of(seen).disaggregation,
        )

    @property
    def _is_full(self) -> bool:
        return self.out is not None and self.out.why_full is not None

    def _keep(self, told: dict[str, Any], number: int) -> None:
        if self.out is not None:
            self.out.write({"trial": number, **told} if self._chosen.trials > 1 else told)


class _Progress:
    """Says on a terminal how far it is, once a second."""

    def __init__(self, total: int, trial: int) -> None:
        self._total, self._trial, self._done = total, trial, 0
        self._said_at = time.monotonic()
        self._shown = sys.stderr.isatty()

    def show(self, more: int) -> None:
        """*more* requests have ended."""
        self._done += more
        now = time.monotonic()
        if self._shown and now - self._said_at >= 1.0:
            self._said_at = now
            says = f"trial {self._trial}: {self._done:,} of {self._total:,} have ended"
            typer.echo(says, err=True)


def _refuse(against: Sequence[Refusal], *, confirm: bool) -> None:
    """Raises Conflict for what is left against sending; *confirm*: nothing was confirmed yet."""
    if not against:
        return
    final = [one for one in against if not one.confirmable] or against
    says = " ".join(one.says for one in final)
    fix = final[0].fix
    if confirm and final[0].confirmable:
        fix = "Look that it serves nobody, then give --yes: the replay may bring it down."
    raise Conflict(f"{says} Nothing was sent.", fix=fix)
