"""Replays as their job leaves them in the store, with outcomes made up by a seeded chance."""

from collections.abc import Sequence
from dataclasses import asdict
from datetime import datetime, timedelta
from random import Random
from typing import Any, get_args

from app.domain.replay import aftermath, agreed, plan
from app.domain.replay.options import Options, TargetFacts
from app.domain.replay.outcomes import Outcome
from app.domain.replay.planned import Recorded
from app.domain.replay.questions import question_of
from app.domain.replay.summary import document
from app.domain.replay.symptoms import Sameness, Symptom
from app.domain.replay.tally import Tally, Trial
from app.domain.replay.verdict import Verdict, two_sides, verdict
from app.domain.replay_findings import Sent, replay_findings
from app.store import replay_rows
from app.store.database import writing
from app.store.dump_tables import Dump
from app.store.stores import Stores
from app.store.tables import Incident, Job, Replay, ReplayTrial, Target
from tests import make
from tests.replays import outcome, recorded_request

Pairs = Sequence[tuple[Outcome, Recorded]]


def outcomes(
    count: int = 500, *, dies_at: int | None = None, seed: int = 0, stops_at: int | None = None
) -> list[tuple[Outcome, Recorded]]:
    """Outcomes of *count* requests, 0.25 s apart; from *dies_at* on nothing is answered."""
    chance = Random(seed)
    end = count if stops_at is None else stops_at
    return [_pair(index, chance, dies_at) for index in range(end)]


def replay(
    stores: Stores,
    incident: Incident,
    dump: Dump,
    *targets: Target,
    trials: Sequence[Pairs] = (),
    state: str = "done",
    at: datetime = make.NOON,
    symptom: Symptom = "crash",
    **given: Any,
) -> Replay:
    """A replay of *dump* to *targets*, whose *trials* alternate between them."""
    options = given.pop("options", Options())
    count = max([len(pairs) for pairs in trials] or [500])
    made = _plan(given.pop("size", count), options)
    with writing(stores.engine) as session:
        row = Replay(
            **{
                "incident_id": incident.id,
                "artifact_id": dump.artifact_id,
                "dump_id": dump.id,
                "target_id": targets[0].id,
                "other_target_id": targets[1].id if len(targets) > 1 else None,
                "options": agreed.as_json(options),
                "symptom": symptom,
                "symptom_by": "rules",
                "trials_wanted": max(1, len(trials) // len(targets)),
                "says": f"The replay is {state}.",
                "state": state,
                "asked_by": "lin",
                "asked_at": at,
                "confirmed": [],
                "planned": len(made.schedule.slots),
                "plans": {side: plan.as_json(made) for side, _ in zip("AB", targets, strict=False)},
                **given,
            }
        )
        session.add(row)
        session.flush()
        row.total = len(made.schedule.slots) * row.trials_wanted * len(targets)
        row.job_id = _job(session, incident, row, state, at)
        told = _tell_trials(session, row, targets, trials, at)
        if trials:
            row.started_at = at
        if state == "done":
            _judge(row, targets, told, made, symptom)
            row.found = row.found or _found(row, targets, told)
            row.finished_at = at + timedelta(minutes=6)
    return row


def _pair(index: int, chance: Random, dies_at: int | None) -> tuple[Outcome, Recorded]:
    took = min(90.0, 0.3 * 10 ** Random(index).gauss(1.0, 0.45))  # the same in each trial
    due = index * 0.25
    common: dict[str, Any] = {
        "at": due + 0.002,
        "due_seconds": due,
        "lateness_ms": min(14.0, chance.expovariate(0.5)),
        "prompt_tokens": 400 + index,
        "completion_tokens": 12,
        "cached_tokens": 64,
    }
    told: dict[str, Any] = {
        "prompt_tokens": 400 + index,
        "completion_tokens": 12,
        "cached_tokens": 256,
    }
    recorded = Recorded(state="finished", e2e_seconds=took, finish_reason="stop", **told)
    again = took * 10 ** chance.gauss(0, 0.03)
    if chance.random() < 0.006:
        again *= 1.8
    dead = None if dies_at is None else dies_at * 0.25 + 0.4
    if dead is not None and (index == dies_at or due + again > dead >= due):
        unfinished = Recorded(state="unfinished", prompt_tokens=400 + index)
        lost = {**common, "completion_tokens": None, "e2e_seconds": max(0.01, dead - due - 0.002)}
        return outcome(index, "connection-reset", **lost), unfinished
    if dead is not None and due > dead:
        refused = {**common, "completion_tokens": None, "e2e_seconds": 0.001}
        return outcome(index, "connection-refused", **refused), recorded
    if index in (61, 204):
        said: dict[str, Any] = {"says": "The input is longer than the context.", "status": 400}
        failed = {**common, **said, "completion_tokens": None, "e2e_seconds": 0.02}
        return outcome(index, "bad-request", **failed), recorded
    return outcome(index, **{**common, "e2e_seconds": again}), recorded


def _plan(count: int, options: Options) -> plan.Plan:
    requests = [
        recorded_request(
            index,
            {
                "rid": f"rid-{index}",
                "input_ids": [1, 2, 3],
                "stream": True,
                "bootstrap_room": 7,
                "sampling_params": {"max_new_tokens": 100_000 if index == 5 else 64},
                "image_data": ["https://files.example/a.png"] if index == 57 else None,
            },
            at=index * 0.25,
        )
        for index in range(min(count, 1000))
    ]
    return plan.plan(requests, options, TargetFacts(version="0.5.23"))


def _job(session: Any, incident: Incident, row: Replay, state: str, at: datetime) -> int:
    kept = ("running", "interrupted", "cancelled", "failed")
    states = {"waiting": "queued", "planning": "running", **{one: one for one in kept}}
    job = Job(
        key=f"replay {row.id}",
        kind="replay",
        incident_id=incident.id,
        target_id=row.target_id,
        partition=f"replay:{row.target_id}",
        arguments={"replay_id": row.id, "send": state != "planned"},
        intrusive=state != "planned",
        state=states.get(state, "succeeded"),
        reason="The worker went away in the middle of it." if state == "interrupted" else None,
        requested_by="lin",
        created_at=at,
        started_at=at,
    )
    session.add(job)
    session.flush()
    assert job.id is not None
    return job.id


def _tell_trials(
    session: Any, row: Replay, targets: Sequence[Target], trials: Sequence[Pairs], at: datetime
) -> list[Trial]:
    assert row.id is not None
    told = []
    for number, pairs in enumerate(trials, 1):
        side = (number - 1) % len(targets)
        replay_rows.put_outcomes(session, row.id, number, pairs)
        tally = Tally(row.planned or 0)
        for one, recorded in pairs:
            tally.see(one, recorded)
        cut = any(one.error == "connection-refused" for one, _ in pairs)
        last = row.state != "done" and number == len(trials)
        trial = tally.trial(up_before=True, after="down" if cut else "unknown" if last else "up")
        told.append(trial)
        state = {"running": "running", "done": "done"}.get(row.state, "stopped") if last else "done"
        session.add(_trial_row(row, number, "AB"[side], targets[side], trial, state, at))
        row.sent += trial.sent
        row.completed += trial.completed
        row.failed += trial.sent - trial.completed
    return told


def _trial_row(  # noqa: PLR0917
    row: Replay,
    number: int,
    side: str,
    target: Target,
    trial: Trial,
    state: str,
    at: datetime,
) -> ReplayTrial:
    died = {**asdict(trial.died), "says": trial.died.says} if trial.died else None
    return ReplayTrial(
        replay_id=row.id or 0,
        number=number,
        side=side,
        target_id=target.id or 0,
        state=state,
        started_at=at,
        finished_at=None if state == "running" else at + timedelta(minutes=2),
        planned=row.planned,
        sent=trial.sent,
        completed=trial.completed,
        failed=trial.sent - trial.completed,
        errors={one.error: one.count for one in trial.failures},
        reached=True,
        after=trial.after,
        died=died,
        recipe=aftermath.recipe("0.5.23", {"enable_metrics": True}) if died else None,
        lateness_ms=None if state == "running" else trial.lateness_ms,
    )


def _found(
    row: Replay, targets: Sequence[Target], trials: Sequence[Trial]
) -> dict[str, Any] | None:
    """What it claims of its incident; the outcomes are told by the dump, as no file is made."""
    if not row.summary or row.id is None:
        return None
    sides = []
    for place, target in enumerate(targets):
        document = row.summary if len(targets) == 1 else row.summary["AB"[place]]
        deaths = [
            (number, {**asdict(one.died), "says": one.died.says})
            for number, one in enumerate(trials, 1)
            if one.died and (number - 1) % len(targets) == place
        ]
        sides.append(Sent(target.name, document, row.artifact_id, deaths))
    return replay_findings(row.id, sides).as_json()


def _judge(
    row: Replay,
    targets: Sequence[Target],
    trials: Sequence[Trial],
    made: plan.Plan,
    symptom: Symptom,
) -> None:
    looked_for = next(one for one in get_args(Symptom) if one == symptom)
    question = question_of(made, looked_for, suspects=frozenset(), sameness=Sameness())
    found: dict[str, tuple[Verdict, dict[str, Any]]] = {}
    for place, target in enumerate(targets):
        mine = trials[place :: len(targets)]
        judged = verdict(mine, question)
        about = {"id": target.id, "name": target.name, "version": "0.5.23"}
        found["AB"[place]] = (judged, document(made, mine, judged, question, about))
    a = found["A"][0]
    row.verdict, row.why, row.summary = a.word, a.why, found["A"][1]
    if len(targets) > 1:
        b = found["B"][0]
        row.why = two_sides(a, b, targets[0].name, targets[1].name)
        row.verdict = next((one.word for one in (a, b) if "not" not in one.word), a.word)
        row.summary = {**{side: one[1] for side, one in found.items()}, "says": row.why}
