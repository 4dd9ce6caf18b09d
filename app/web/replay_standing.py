"""A replay with all that its pages tell of it: trials, targets, file, job, documents."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from sqlmodel import Session

from app.domain.counting import counted
from app.domain.replay import agreed
from app.domain.replay.options import Options
from app.store import attempts, replays
from app.store.bundles import get_bundle
from app.store.dumps import get_dump
from app.store.evidence import get_artifact
from app.store.jobs import get_job
from app.store.tables import Dump, Job, Replay, ReplayTrial, Target
from app.web.formats import number, visible
from app.web.views.jobs import LONGEST_TOLD, WAITED_LONG
from app.web.views.replays import ReplayTold, SideTold

Document = Mapping[str, Any]

_LEFT_THERE = (
    "Its worker is not heard. What that measured in the last 0.3 s may lie there still, and is"
    " added once it is back; gone on with before that, those requests are sent again."
)


@dataclass(frozen=True)
class Standing:
    """*documents* are those of ``replay --json`` by side; empty before its end."""

    replay: Replay
    targets: Sequence[Target]
    trials: Sequence[ReplayTrial]
    file: str
    dump: Dump | None
    job: Job | None
    worker_is_silent: bool  # the one that had its job last
    documents: Mapping[str, Document]
    versions: Mapping[str, str]  # by side, as its bundle or the last look told

    @property
    def id(self) -> int:
        assert self.replay.id is not None
        return self.replay.id

    @property
    def options(self) -> Options:
        return agreed.read(self.replay.options)

    @property
    def names(self) -> Sequence[str]:
        """The targets as pages name them."""
        return [visible(one.name) for one in self.targets]

    @property
    def running(self) -> ReplayTrial | None:
        """The trial that runs; None: none does."""
        return next((one for one in self.trials if one.state == "running"), None)

    @property
    def deaths(self) -> Sequence[ReplayTrial]:
        """The trials in which the target went away."""
        return [one for one in self.trials if one.died]

    def label(self, trial: ReplayTrial) -> str:
        """``trial 2``, or ``B 1`` where there are two sides."""
        if len(self.targets) == 1:
            return f"trial {trial.number}"
        mine = [one.number for one in self.trials if one.side == trial.side]
        return f"{trial.side} {mine.index(trial.number) + 1}"

    def told_of(self, trial: ReplayTrial) -> Document:
        """What the document says of a trial; empty before the end, and where it never began."""
        begun = [one.number for one in self.trials if one.side == trial.side and one.started_at]
        told = (self.documents.get(trial.side) or {}).get("trials") or ()
        place = begun.index(trial.number) if trial.number in begun else len(told)
        return told[place] if place < len(told) else {}


def standing(session: Session, replay_id: int) -> Standing:
    """All of a replay but its outcomes; raises NotFound."""
    replay = replays.get_replay(session, replay_id)
    targets = replays.sides(session, replay)
    trials = replays.trials_of(session, replay_id)
    job = get_job(session, replay.job_id) if replay.job_id else None
    return Standing(
        replay=replay,
        targets=targets,
        trials=trials,
        file=visible(get_artifact(session, replay.artifact_id).name),
        dump=get_dump(session, replay.dump_id) if replay.dump_id else None,
        job=job,
        worker_is_silent=bool(job and job.worker and attempts.is_silent(session, job.worker)),
        documents=_documents(replay),
        versions=dict(_versions(session, targets, trials)),
    )


def replay_told(stands: Standing, now: Any) -> ReplayTold:  # noqa: ANN401
    """The replay as its templates have it."""
    replay, job = stands.replay, stands.job
    reason = job.reason if job and replay.state in ("failed", "interrupted") else None
    if reason and replay.state == "interrupted" and stands.worker_is_silent:
        reason = f"{reason} {_LEFT_THERE}"
    return ReplayTold(
        id=stands.id,
        incident_id=replay.incident_id,
        artifact_id=replay.artifact_id,
        dump_id=replay.dump_id,
        job_id=replay.job_id,
        outcomes_artifact_id=replay.outcomes_artifact_id,
        file=stands.file,
        state=replay.state,
        says=visible(replay.says[:LONGEST_TOLD]),
        reason=visible(reason[:LONGEST_TOLD]) if reason else None,
        symptom=replay.symptom,
        symptom_by=visible(replay.symptom_by),
        how=how_sent(stands.options),
        selection=visible(replay.selection),
        trials_wanted=replay.trials_wanted,
        asked_by=visible(replay.asked_by),
        asked_at=replay.asked_at,
        started_at=replay.started_at,
        finished_at=replay.finished_at,
        planned=replay.planned,
        total=replay.total,
        sent=replay.sent,
        completed=replay.completed,
        failed=replay.failed,
        sides=sides_told(stands),
        cancelling=bool(job and job.cancel_requested_at and replay.state == "running"),
        waited_long=bool(
            job and job.state == "queued" and now - (job.due_at or job.created_at) > WAITED_LONG
        ),
    )


def sides_told(stands: Standing) -> list[SideTold]:
    """The targets by side."""
    return [
        SideTold(
            name=side,
            target_id=target.id or 0,
            target=visible(target.name),
            version=stands.versions.get(side),
            clean=target.clean,
        )
        for side, target in zip("AB", stands.targets, strict=False)
    ]


def how_sent(options: Options) -> str:
    """``at the recorded times``, ``32 in flight``: how the requests come."""
    if options.mode == "closed":
        return f"{number(options.parallel)} in flight, one after the other"
    if options.mode == "flat-out":
        return f"as fast as it can, at most {counted(options.parallel, 'request')} at once"
    if options.speed == 1:
        return "at the recorded times"
    return f"{options.speed:g} × as fast as recorded"


def _documents(replay: Replay) -> dict[str, Document]:
    summary = replay.summary
    if not summary:
        return {}
    if replay.other_target_id is None:
        return {"A": summary}
    return {side: summary[side] for side in "AB" if side in summary}


def _versions(
    session: Session, targets: Sequence[Target], trials: Sequence[ReplayTrial]
) -> list[tuple[str, str]]:
    found = []
    for side, target in zip("AB", targets, strict=False):
        bundle_id = next(
            (one.bundle_before_id for one in trials if one.side == side and one.bundle_before_id),
            target.last_bundle_id,
        )
        summary = (get_bundle(session, bundle_id).summary if bundle_id else None) or {}
        version = summary.get("version") or (target.seen or {}).get("version")
        if version:
            found.append((side, visible(str(version))))
    return found
