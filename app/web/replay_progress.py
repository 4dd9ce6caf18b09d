"""How far a replay is: the trial that runs, when its suspect is due, what a person may do."""

from datetime import datetime

from sqlmodel import Session

from app.domain.replay.options import Window
from app.store import dump_rows
from app.store.replay_guards import to_confirm
from app.store.replays import RESUMABLE, STARTABLE
from app.store.tables import Replay, ReplayTrial
from app.web.formats import visible
from app.web.replay_standing import Standing
from app.web.replay_words import verdict_told
from app.web.views.replays import Confirm, Progress, RunningTold


def progress_of(session: Session, stands: Standing, now: datetime) -> Progress:
    """The part of the page that changes while it is at work."""
    return Progress(
        verdict=verdict_told(stands),
        running=_running(session, stands, now),
        confirms=_confirms(session, stands),
    )


def _running(session: Session, stands: Standing, now: datetime) -> RunningTold | None:
    begun = [one for one in stands.trials if one.started_at is not None]
    if not begun or stands.replay.state == "done":
        return None
    trial = stands.running or begun[-1]
    of = stands.replay.trials_wanted * len(stands.targets)
    verb = {"running": "is running", "done": "has ended"}.get(trial.state, "was stopped")
    title = f"Trial {trial.number} of {of} {verb}" if of > 1 else f"The replay {verb}"
    elapsed = (trial.finished_at or now) - trial.started_at if trial.started_at else None
    suspect, due = _suspect(session, stands, trial)
    left = due - elapsed.total_seconds() if due is not None and elapsed else None
    ahead = left is not None and left > 0 and trial.state == "running"
    return RunningTold(
        title=title,
        planned=trial.planned or 0,
        completed=trial.completed,
        failed=trial.failed,
        elapsed=elapsed,
        about_seconds=_about(stands, trial, elapsed.total_seconds() if elapsed else 0.0),
        suspect=suspect if ahead else None,
        suspect_in_seconds=left if ahead else None,
    )


def _about(stands: Standing, trial: ReplayTrial, elapsed_seconds: float) -> float | None:
    """How long the trial takes: by its times, else by how fast answers have come.

    None once it took longer: the last answers are waited for.
    """
    plan = (stands.replay.plans or {}).get(trial.side) or {}
    if stands.options.mode == "open":
        span = plan.get("span_seconds")
        return float(span) if span and span > elapsed_seconds else None
    ended = trial.completed + trial.failed
    return elapsed_seconds * (trial.planned or 0) / ended if ended else None


def _suspect(
    session: Session, stands: Standing, trial: ReplayTrial
) -> tuple[int | None, float | None]:
    """The foremost suspect and when it is due, as far as its recorded time alone tells."""
    replay, options, dump = stands.replay, stands.options, stands.dump
    as_it_was = options.mode == "open" and options.cut_gaps_to_seconds is None
    all_of_it = not replay.selection and options.sample >= 1 and options.window == Window()
    if dump is None or dump.id is None or trial.resumed or not (as_it_was and all_of_it):
        return None, None
    first = (dump.document or {}).get("first_started_at")
    row = next(iter(dump_rows.suspects_of(session, dump.id)), None)
    if row is None or row.started_at is None or not isinstance(first, int | float):
        return None, None
    return row.position, (row.started_at - first) / options.speed


def _confirms(session: Session, stands: Standing) -> list[Confirm]:
    """The names to type before it is sent; where a guard held it back, one may help."""
    replay: Replay = stands.replay
    if replay.state not in (*STARTABLE, *RESUMABLE):
        return []
    found = []
    for side, target in zip("AB", stands.targets, strict=False):
        refusal = to_confirm(session, replay.incident_id, target)
        if refusal is not None:
            told = Confirm(
                visible(target.name), visible(refusal.says), visible(refusal.fix), required=True
            )
            found.append(told)
        elif replay.state == "refused" and _may_help(stands, side):
            fix = f"Type {target.name} where you know that it serves nobody, else leave it empty."
            found.append(Confirm(visible(target.name), "", visible(fix), required=False))
    return found


def _may_help(stands: Standing, side: str) -> bool:
    """Whether its loads were looked at and left open whom it serves: only that a name answers."""
    looked = [one.strangers for one in stands.trials if one.side == side and one.strangers]
    return bool(looked) and looked[-1].get("of_others") is None
