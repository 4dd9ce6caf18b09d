"""The part of the schema that speaks of replays, their trials and how each request went.

See ``tables``. An outcome holds figures and the target's own words of a failure, no text of
anybody's prompt or answer.
"""

from datetime import datetime
from typing import Any

from sqlalchemy import BigInteger, Column, Index, UniqueConstraint
from sqlmodel import Field, SQLModel

from app.store.columns import json_column as _json
from app.store.columns import key_column as _key


def _big() -> Any:  # noqa: ANN401
    return Field(default=None, sa_column=Column(BigInteger))


class Replay(SQLModel, table=True):
    """Recorded requests sent again, to one target or to two that are compared."""

    id: int | None = _key()
    incident_id: int = Field(foreign_key="incident.id", index=True)
    artifact_id: int = Field(foreign_key="artifact.id")  # the file that the requests come from
    dump_id: int | None = Field(default=None, foreign_key="dump.id", index=True)
    # Of the present attempt; looking first and sending then are two jobs.
    job_id: int | None = Field(default=None, foreign_key="job.id", index=True)
    target_id: int = Field(foreign_key="target.id", index=True)  # side A
    other_target_id: int | None = Field(default=None, foreign_key="target.id")  # side B
    selection: str = ""  # as it was typed; empty: all
    options: dict[str, Any] = _json()  # see ``replays.read_options``
    symptom: str
    symptom_by: str  # "rules" or the person who chose it
    trials_wanted: int = 1  # of each side
    request_seconds: float = 600.0  # from when one is sent to its end
    reference: str = "faulty"  # the recording: of the incident, or "sound": of a good server
    # waiting, planning, planned (looked at, not sent), running, done, refused (before the first
    # request), failed, cancelled, interrupted.
    state: str = "waiting"
    says: str = ""
    asked_by: str
    asked_at: datetime
    confirmed: list[dict[str, Any]] = _json()  # {"target_id", "name", "why", "by", "at"}
    started_at: datetime | None = None  # of the first request
    finished_at: datetime | None = None
    planned: int | None = None  # requests of one trial
    total: int | None = None  # of all trials
    sent: int = 0  # counted here, so that no page counts a hundred thousand rows
    completed: int = 0
    failed: int = 0
    plans: dict[str, Any] | None = _json(nullable=True)  # by side: what is stripped, left out
    verdict: str | None = None
    why: str | None = None
    summary: dict[str, Any] | None = _json(nullable=True)  # replay --json; of two: {"A", "B"}
    found: dict[str, Any] | None = _json(nullable=True)  # what the incident takes in
    outcomes_artifact_id: int | None = Field(default=None, foreign_key="artifact.id")
    version: int = 0  # grows with each change


class ReplayTrial(SQLModel, table=True):
    """One run of the requests against one target."""

    __tablename__ = "replay_trial"

    id: int | None = _key()
    replay_id: int = Field(foreign_key="replay.id")
    number: int  # from 1, in the order of running; two sides alternate
    side: str = "A"
    target_id: int = Field(foreign_key="target.id")
    state: str = "waiting"  # waiting, running, done, stopped (cancelled or cut off)
    started_at: datetime | None = None
    finished_at: datetime | None = None
    planned: int | None = None
    sent: int = 0
    completed: int = 0
    failed: int = 0
    errors: dict[str, Any] = _json()  # {class: count}
    reached: bool = False  # seen alive before its first request
    after: str = "unknown"  # up, wedged, down: how it was found at the end
    resumed: int = 0  # how often it went on after it was cut off: its load has gaps then
    bundle_before_id: int | None = Field(default=None, foreign_key="bundle.id")
    bundle_during_id: int | None = Field(default=None, foreign_key="bundle.id")
    bundle_after_id: int | None = Field(default=None, foreign_key="bundle.id")
    strangers: dict[str, Any] | None = _json(nullable=True)  # what its loads told before
    absences: list[dict[str, Any]] | None = _json(nullable=True)  # when it was knocked at in vain
    died: dict[str, Any] | None = _json(nullable=True)  # when, after which, who was in flight
    recipe: dict[str, Any] | None = _json(nullable=True)  # of a start that leaves evidence
    lateness_ms: dict[str, Any] | None = _json(nullable=True)
    says: str = ""

    __table_args__ = (UniqueConstraint("replay_id", "number"),)


class ReplayOutcome(SQLModel, table=True):
    """How one request of one trial went, and how it went when it was recorded."""

    __tablename__ = "replay_outcome"

    replay_id: int = Field(foreign_key="replay.id", primary_key=True)
    trial: int = Field(primary_key=True)  # its number
    position: int = Field(primary_key=True, sa_type=BigInteger)  # "index" of the request
    state: str  # completed, failed, not sent
    error: str | None = None
    rid: str | None = None
    status: int | None = None
    says: str | None = None
    sent_at: float | None = None  # epoch seconds
    due_seconds: float
    lateness_ms: float | None = None
    lag_ms: float | None = None
    ttft_seconds: float | None = None
    e2e_seconds: float | None = None
    prompt_tokens: int | None = _big()
    completion_tokens: int | None = _big()
    cached_tokens: int | None = _big()
    finish_reason: str | None = None
    output_characters: int | None = _big()
    output_hash: str | None = None
    inter_token_p50_ms: float | None = None
    inter_token_p99_ms: float | None = None
    frames: int = 0
    compared_tokens: int = 0
    first_divergent_token: int | None = None
    logprob_gap: float | None = None
    recorded_state: str | None = None
    recorded_prompt_tokens: int | None = _big()
    recorded_completion_tokens: int | None = _big()
    recorded_cached_tokens: int | None = _big()
    recorded_ttft_seconds: float | None = None
    recorded_e2e_seconds: float | None = None
    recorded_finish_reason: str | None = None
    recorded_greedy: bool | None = None

    __table_args__ = (
        Index("ix_replay_outcome_state", "replay_id", "state", "trial", "position"),
        Index("ix_replay_outcome_error", "replay_id", "error", "trial", "position"),
    )
