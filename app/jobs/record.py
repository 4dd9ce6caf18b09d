"""Have a target record its requests for a while: switched on once, switched off at its time.

What is owed is written before anything is sent: a worker that dies in between leaves a job that
is due, and the next start of any worker switches off what is overdue. *On* is never sent again
where its answer was lost; *off* is, with growing pauses, as sending it twice changes nothing.
"""

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from typing import Any, Literal

from sqlmodel import Session

from app.clients.sending import ask_to
from app.clients.target import TargetAddress
from app.domain import recording
from app.domain.playbook import RecordingChanged, RecordRequests
from app.domain.recording import Meant
from app.errors import Conflict
from app.jobs.work import Work
from app.store import attempts, audit, jobs, recordings, timeline
from app.store.attempts import Cancelled
from app.store.audit import CONSOLE
from app.store.database import reading, writing
from app.store.tables import Job, Target
from app.store.targets import address, get_target

LATE = timedelta(seconds=10)  # a busy worker may take some


@dataclass(frozen=True, slots=True)
class _Held:
    """The job and its target, in a transaction that writes both what is done and what is told."""

    session: Session
    job: Job
    target: Target
    at: datetime

    @property
    def step(self) -> RecordRequests:
        return RecordRequests(**self.job.arguments)

    def note(self, phase: recordings.Phase, **more: Any) -> None:  # noqa: ANN401  (any JSON)
        self.job.result = {**(self.job.result or {}), **more, "phase": phase}
        self.job.version += 1

    def tell(self, state: Literal["on", "off", "not known"], says: str) -> None:
        assert self.job.id is not None
        detail = {"target": self.target.name, "state": state}
        audit.note(
            self.session, CONSOLE, "recording.changed", f"job:{self.job.id}", at=self.at, **detail
        )
        if self.job.incident_id is not None:
            event = RecordingChanged(self.job.id, self.target.name, state, says)
            timeline.record(
                self.session, event, incident_id=self.job.incident_id, actor=CONSOLE, at=self.at
            )


def record(work: Work) -> bool:
    """Do what is due: switch on, or off. In between the job is in nobody's hand."""
    phase = (work.job.result or {}).get("phase", "asked")
    if phase in ("asked", "refused") and work.job.arguments["folder"]:
        _switch_on(work)
    elif work.job.due_at is not None and work.job.due_at > datetime.now(UTC):
        with _held(work) as held:
            _left_unknown(held, Meant("not known", "The console was cut off while it was sent."))
    else:
        _switch_off(work)
    return False


@contextmanager
def _held(work: Work) -> Iterator[_Held]:
    with writing(work.stores.engine) as session:
        job = attempts.held(session, work.attempt)
        target = get_target(session, RecordRequests(**job.arguments).target_id)
        yield _Held(session, job, target, datetime.now(UTC))


def _address(work: Work) -> TargetAddress:
    with reading(work.stores.engine) as session:
        target = get_target(session, RecordRequests(**work.job.arguments).target_id)
        return address(target, work.stores.vault, work.stores.settings)


def _switch_on(work: Work) -> None:
    where = _address(work)
    with _held(work) as held:
        _owe(held)
        body = recording.body_on(held.step.folder, held.step.threshold)
    answered = ask_to(where, body, 1, work.stores.vault.fingerprint)
    meant = recording.meant(answered)
    with _held(work) as held:
        if meant.effect == "done":
            _on(held)
        elif meant.effect == "not known":
            _left_unknown(held, meant)
        else:
            held.job.due_at = None
            held.note("refused")
            reason = f"{meant.says} {meant.fix}".strip()
            jobs.failed(held.session, held.job, reason=reason, at=held.at)


def _owe(held: _Held) -> None:
    """Write that it has to be switched off, before it is switched on."""
    if held.job.cancel_requested_at:
        raise Cancelled
    if rival := recordings.unsettled(held.session, held.target, but=held.job.id):
        raise Conflict(
            f"Requests of {held.target.name} are recorded already, by job {rival.id}.",
            fix="Switch that one off first.",
        )
    until = held.at + timedelta(seconds=held.step.duration_seconds)
    held.job.due_at = until
    held.note(
        "sent",
        sent_at=held.at.isoformat(),
        until=until.isoformat(),
        base_url=held.target.base_url,
        tries=0,
    )


def _on(held: _Held) -> None:
    step, until = held.step, datetime.fromisoformat((held.job.result or {})["until"])
    each = "each finished request" if step.threshold == 1 else f"{step.threshold} finished requests"
    says = (
        f"Request dumping is on at {held.target.name} until {until:%Y-%m-%d %H:%M:%S} UTC: a file "
        f"in {step.folder} for {each}."
    )
    held.note("on")
    held.tell("on", says)
    jobs.later(held.job, says)


def _left_unknown(held: _Held, meant: Meant) -> None:
    """It may be on: nothing is sent again, and it is switched off at its time."""
    says = f"Whether request dumping is on at {held.target.name} is not known. {meant.says}"
    held.note("not known")
    held.tell("not known", says)
    jobs.later(held.job, says)


def _switch_off(work: Work) -> None:
    where = _address(work)
    with _held(work) as held:
        if not _is_ours(held):
            return
        times = recording.sends(held.step.tokenizers)
        late = _late(held)
    meant = recording.meant(
        ask_to(where, recording.body_off(), times, work.stores.vault.fingerprint)
    )
    with _held(work) as held:
        if meant.effect == "done":
            _off(held, late)
        else:
            _try_again(held, meant)


def _is_ours(held: _Held) -> bool:
    """Whether what is on there is what this job switched on; else the job is over."""
    told = held.job.result or {}
    if rival := recordings.later_one(held.session, held.target, held.job):
        held.job.due_at = None
        held.note("replaced")
        says = f"Left alone: job {rival.id} switched it on anew since."
        jobs.succeeded(held.session, held.job, says, at=held.at)
        return False
    if told.get("base_url", held.target.base_url) != held.target.base_url:
        held.note("still on?")
        reason = (
            f"{held.target.name} has another address since, so nothing was sent. Switch it off by "
            f"hand: {recording.command_off(told['base_url'])}"
        )
        jobs.failed(held.session, held.job, reason=reason, at=held.at)
        return False
    return True


def _late(held: _Held) -> str:
    """Write down that it is tried; the words for a first try that comes long after its time."""
    tries = (held.job.result or {}).get("tries", 0)
    due = held.job.due_at or held.at
    held.job.due_at = due
    held.note("still on?" if held.step.folder else "asked", tries=tries + 1)
    if tries or held.at - due < LATE:
        return ""
    seconds = (held.at - due).total_seconds()
    late = f"{seconds:.0f} s" if seconds < 120 else f"{seconds / 60:.0f} min"
    return f" That is {late} late: no worker of this console was free for it at its time."


def _off(held: _Held, late: str) -> None:
    says = f"Request dumping is off at {held.target.name}.{late}"
    if held.step.folder:
        says += " What was collected below the threshold is not written."
    if held.step.tokenizers > 1:
        says += (
            f" Sent {recording.sends(held.step.tokenizers)} times, as each reaches one of "
            f"{held.step.tokenizers} tokenizers by chance: look whether files still come."
        )
    held.job.due_at = None
    held.note("off", off_at=held.at.isoformat())
    held.tell("off", says)
    jobs.succeeded(held.session, held.job, says, at=held.at)


def _try_again(held: _Held, meant: Meant) -> None:
    tries = (held.job.result or {})["tries"]
    says = (
        f"Request dumping may still be on at {held.target.name}. {meant.says} {meant.fix}".strip()
    )
    if tries == 1:
        held.tell("not known", says)
    pause = recording.pause_seconds(tries)
    if pause is None:
        reason = f"{says} Tried {tries} times. By hand: " + recording.command_off(
            held.target.base_url
        )
        jobs.failed(held.session, held.job, reason=reason, at=held.at)
        return
    says += f" Tried {tries} time{'s' if tries > 1 else ''}; again in {pause:.0f} s."
    jobs.later(held.job, says, held.at + timedelta(seconds=pause))
