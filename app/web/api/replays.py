"""API: replays: asked for under their guards, read, stopped, and gone on with by a person."""

from dataclasses import replace
from datetime import datetime
from typing import Annotated, Any, Literal

import orjson
from fastapi import APIRouter, Query
from pydantic import BaseModel, ConfigDict, Field

from app.domain.replay.agreed import MOST_TRIALS
from app.domain.replay.options import Options, Window
from app.domain.replay.outcomes import ErrorClass
from app.errors import Malformed, Rejected
from app.store import replay_rows, replays
from app.store.audit import Actor
from app.store.database import writing
from app.store.incidents import get_incident
from app.store.payloads import save_payload
from app.store.replay_rows import Place, Wanted
from app.store.stores import Stores
from app.web import paging
from app.web.api.jobs import JobOut
from app.web.dependencies import AppStores, Now, Operator, Reader, Reading, Writing
from app.web.idempotency import IdempotentRoute
from app.web.replay_asked import AskedReplay

router = APIRouter(prefix="/api/v1", tags=["replays"], route_class=IdempotentRoute)

_LARGEST = 2**63  # beyond it a database cannot look
Name = Annotated[str, Field(max_length=replays.LONGEST_TYPED)]
Endpoint = Literal["/generate", "/v1/chat/completions", "/v1/completions", "/encode"]


class WindowIn(BaseModel):
    """A stretch of the recording, in seconds after its first arrival; the end is not in it."""

    model_config = ConfigDict(extra="forbid")

    from_seconds: float = 0.0
    until_seconds: float | None = None


class TypedIn(BaseModel):
    """Names of targets, typed by a person who knows that they may go down; true names none."""

    model_config = ConfigDict(extra="forbid")

    confirm: Name | Annotated[list[Name], Field(max_length=4)] | bool | None = None

    @property
    def typed(self) -> tuple[str, ...]:
        if isinstance(self.confirm, list):
            return tuple(self.confirm)
        return (self.confirm,) if isinstance(self.confirm, str) else ()


class ReplayIn(TypedIn, AskedReplay):
    """Requests by ``dump_id``, ``artifact_id`` or ``payload``, one of the three.

    ``other_target_id``: the same to a second target, trials alternating. ``symptom`` null: by the
    class of the incident. ``allow``: what is otherwise taken out. ``preview``: nothing is sent
    before ``start``. ``reference``: what was recorded, the fault itself or a good server.
    ``same_setup``: your word that the target has the model, topology and accelerator of the
    recording, which tells no accelerator; without it latency is not compared.
    """

    dump_id: int | None = None
    artifact_id: int | None = None
    payload: dict[str, Any] | None = None
    endpoint: Endpoint | None = Field(default=None, description="Of the payload.")
    target_id: int
    other_target_id: int | None = None
    select: str | None = Field(default=None, max_length=200_000)
    window: WindowIn = WindowIn()
    seed: int = Field(default=0, ge=0, lt=_LARGEST)
    cut_gaps_to_seconds: float | None = None
    preview: bool = False

    @property
    def options(self) -> Options:
        window = Window(self.window.from_seconds, self.window.until_seconds)
        return self.options_in(window, cut_gaps_to_seconds=self.cut_gaps_to_seconds, seed=self.seed)


class ReplayOut(BaseModel):
    """A replay. ``planned`` requests of each trial; ``total`` of all; null: not known yet."""

    model_config = ConfigDict(from_attributes=True)

    id: int
    incident_id: int
    artifact_id: int
    dump_id: int | None
    job_id: int | None
    target_id: int
    other_target_id: int | None
    selection: str
    options: dict[str, Any]
    symptom: str
    symptom_by: str
    reference: str
    trials_wanted: int
    request_seconds: float
    state: str
    says: str
    asked_by: str
    asked_at: datetime
    confirmed: list[dict[str, Any]]
    started_at: datetime | None
    finished_at: datetime | None
    planned: int | None
    total: int | None
    sent: int
    completed: int
    failed: int
    verdict: str | None
    why: str | None
    outcomes_artifact_id: int | None
    version: int


class TrialOut(BaseModel):
    """One run against one target. ``died`` and ``recipe`` only where the target went away."""

    model_config = ConfigDict(from_attributes=True)

    number: int
    side: str
    target_id: int
    state: str
    started_at: datetime | None
    finished_at: datetime | None
    planned: int | None
    sent: int
    completed: int
    failed: int
    errors: dict[str, int]
    after: str
    resumed: int
    bundle_before_id: int | None
    bundle_during_id: int | None
    bundle_after_id: int | None
    strangers: dict[str, Any] | None
    died: dict[str, Any] | None
    recipe: dict[str, Any] | None
    lateness_ms: dict[str, Any] | None
    says: str


class ReplayDocument(ReplayOut):
    """With its trials, what is sent (``plans``, by side) and the document of ``replay --json``."""

    trials: list[TrialOut] = []
    plans: dict[str, Any] | None = None
    summary: dict[str, Any] | None = None


class ReplayAsked(BaseModel):
    """The job that does it."""

    job: JobOut
    replay: ReplayOut


class ReplaysOut(BaseModel):
    """The replays of one incident, newest first."""

    items: list[ReplayOut]
    next_cursor: None = None


class OutcomesOut(BaseModel):
    """A page of outcomes by trial and index, each as a line of ``replay --out``."""

    items: list[dict[str, Any]]
    next_cursor: str | None


class OutcomesAsked(BaseModel):
    """Which outcomes."""

    model_config = ConfigDict(extra="forbid")

    trial: int | None = Field(default=None, ge=1, le=2 * MOST_TRIALS)
    state: replay_rows.State | None = None
    error: ErrorClass | None = None
    limit: int = Field(default=50, ge=1, le=paging.MAX_LIMIT, description="At most so many items.")
    cursor: str | None = Field(
        default=None, max_length=400, description="next_cursor of the page before."
    )


@router.get("/incidents/{incident_id}/replays")
def list_replays(incident_id: int, session: Reading, actor: Reader) -> ReplaysOut:
    get_incident(session, incident_id)
    found = replays.replays_of(session, incident_id)
    return ReplaysOut(items=[ReplayOut.model_validate(one) for one in found])


@router.post("/incidents/{incident_id}/replays", status_code=202)
def ask(
    incident_id: int, asked: ReplayIn, stores: AppStores, actor: Operator, now: Now
) -> ReplayAsked:
    """409 where a target is not clean and its name was not typed, and where one is at work on it.

    Others in the loads of a target stop a replay before its first request; nothing overrides that.
    """
    artifact_id = _kept(stores, incident_id, asked, actor, now)
    new = replace(
        asked.new_replay(incident_id, asked.target_id, asked.options),
        dump_id=asked.dump_id,
        artifact_id=artifact_id,
        other_target_id=asked.other_target_id,
        select=asked.select or "",
        typed=asked.typed,
        send=not asked.preview,
    )
    with writing(stores.engine) as session:
        job, replay = replays.request_replay(session, stores, new, actor=actor, at=now)
    return ReplayAsked(job=JobOut.model_validate(job), replay=ReplayOut.model_validate(replay))


@router.get("/replays/{replay_id}")
def read(replay_id: int, session: Reading, actor: Reader) -> ReplayDocument:
    replay = replays.get_replay(session, replay_id)
    trials = replays.trials_of(session, replay_id)
    return ReplayDocument(
        **ReplayOut.model_validate(replay).model_dump(),
        trials=[TrialOut.model_validate(one) for one in trials],
        plans=replay.plans,
        summary=replay.summary,
    )


@router.get("/replays/{replay_id}/outcomes")
def list_outcomes(
    replay_id: int, asked: Annotated[OutcomesAsked, Query()], session: Reading, actor: Reader
) -> OutcomesOut:
    replays.get_replay(session, replay_id)
    page = replay_rows.outcomes_of(
        session,
        replay_id,
        Wanted(asked.trial, asked.state, asked.error),
        after=_place(asked.cursor),
        limit=asked.limit,
    )
    return OutcomesOut(
        items=[replay_rows.row_of(one) for one in page.rows],
        next_cursor=paging.encode(page.after) if page.after else None,
    )


@router.post("/replays/{replay_id}/start", status_code=202)
def start(
    replay_id: int, asked: TypedIn, session: Writing, stores: AppStores, actor: Operator, now: Now
) -> ReplayAsked:
    """Send what was only looked at so far, or what a guard held back before the first request."""
    replay = replays.get_replay(session, replay_id)
    job = replays.start_replay(session, stores, replay, asked.typed, actor=actor, at=now)
    return ReplayAsked(job=JobOut.model_validate(job), replay=ReplayOut.model_validate(replay))


@router.post("/replays/{replay_id}/cancel", status_code=202)
def cancel(replay_id: int, session: Writing, actor: Operator, now: Now) -> ReplayAsked:
    """Stop it within a second; what was measured stays."""
    replay = replays.get_replay(session, replay_id)
    job = replays.cancel_replay(session, replay, actor=actor, at=now)
    return ReplayAsked(job=JobOut.model_validate(job), replay=ReplayOut.model_validate(replay))


@router.post("/replays/{replay_id}/resume", status_code=202)
def resume(
    replay_id: int, asked: TypedIn, session: Writing, stores: AppStores, actor: Operator, now: Now
) -> ReplayAsked:
    """Go on where it stopped. What was in flight then is sent once more, what was answered not."""
    replay = replays.get_replay(session, replay_id)
    job = replays.resume_replay(session, stores, replay, asked.typed, actor=actor, at=now)
    return ReplayAsked(job=JobOut.model_validate(job), replay=ReplayOut.model_validate(replay))


def _kept(
    stores: Stores, incident_id: int, asked: ReplayIn, actor: Actor, now: datetime
) -> int | None:
    """The artifact that is named, or that a payload became; equal payloads are one."""
    named = (asked.dump_id, asked.artifact_id, asked.payload)
    if sum(one is not None for one in named) != 1:
        raise Rejected("Name the requests by dump_id, artifact_id or payload, one of the three.")
    if asked.payload is None:
        return asked.artifact_id
    text = orjson.dumps(asked.payload).decode()
    taken, _ = save_payload(
        stores, text, asked.endpoint, incident_id=incident_id, actor=actor, at=now
    )
    return taken.artifact_id


def _place(cursor: str | None) -> Place | None:
    match paging.decode(cursor) if cursor else None:
        case None:
            return None
        case (int() as trial, int() as index) if 0 <= trial < _LARGEST and 0 <= index < _LARGEST:
            return trial, index
    raise Malformed("The cursor is not one of ours.", fix="Start again without a cursor.")
