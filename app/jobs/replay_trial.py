"""One trial of a replay: the target looked at, the guards, the sending, the target looked at again.

Nothing is sent before the guards have passed and the job has written that it is about to act.
"""

import logging
from collections.abc import Mapping
from dataclasses import asdict
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, get_args

from sqlalchemy.exc import SQLAlchemyError

from app.clients.journal import Journal, journal_of
from app.clients.player import Played, play
from app.domain.loads import Loads
from app.domain.playbook import ReplayTargetDied
from app.domain.replay import aftermath
from app.domain.replay.died import Absence, After
from app.domain.replay.guards import Asked, refusals, strangers
from app.domain.replay.limits import Limits
from app.domain.replay.phrases import without_words
from app.domain.replay.plan import Plan
from app.domain.replay.tally import Tally, Trial
from app.domain.replay.target import facts_of, state_of
from app.domain.replay_findings import death_told
from app.errors import Conflict, ConsoleError
from app.jobs.replay_bundles import DuringBundle, Taken, loads_now, take_bundle
from app.jobs.replay_landing import Landing
from app.jobs.replay_run import Run
from app.store import attempts, replay_progress, timeline
from app.store.aside import aside
from app.store.audit import CONSOLE
from app.store.database import reading, writing
from app.store.replay_guards import asked_of, typed_for
from app.store.replay_progress import Begun
from app.store.replays import get_replay
from app.store.tables import ReplayTrial, Target

log = logging.getLogger(__name__)

FIRST_LOOK_SECONDS, LAST_LOOK_SECONDS = 1.0, 10.0  # into a trial, for the bundle during it
ENDING_SECONDS = 5.0  # that processes of an earlier attempt may take to end


def run_trial(run: Run, number: int, side: str) -> bool:
    """Do a trial, or the rest of one; False where its target does not serve any more.

    Raises Conflict where a guard holds it back: then nothing was sent.
    """
    work, target = run.work, run.targets[side]
    trial = replay_progress.trial_of(work.stores, work.attempt, run.id, number, side)
    if trial.state == "done":
        return trial.started_at is not None
    work.tell(f"Trial {number}: a bundle of {target.name}, then it is looked at for others.")
    before = take_bundle(work, target, _name(run, number), "before")
    _note(run, trial, bundle_before_id=before.bundle_id, reached=state_of(before.seen) == "up")
    if state_of(before.seen) in ("down", "wedged"):
        return _unfit(run, trial, target, before)
    plan = run.plan_for(side, before.seen)
    _guard(run, trial, target, before)
    with Journal(_journal(run, trial), wait_seconds=ENDING_SECONDS) as journal:
        _acts(run, trial, plan)
        begun = _with_left(run, trial, journal)
        _send(run, begun, plan, target, journal)
    _end(run, begun.trial, before)
    return True


def tallied(run: Run, trial: ReplayTrial) -> Trial:
    """What a trial adds up to, by all that is written of it."""
    tally = Tally(trial.planned or 0, run.options.mode)
    for outcome, recorded in replay_progress.kept_outcomes(run.work.stores, trial):
        tally.see(without_words(outcome), recorded)  # for all to read
    after = next(one for one in get_args(After) if one == trial.after)
    absences = [Absence(**one) for one in trial.absences or ()]
    return tally.trial(
        up_before=trial.reached, after=after, absences=absences, resumed=trial.resumed
    )


def _unfit(run: Run, trial: ReplayTrial, target: Target, before: Taken) -> bool:
    """The target does not serve: the first time nothing is sent at all, later its side is over."""
    if run.replay.started_at is None and trial.number == 1:
        raise Conflict(
            f"{target.name} does not serve, so nothing was sent. {before.says}",
            fix="Start it, wait until it serves, and start the replay again.",
        )
    _note(run, trial, state="done", after=state_of(before.seen), says=f"Not sent: {before.says}")
    return False


def _guard(run: Run, trial: ReplayTrial, target: Target, before: Taken) -> None:
    """Returns once nothing stands against sending; raises Conflict. What the loads told is kept."""
    ours_linger = trial.number > 1 or trial.started_at is not None
    loads = loads_now(run.work, target, patient=ours_linger)
    _note(run, trial, strangers=_told(loads))
    with reading(run.work.stores.engine) as session:
        target = session.get_one(Target, target.id)  # it may be marked otherwise by now
        seen = asked_of(session, run.replay.incident_id, target)
        typed = typed_for(get_replay(session, run.id), target)
    asked = Asked(
        name=seen.name,
        clean=seen.clean,
        of_recording=seen.of_recording,
        loads=loads,
        disaggregation=facts_of(before.seen).disaggregation,
    )
    for one in refusals(asked, typed):
        raise Conflict(f"{one.says} Nothing was sent.", fix=one.fix)


def _told(loads: Loads | None) -> dict[str, Any]:
    return {"of_others": strangers(loads), "artifact": loads.artifact if loads else None,
            "at": datetime.now(UTC).isoformat()}  # fmt: skip


def _journal(run: Run, trial: ReplayTrial) -> Path:
    assert trial.id is not None
    return journal_of(run.work.stores.settings.data_dir, trial.id)


def _acts(run: Run, trial: ReplayTrial, plan: Plan) -> None:
    assert trial.id is not None
    size, now = len(plan.schedule.slots), datetime.now(UTC)
    replay_progress.acts(run.work.stores, run.work.attempt, trial.id, size, at=now)
    run.replay.started_at = run.replay.started_at or now


def _with_left(run: Run, trial: ReplayTrial, journal: Journal) -> Begun:
    """The trial with what is in its journal and was not written any more."""
    assert trial.id is not None
    stores, attempt = run.work.stores, run.work.attempt
    begun = replay_progress.take_in(stores, trial.id, journal.left(), attempt=attempt)
    assert begun is not None
    return begun


def _send(run: Run, begun: Begun, plan: Plan, target: Target, journal: Journal) -> None:
    """Raises why it was to stop, once all that was measured is written."""
    span = plan.schedule.span_seconds
    during = DuringBundle(min(max(FIRST_LOOK_SECONDS, span / 3), LAST_LOOK_SECONDS))
    looked = aside(lambda: _look_during(run, begun, target, during), name="look at a replay")
    with Landing(run.work, begun) as landing:
        try:
            played = play(
                landing.seen(plan.sendings(run.recording.request_at, done=begun.done)),
                run.address(target),
                run.options,
                take=landing.take,
                stop=landing.is_stopping,
                limits=Limits(request_seconds=run.replay.request_seconds),
                journal=journal.descriptor,
            )
        finally:
            during.over()
    if landing.all_written:
        _close(run, begun.trial, played, journal)
    landing.check()
    looked.result()


def _close(run: Run, trial: ReplayTrial, played: Played, journal: Journal) -> None:
    """Write what only the end of the sending tells.

    Raises ConsoleError where a process that was sending was ended: the rest is still to be sent.
    """
    absences = [*(trial.absences or ()), *map(asdict, played.absences)]
    _note(run, trial, absences=absences)
    if played.broken:
        _with_left(run, trial, journal)  # it had measured more than it has said
    journal.remove()
    if played.broken:
        raise ConsoleError(
            f"A process that was sending was ended: {played.broken}.",
            fix="What was measured stays. Go on with the replay to send the rest.",
        )


def _look_during(run: Run, begun: Begun, target: Target, during: DuringBundle) -> None:
    """A trial is worth no less without this look: what keeps it from being kept is only logged."""
    try:
        found = during.take(run.work, target, _name(run, begun.trial.number))
        if found is not None:
            _note(run, begun.trial, bundle_during_id=found.bundle_id)
    except (ConsoleError, SQLAlchemyError, OSError) as error:
        log.warning("The bundle during %s was not kept: %s", _name(run, begun.trial.number), error)


def _end(run: Run, trial: ReplayTrial, before: Taken) -> None:
    """Look at the target once more and write down what the trial adds up to."""
    target = run.targets[trial.side]
    run.work.tell(f"Trial {trial.number} is over; a bundle of {target.name}.")
    after = take_bundle(run.work, target, _name(run, trial.number), "after")
    _note(run, trial, bundle_after_id=after.bundle_id, after=state_of(after.seen))
    with reading(run.work.stores.engine) as session:
        trial = session.get_one(ReplayTrial, trial.id)
    told = tallied(run, trial)
    _note(run, trial, **_written(told, before))
    if told.died is not None:
        _tell_death(run, trial, target, told)


def _written(told: Trial, before: Taken) -> dict[str, Any]:
    values: dict[str, Any] = {
        "state": "done",
        "finished_at": datetime.now(UTC),
        "lateness_ms": told.lateness_ms,
    }
    if told.died is not None:
        values |= {
            "died": {**asdict(told.died), "says": told.died.says},
            "says": told.died.says,
            "recipe": aftermath.recipe(before.seen.version, before.settings),
        }
    return values


def _tell_death(run: Run, trial: ReplayTrial, target: Target, told: Trial) -> None:
    assert told.died is not None
    died: Mapping[str, Any] = {**asdict(told.died), "says": told.died.says}
    says = f"Replay {run.id}, {target.name}: {death_told(died)}"
    with writing(run.work.stores.engine) as session:
        attempts.held(session, run.work.attempt)
        event = ReplayTargetDied(run.id, target.name, says, told.died.in_flight[:100])
        incident_id, now = run.replay.incident_id, datetime.now(UTC)
        timeline.record(session, event, incident_id=incident_id, actor=CONSOLE, at=now)


def _note(run: Run, trial: ReplayTrial, **values: object) -> None:
    assert trial.id is not None
    replay_progress.note_trial(run.work.stores, run.work.attempt, trial.id, **values)


def _name(run: Run, number: int) -> str:
    return f"replay-{run.id}-trial-{number}"
