"""What the job of a replay writes while it is at work; each write is bound to its attempt."""

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any

from sqlmodel import Session, select

from app.domain.counting import counted
from app.domain.replay.outcomes import Outcome
from app.domain.replay.planned import Recorded
from app.store import attempts, audit, jobs, replay_rows
from app.store.attempts import Attempt
from app.store.audit import CONSOLE
from app.store.database import reading, writing
from app.store.replay_guards import refuse_rival
from app.store.replays import get_replay, sides, trials_of
from app.store.stores import Stores
from app.store.tables import Replay, ReplayTrial


@dataclass(slots=True)
class Counts:
    """How far a trial is: counted as outcomes are written, so that nobody counts rows."""

    completed: int = 0
    failed: int = 0
    unsent: int = 0
    errors: Counter[str] = field(default_factory=Counter)

    def see(self, outcome: Outcome) -> None:
        """Take one more outcome into account; of each request there is one."""
        state = replay_rows.state_of(outcome)
        self.completed += state == "completed"
        self.failed += state == "failed"
        self.unsent += state == "not sent"
        if outcome.error is not None:
            self.errors[outcome.error] += 1

    @property
    def sent(self) -> int:
        return self.completed + self.failed


@dataclass(frozen=True, slots=True)
class Begun:
    """A trial that is about to send. *done* are the requests that have had their chance before."""

    trial: ReplayTrial
    done: frozenset[int]
    counts: Counts


def begin(stores: Stores, attempt: Attempt, replay_id: int, *, sends: bool, at: datetime) -> Replay:
    """The replay, at work now. Raises Conflict where another one is at work on its target."""
    with writing(stores.engine) as session:
        attempts.held(session, attempt)
        replay = get_replay(session, replay_id)
        if sends:
            refuse_rival(session, sides(session, replay), but=replay_id)
        replay.state, replay.says = "planning", "Reading the requests."
        replay.version += 1
        who = replay.asked_by
        audit.note(
            session,
            CONSOLE,
            "replay.read",
            f"replay:{replay_id}",
            at=at,
            artifact_id=replay.artifact_id,
            dump_id=replay.dump_id,
            tier="T2",
            asked_by=who,
        )
    return replay


def planned(
    stores: Stores, attempt: Attempt, replay_id: int, plans: Mapping[str, Mapping[str, Any]]
) -> None:
    """Write what will be sent to each side."""
    with writing(stores.engine) as session:
        attempts.held(session, attempt)
        replay = get_replay(session, replay_id)
        sizes = {side: int(one["to_send"]) for side, one in plans.items()}
        replay.plans = {**(replay.plans or {}), **{side: dict(one) for side, one in plans.items()}}
        replay.planned = max(sizes.values())
        replay.total = replay.trials_wanted * sum(
            sizes.get(side, replay.planned) for side in _sides(replay)
        )
        replay.version += 1


def trial_of(
    stores: Stores, attempt: Attempt, replay_id: int, number: int, side: str
) -> ReplayTrial:
    """The trial of that number, a new one where it was never begun."""
    with writing(stores.engine) as session:
        attempts.held(session, attempt)
        replay = get_replay(session, replay_id)
        query = select(ReplayTrial).where(
            ReplayTrial.replay_id == replay_id, ReplayTrial.number == number
        )
        if found := session.exec(query).first():
            return found
        target_id = replay.target_id if side == "A" else replay.other_target_id
        assert target_id is not None
        trial = ReplayTrial(
            replay_id=replay_id, number=number, side=side, target_id=target_id, errors={}
        )
        session.add(trial)
        session.flush()
        return trial


def acts(stores: Stores, attempt: Attempt, trial_id: int, size: int, *, at: datetime) -> None:
    """Write that *size* requests of a trial are about to be sent, committed before the first is."""
    with writing(stores.engine) as session:
        attempts.asked_to_stop(session, attempt)
        attempts.acts(session, attempt, at=at)
        trial = session.get_one(ReplayTrial, trial_id)
        replay = get_replay(session, trial.replay_id)
        replay.state, replay.says = "running", f"Sending {counted(size, 'request')}."
        replay.started_at, replay.finished_at = replay.started_at or at, None
        replay.version += 1
        replay_rows.drop_unsent(session, trial.replay_id, trial.number)
        trial.resumed += trial.started_at is not None
        trial.state, trial.started_at, trial.planned = "running", trial.started_at or at, size


def land(
    stores: Stores,
    attempt: Attempt,
    trial: ReplayTrial,
    pairs: Sequence[tuple[Outcome, Recorded]],
    counts: Counts,
) -> None:
    """Write a batch of outcomes and the counts with them. Raises Superseded."""
    with writing(stores.engine) as session:
        attempts.held(session, attempt)  # first, as all do that write: or two wait for each other
        replay_rows.put_outcomes(session, trial.replay_id, trial.number, pairs)
        row = session.get_one(ReplayTrial, trial.id)
        _write_counts(row, counts)
        replay = get_replay(session, trial.replay_id)
        session.flush()
        _add_up(session, replay)
        replay.says = _progress(replay, row)
        attempts.progress(session, attempt, replay.says, done=replay.sent, total=replay.total)


def take_in(
    stores: Stores,
    trial_id: int,
    found: Iterable[tuple[Outcome, Recorded]],
    *,
    attempt: Attempt | None = None,
) -> Begun | None:
    """Write what a trial measured and did not write when it was cut off; what is written stays.

    Without an *attempt* of a worker that is at work on it, None where there is one.
    """
    with writing(stores.engine) as session:
        trial = session.get_one(ReplayTrial, trial_id)
        replay = get_replay(session, trial.replay_id)
        if attempt is not None:
            attempts.held(session, attempt)
        elif jobs.is_unfinished(session, replay.job_id):
            return None
        done = replay_rows.done_indexes(session, trial.replay_id, trial.number)
        left = {
            outcome.index: (outcome, recorded)
            for outcome, recorded in found
            if outcome.index not in done and replay_rows.state_of(outcome) != replay_rows.NOT_SENT
        }
        replay_rows.put_outcomes(session, trial.replay_id, trial.number, left.values())
        counts = _counted(session, trial)
        _write_counts(trial, counts)
        session.flush()
        _add_up(session, replay)
    return Begun(trial, frozenset(done | left.keys()), counts)


def note_trial(stores: Stores, attempt: Attempt, trial_id: int, **values: Any) -> None:  # noqa: ANN401
    """Set columns of a trial."""
    with writing(stores.engine) as session:
        attempts.held(session, attempt)
        trial = session.get_one(ReplayTrial, trial_id)
        for name, value in values.items():
            setattr(trial, name, value)
        get_replay(session, trial.replay_id).version += 1


def kept_outcomes(stores: Stores, trial: ReplayTrial) -> Iterator[tuple[Outcome, Recorded]]:
    """All outcomes of a trial, those of earlier attempts too."""
    with reading(stores.engine) as session:
        yield from replay_rows.read_outcomes(session, trial.replay_id, trial.number)


def _sides(replay: Replay) -> tuple[str, ...]:
    return ("A",) if replay.other_target_id is None else ("A", "B")


def _counted(session: Session, trial: ReplayTrial) -> Counts:
    counts = Counts()
    found = replay_rows.counts_of(session, trial.replay_id, trial.number)
    for error, states in found.items():
        counts.completed += states.get("completed", 0)
        counts.failed += states.get("failed", 0)
        if error is not None:
            counts.errors[error] += sum(states.values())
    return counts


def _write_counts(trial: ReplayTrial, counts: Counts) -> None:
    trial.sent, trial.completed, trial.failed = counts.sent, counts.completed, counts.failed
    trial.errors = dict(counts.errors)


def _add_up(session: Session, replay: Replay) -> None:
    assert replay.id is not None
    trials = trials_of(session, replay.id)
    replay.sent = sum(one.sent for one in trials)
    replay.completed = sum(one.completed for one in trials)
    replay.failed = sum(one.failed for one in trials)
    replay.version += 1


def _progress(replay: Replay, trial: ReplayTrial) -> str:
    failed = f", {replay.failed} failed" if replay.failed else ""
    several = replay.trials_wanted > 1 or replay.other_target_id is not None
    which = f" Trial {trial.number}." if several else ""
    return f"{replay.sent} of {counted(replay.total or 0, 'request')} sent{failed}.{which}"
