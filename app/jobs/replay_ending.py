"""The end of a replay: verdict, document, outcomes as a file, and what the incident takes in."""

from collections.abc import Iterator, Mapping, Sequence
from datetime import UTC, datetime
from typing import Any, get_args

import orjson
from sqlmodel import Session

from app.domain.observed import Observed, observe
from app.domain.playbook import ReplayEnded
from app.domain.replay.questions import question_of
from app.domain.replay.summary import document
from app.domain.replay.symptoms import Sameness, Symptom
from app.domain.replay.target import as_json, sameness
from app.domain.replay.verdict import Verdict, two_sides, verdict
from app.domain.replay_findings import Sent, replay_findings
from app.jobs.replay_run import Run
from app.jobs.replay_trial import tallied
from app.store import attempts, audit, evidence, incidents, jobs, replay_rows, timeline
from app.store.artifacts import StoredFile
from app.store.audit import CONSOLE
from app.store.bundles import load_bundle
from app.store.database import reading, writing
from app.store.replays import get_replay, trials_of
from app.store.tables import ReplayTrial

KIND = "replay outcomes"
TIER = "T2"  # of a failure the words of the target, which may quote a prompt
MEDIA_TYPE = "application/x-ndjson"
LINES_AT_ONCE = 2000
_WEIGHT = ("reproduced", "reproduced sometimes", "inconclusive", "not reproduced")


def end(run: Run) -> None:
    """Judge all trials and tell the incident: all of it or nothing."""
    stores = run.work.stores
    with reading(stores.engine) as session:
        trials = trials_of(session, run.id)
    judged = {side: _judged(run, side, trials) for side in run.targets}
    outcomes = stores.artifacts.put(_lines(run))
    _write(run, judged, trials, outcomes)


def _judged(run: Run, side: str, trials: Sequence[ReplayTrial]) -> tuple[Verdict, dict[str, Any]]:
    """The verdict of a side and its document."""
    mine = [one for one in trials if one.side == side and one.started_at is not None]
    runs = [tallied(run, one) for one in mine]
    seen = _seen(run, [one for one in trials if one.side == side])
    plan = run.plan_for(side, seen)
    question = question_of(
        plan,
        next(one for one in get_args(Symptom) if one == run.replay.symptom),
        suspects=run.suspects,
        sameness=sameness(seen, run.recording.document) if seen else Sameness(),
        reference="sound" if run.replay.reference == "sound" else "faulty",
    )
    found = verdict(runs, question)
    target = run.targets[side]
    about = {"id": target.id, "name": target.name, **(as_json(seen) if seen else {})}
    return found, document(plan, runs, found, question, about)


def _seen(run: Run, trials: Sequence[ReplayTrial]) -> Observed | None:
    """The bundle before the first trial of a side; None where none was taken."""
    bundle_id = next((one.bundle_before_id for one in trials if one.bundle_before_id), None)
    if bundle_id is None:
        return None
    with reading(run.work.stores.engine) as session:
        return observe(load_bundle(session, run.work.stores.artifacts, bundle_id))


def _lines(run: Run) -> Iterator[bytes]:
    """Every outcome as a line of JSON."""
    after: replay_rows.Place | None = (0, -1)
    while after is not None:
        with reading(run.work.stores.engine) as session:
            page = replay_rows.outcomes_of(session, run.id, after=after, limit=LINES_AT_ONCE)
        yield b"".join(
            orjson.dumps(replay_rows.row_of(one, raw=True), option=orjson.OPT_APPEND_NEWLINE)
            for one in page.rows
        )
        after = page.after


def _write(
    run: Run,
    judged: Mapping[str, tuple[Verdict, dict[str, Any]]],
    trials: Sequence[ReplayTrial],
    outcomes: StoredFile,
) -> None:
    now = datetime.now(UTC)
    with writing(run.work.stores.engine) as session:
        job = attempts.held(session, run.work.attempt)
        replay = get_replay(session, run.id)
        artifact = evidence.attach(
            session,
            outcomes,
            incident_id=replay.incident_id,
            actor=CONSOLE,
            at=now,
            name=f"replay-{run.id}-outcomes.jsonl",
            kind=KIND,
            tier=TIER,
            media_type=MEDIA_TYPE,
            taken_from=f"replay {run.id}",
            covers_from=replay.started_at,
            covers_to=now,
        )
        assert artifact.id is not None
        sent = [_sent(run, side, found[1], trials, artifact.id) for side, found in judged.items()]
        word, why = _together(run, judged)
        replay.verdict, replay.why, replay.summary = word, why, _documents(judged, why)
        replay.found = replay_findings(run.id, sent).as_json()
        replay.outcomes_artifact_id = artifact.id
        replay.state, replay.finished_at, replay.says = "done", now, f"{word.capitalize()}. {why}"
        replay.version += 1
        _tell(session, run, word, replay.says, now)
        job.result = {"replay_id": run.id, "verdict": word}
        jobs.succeeded(session, job, replay.says, at=now)


def _tell(session: Session, run: Run, word: str, says: str, now: datetime) -> None:
    names = tuple(one.name for one in run.targets.values())
    told = ReplayEnded(run.id, names, word, f"Replay {run.id} to {' and '.join(names)}: {says}")
    incident_id = run.replay.incident_id
    timeline.record(session, told, incident_id=incident_id, actor=CONSOLE, at=now)
    audit.note(session, CONSOLE, "replay.end", f"replay:{run.id}", at=now, verdict=word)
    incidents.take_in(session, incident_id, at=now)


def _sent(
    run: Run,
    side: str,
    summary: Mapping[str, Any],
    trials: Sequence[ReplayTrial],
    artifact_id: int,
) -> Sent:
    deaths = [(one.number, one.died) for one in trials if one.side == side and one.died]
    return Sent(run.targets[side].name, summary, artifact_id, deaths)


def _together(run: Run, judged: Mapping[str, tuple[Verdict, dict[str, Any]]]) -> tuple[str, str]:
    """The verdict of one side, or the weightier of two with the sentence that sets them apart."""
    verdicts = {side: found[0] for side, found in judged.items()}
    if len(verdicts) == 1:
        only = verdicts["A"]
        return only.word, only.why
    word = min((one.word for one in verdicts.values()), key=_WEIGHT.index)
    names = {side: one.name for side, one in run.targets.items()}
    return word, two_sides(verdicts["A"], verdicts["B"], names["A"], names["B"])


def _documents(judged: Mapping[str, tuple[Verdict, dict[str, Any]]], why: str) -> dict[str, Any]:
    if len(judged) == 1:
        return judged["A"][1]
    return {**{side: found[1] for side, found in judged.items()}, "says": why}
