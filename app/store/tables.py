"""The schema, with ``host_tables``, ``dump_tables``, ``replay_tables``.

A test keeps ``migrations/`` equal to it.

Facts are added, not changed: timeline and audit events are never updated (a pin is a mark
on an event, not a change of it). Times are UTC. What is None is not known.
"""

from datetime import datetime
from typing import Any

from sqlalchemy import BigInteger, Index
from sqlmodel import Field, SQLModel

from app.store.columns import json_column as _json
from app.store.columns import key_column as _key
from app.store.columns import metadata
from app.store.dump_tables import Dump, DumpRequest, Upload
from app.store.host_tables import Diagnostic, DiagnosticItem, Host, TargetServer
from app.store.replay_tables import Replay, ReplayOutcome, ReplayTrial

# Given on, so that the whole schema is had from here.
__all__ = (
    "Diagnostic",
    "DiagnosticItem",
    "Dump",
    "DumpRequest",
    "Host",
    "Replay",
    "ReplayOutcome",
    "ReplayTrial",
    "TargetServer",
    "Upload",
    "metadata",
)

# Who ---------------------------------------------------------------------------------------


class User(SQLModel, table=True):
    """A person with a password and one role."""

    __tablename__ = "console_user"  # "user" is a reserved word in PostgreSQL

    id: int | None = _key()
    name: str = Field(unique=True, max_length=64)
    password_hash: str
    role: str  # reader, operator, admin
    created_at: datetime
    disabled_at: datetime | None = None


class WebSession(SQLModel, table=True):
    """A signed-in browser; only the hash of its cookie is kept."""

    __tablename__ = "web_session"

    token_hash: str = Field(primary_key=True)
    user_id: int = Field(foreign_key="console_user.id", index=True)
    created_at: datetime
    expires_at: datetime = Field(index=True)


class ApiToken(SQLModel, table=True):
    """A key for programs; only its hash is kept."""

    __tablename__ = "api_token"

    id: int | None = _key()
    name: str = Field(max_length=64)
    token_hash: str = Field(unique=True)
    role: str
    created_at: datetime
    created_by: str
    last_used_at: datetime | None = None
    revoked_at: datetime | None = None


class SetupLink(SQLModel, table=True):
    """The one-time link that makes the first admin."""

    __tablename__ = "setup_link"

    token_hash: str = Field(primary_key=True)
    created_at: datetime
    expires_at: datetime
    used_at: datetime | None = None


class LoginThrottle(SQLModel, table=True):
    """Failed sign-ins of one name or one address, so that guessing is slow on every worker."""

    __tablename__ = "login_throttle"

    subject: str = Field(primary_key=True)  # "name:<name>" or "address:<ip>"
    failures: int
    last_failed_at: datetime


class AuditEvent(SQLModel, table=True):
    """One state change: who did what to which thing."""

    __tablename__ = "audit_event"

    id: int | None = _key()
    at: datetime = Field(index=True)
    actor: str  # "user:mira", "token:bastion", "console", "cli"
    action: str  # "target.create", "share.revoke"
    subject: str  # "incident:142"
    detail: dict[str, Any] = _json()
    address: str | None = None  # where the request came from


class Idempotency(SQLModel, table=True):
    """The answer to a POST that carried an Idempotency-Key, given again for the same key."""

    actor: str = Field(primary_key=True)
    key: str = Field(primary_key=True, max_length=200)
    request_hash: str  # of method, path and body: another request under the same key is a conflict
    status: int | None = None  # None while the first request is still at work
    answer: dict[str, Any] | None = _json(nullable=True)
    created_at: datetime = Field(index=True)


# What ---------------------------------------------------------------------------------------


class Target(SQLModel, table=True):
    """A serving endpoint: base URL, engine, sealed credentials, and what was last seen there."""

    id: int | None = _key()
    name: str = Field(unique=True, max_length=120)
    base_url: str  # with path prefix, without trailing slash and userinfo
    engine: str = "auto"
    token_sealed: str | None = None
    admin_token_sealed: str | None = None
    headers_sealed: str | None = None  # extra headers, as sealed JSON: values may be secrets
    ca_pem: str | None = None  # private CA certificates, public by nature
    clean: bool = False  # serves nobody: fit for replay
    watch: bool = False
    coredump_when_wedged: bool = False
    labels: dict[str, Any] = _json()
    created_at: datetime
    updated_at: datetime
    deleted_at: datetime | None = None
    last_bundle_id: int | None = None  # the newest finished bundle of this target
    last_healthy_bundle_id: int | None = None  # what later bundles are compared with
    seen: dict[str, Any] | None = _json(
        nullable=True
    )  # of the last probe or bundle: verdict, version, model, at


class Incident(SQLModel, table=True):
    """A period in which a target did not serve as it should."""

    id: int | None = _key()  # its number
    title: str = Field(max_length=300)
    severity: str | None = None  # sev1 … sev4
    state: str = "open"  # open, acknowledged, mitigated, resolved
    problem_class: str | None = None
    problem_class_by: str | None = None  # "rules" or the person who set it
    assignee: str | None = None
    tags: list[str] = _json()
    opened_by: str
    opened_at: datetime
    started_at: datetime | None = None  # the onset, where known
    acknowledged_at: datetime | None = None
    mitigated_at: datetime | None = None
    resolved_at: datetime | None = None
    changed_at: datetime  # of the last event
    # Copied from the newest evidence so that the list needs no joins; see store/incidents.py.
    rank: int = 3  # order of the list: 0 failing, 1 unknown, 2 slow, 3 quiet, 9 resolved
    verdict: str | None = None  # health verdict of the newest bundle
    headline: dict[str, Any] | None = _json(nullable=True)  # the strongest signal, a claim
    targets_told: str = ""  # "decode-a, decode-b"
    artifact_count: int = 0

    __table_args__ = (
        Index("ix_incident_list", "rank", "state", "assignee", "id"),
        Index("ix_incident_state_changed", "state", "changed_at", "id"),
    )


class IncidentTarget(SQLModel, table=True):
    """Which targets an incident is about."""

    __tablename__ = "incident_target"

    incident_id: int = Field(foreign_key="incident.id", primary_key=True)
    target_id: int = Field(foreign_key="target.id", primary_key=True, index=True)


class TimelineEvent(SQLModel, table=True):
    """One fact about an incident, in the words of ``domain.playbook``."""

    __tablename__ = "timeline_event"

    id: int | None = _key()
    incident_id: int = Field(foreign_key="incident.id")
    kind: str  # class name of a domain.playbook event
    detail: dict[str, Any] = _json()
    actor: str  # "mira", "console", "agent gpu-14"
    occurred_at: datetime  # when it happened
    recorded_at: datetime  # when we learned of it
    system: bool = False  # folded unless asked for
    pinned_at: datetime | None = None
    pinned_by: str | None = None

    __table_args__ = (Index("ix_timeline_event_incident", "incident_id", "occurred_at", "id"),)


class Job(SQLModel, table=True):
    """One step: waiting, in the hands of a worker, or done. This row is the truth."""

    id: int | None = _key()
    key: str = Field(unique=True)  # random; names the durable workflow of the present attempt
    kind: str  # a verb of app.jobs: "collect"
    incident_id: int | None = Field(default=None, foreign_key="incident.id", index=True)
    target_id: int | None = Field(default=None, foreign_key="target.id")
    partition: str  # at most one job of a kind at a time for each: "target:7"
    arguments: dict[str, Any] = _json()
    intrusive: bool = False  # never repeated without consent
    state: str = "queued"  # queued, running, succeeded, failed, cancelled, interrupted
    requested_by: str
    created_at: datetime
    enqueued_at: datetime | None = (
        None  # handed to the durable engine; None: the outbox still has it
    )
    # Not before then. What a job owes to a target at its time is never cancelled, only done sooner.
    due_at: datetime | None = None
    started_at: datetime | None = None
    acted_at: datetime | None = None  # an intrusive step writes this before it acts
    finished_at: datetime | None = None
    cancel_requested_at: datetime | None = None
    cancel_requested_by: str | None = None
    attempts: int = 0
    worker: str | None = None
    done: int = 0  # of `total` units
    total: int | None = None
    says: str = ""  # what it is doing, or how it ended
    reason: str | None = None  # why it failed
    result: dict[str, Any] | None = _json(nullable=True)
    version: int = 0  # grows with each change; live pages follow it

    __table_args__ = (
        Index("ix_job_outbox", "state", "enqueued_at"),
        Index("ix_job_target_state", "target_id", "state"),
    )


class Worker(SQLModel, table=True):
    """Who works: a worker that stays silent is followed by another."""

    executor_id: str = Field(primary_key=True)
    started_at: datetime
    heard_at: datetime = Field(index=True)


class BundleRow(SQLModel, table=True):
    """A bundle: its captures while they land, its summary and archive when it is whole."""

    __tablename__ = "bundle"

    id: int | None = _key()
    incident_id: int | None = Field(default=None, foreign_key="incident.id", index=True)
    target_id: int | None = Field(default=None, foreign_key="target.id")
    job_id: int | None = Field(default=None, foreign_key="job.id")
    base_url: str
    state: str = "collecting"  # collecting, complete, cancelled, failed
    probe: str = "auto"
    interval_seconds: float = 10.0
    collected_at: datetime
    finished_at: datetime | None = None
    artifact_id: int | None = None
    verdict: str | None = None
    healthy: bool = False  # it served well and was collected here: later ones are compared with it
    version: str | None = None  # of the engine
    summary: dict[str, Any] | None = _json(nullable=True)  # interface §2, bundle summarize
    made_by: str = ""

    __table_args__ = (Index("ix_bundle_target", "target_id", "collected_at"),)


class CaptureRow(SQLModel, table=True):
    """One capture of a bundle, as soon as it lands; its body is a stored object."""

    __tablename__ = "capture"

    bundle_id: int = Field(foreign_key="bundle.id", primary_key=True)
    name: str = Field(primary_key=True)
    position: int  # order of asking
    path: str
    outcome: str
    status: int | None = None
    started_at: datetime | None = None
    seconds: float | None = None
    size_bytes: int = 0
    # Of the body in the object store; None when it is empty.
    sha256: str | None = Field(default=None, index=True)
    headers: dict[str, Any] = _json()
    detail: str = ""
    redacted: list[str] = _json()


class Artifact(SQLModel, table=True):
    """A stored file and its custody. The bytes lie under their hash, shared by equal files."""

    id: int | None = _key()
    incident_id: int | None = Field(default=None, foreign_key="incident.id", index=True)
    kind: str  # "bundle", "not recognised yet", …
    name: str  # as given, shown only; never a path
    sha256: str = Field(index=True)
    size_bytes: int = Field(sa_type=BigInteger)
    media_type: str = "application/octet-stream"
    tier: str = "T2"  # T0 shape, T1 redacted text, T2 raw
    taken_by: str  # who
    taken_at: datetime  # when
    taken_from: str  # from where: "target decode-a", "upload from 10.0.0.5"
    covers_from: datetime | None = None  # the time span that it is evidence of
    covers_to: datetime | None = None
    verified_at: datetime | None = None  # last time the bytes matched the hash
    damaged_at: datetime | None = None  # first time they did not
    purged_at: datetime | None = None  # the tombstone: the row stays, the bytes are gone
    purged_by: str | None = None
    purge_reason: str | None = None


class Report(SQLModel, table=True):
    """What people wrote into an incident's living report; the rest follows from the evidence."""

    incident_id: int = Field(foreign_key="incident.id", primary_key=True)
    revision: int = 0
    edits: dict[str, Any] = _json()  # {field: [{"says", "status", "evidence", "by", "at"}], …}
    updated_at: datetime
    updated_by: str


class Share(SQLModel, table=True):
    """A frozen, redacted copy of a report under a secret link."""

    id: int | None = _key()
    incident_id: int = Field(foreign_key="incident.id", index=True)
    token_hash: str = Field(unique=True)
    tier: str = "T0"
    password_hash: str | None = None
    snapshot: dict[str, Any] = _json()
    created_at: datetime
    created_by: str
    expires_at: datetime
    revoked_at: datetime | None = None
    opened_count: int = 0
    last_opened_at: datetime | None = None
