"""Send recorded requests again, to a target that may be harmed, and say whether it happened again.

One slice that owns the pacing, in processes of their own. A job that was cut off after it began
to send is interrupted and asks again; gone on with, it skips what has had its chance.
"""

from collections.abc import Iterator
from datetime import UTC, datetime

from app.domain.counting import counted
from app.domain.observed import Observed, observe
from app.domain.playbook import ReplayRequests
from app.errors import Conflict
from app.jobs.replay_ending import end
from app.jobs.replay_run import Run, recording_of, suspects_of
from app.jobs.replay_trial import run_trial
from app.jobs.work import Work
from app.store import attempts, jobs, replay_progress
from app.store.bundles import load_bundle
from app.store.database import reading, writing
from app.store.replays import get_replay, sides, trials_of
from app.store.tables import Target


def replay(work: Work) -> bool:
    """Do the replay of the job; False: it is over."""
    step = ReplayRequests(**work.job.arguments)
    begun = replay_progress.begin(
        work.stores, work.attempt, step.replay_id, sends=step.send, at=datetime.now(UTC)
    )
    with reading(work.stores.engine) as session:
        targets = dict(zip("AB", sides(session, begun), strict=False))
    work.tell("Reading the requests.")
    with recording_of(work, begun) as recording:
        run = Run(work, begun, targets, recording, suspects_of(work, begun))
        if step.send:
            _send(run)
        else:
            _look(run)
    return False


def _look(run: Run) -> None:
    """Tell what would be sent, as far as the newest bundle of each target tells what it takes."""
    for side, target in run.targets.items():
        run.plan_for(side, _newest(run, target))
    with writing(run.work.stores.engine) as session:
        job = attempts.held(session, run.work.attempt)
        row = get_replay(session, run.id)
        row.state, row.finished_at = "planned", datetime.now(UTC)
        row.says = f"{counted(row.planned or 0, 'request')} would be sent. Nothing was sent yet."
        row.version += 1
        job.result = {"replay_id": run.id}
        jobs.succeeded(session, job, row.says, at=datetime.now(UTC))


def _newest(run: Run, target: Target) -> Observed | None:
    if target.last_bundle_id is None:
        return None
    with reading(run.work.stores.engine) as session:
        return observe(load_bundle(session, run.work.stores.artifacts, target.last_bundle_id))


def _send(run: Run) -> None:
    over: set[str] = set()
    try:
        for number, side in _order(run):
            if side not in over and not run_trial(run, number, side):
                over.add(side)
    except Conflict as refused:
        if not _refuse(run, refused):
            raise
    run.work.done_acting()  # what is left harms nothing: cut off now, it just goes on
    run.work.tell("Comparing what came back with what was recorded.")
    end(run)


def _refuse(run: Run, refused: Conflict) -> bool:
    """Whether earlier trials measured something, which stands; else the replay may be started anew.

    A trial that was cut off and cannot go on now stays as it is: it may go on later.
    """
    stores = run.work.stores
    with writing(stores.engine) as session:
        attempts.held(session, run.work.attempt)
        trials = trials_of(session, run.id)
        last = trials[-1]
        if last.started_at is None:
            last.says = f"Not sent: {refused.detail}"
        row = get_replay(session, run.id)
        if row.started_at is None:
            row.state, row.says, row.finished_at = "refused", refused.detail, datetime.now(UTC)
            row.version += 1
    return last.started_at is None and any(one.state == "done" for one in trials)


def _order(run: Run) -> Iterator[tuple[int, str]]:
    """The trials by number and side; two sides alternate, so that time favours neither."""
    number = 0
    for _ in range(run.replay.trials_wanted):
        for side in run.targets:
            number += 1
            yield number, side
