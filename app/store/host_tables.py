"""The part of the schema that speaks of hosts and of what was looked at there; see ``tables``."""

from datetime import datetime
from typing import Any

from sqlmodel import Field, SQLModel

from app.store.columns import json_column as _json
from app.store.columns import key_column as _key


class Host(SQLModel, table=True):
    """A machine with an agent, and what was last heard of it. What is None was never heard."""

    id: int | None = _key()
    name: str = Field(unique=True, max_length=120)
    agent_url: str  # "" for the agent inside this console
    agent_id: str | None = None  # None: it never answered
    key_sealed: str
    tls_fingerprint: str | None = None  # SHA-256 of the agent's certificate, 64 hex digits
    embedded: bool = False  # the machine of the console itself
    registered_by: str
    registered_at: datetime
    removed_at: datetime | None = None
    heard_at: datetime | None = None  # the last answer
    asked_at: datetime | None = None  # the last try; two workers do not ask at the same time
    problem: str | None = None  # why the last try failed
    version: str | None = None
    clock_offset_seconds: float | None = None  # its clock less ours
    info: dict[str, Any] | None = _json(nullable=True)  # protocol.messages.Info
    processes: dict[str, Any] | None = _json(nullable=True)  # protocol.messages.Processes
    processes_at: datetime | None = None
    preflight: dict[str, Any] | None = _json(nullable=True)  # protocol.messages.Preflight
    preflight_at: datetime | None = None


class TargetServer(SQLModel, table=True):
    """That a target is this server on that host: a person confirmed it."""

    __tablename__ = "target_server"

    target_id: int = Field(foreign_key="target.id", primary_key=True)
    host_id: int = Field(foreign_key="host.id", primary_key=True, index=True)
    port: int = Field(primary_key=True)  # 0: it listened on none
    server_id: str  # of the process that was confirmed; after a restart port and engine tell
    engine: str
    confirmed_by: str
    confirmed_at: datetime


class Diagnostic(SQLModel, table=True):
    """One look into processes or hosts that somebody asked for."""

    id: int | None = _key()
    incident_id: int = Field(foreign_key="incident.id", index=True)
    target_id: int | None = Field(default=None, foreign_key="target.id")
    job_id: int = Field(foreign_key="job.id", index=True)
    kind: str  # "stacks", "coredump", …
    state: str = "queued"  # queued, running, done, failed, cancelled, interrupted
    says: str = ""
    asked_by: str
    asked_at: datetime
    finished_at: datetime | None = None
    hosts: list[dict[str, Any]] = _json()  # [{"host_id", "name", "process_ids"}]
    answer: dict[str, Any] | None = _json(nullable=True)  # what is of no single process


class DiagnosticItem(SQLModel, table=True):
    """What was taken of one process or host at one moment, or why it was refused."""

    __tablename__ = "diagnostic_item"

    id: int | None = _key()
    diagnostic_id: int = Field(foreign_key="diagnostic.id", index=True)
    host_id: int | None = Field(default=None, foreign_key="host.id")
    host_name: str
    process_id: str | None = None
    pid: int | None = None
    rank: str | None = None
    sample: int | None = None  # from 1
    taken_at: datetime | None = None
    seconds: float | None = None
    mode: str | None = None
    exact: bool | None = None
    artifact_id: int | None = Field(default=None, foreign_key="artifact.id")
    state: str  # done, here-already, refused, or that of a coredump: sent, growing, complete, …
    kind: str  # of what was taken: "stacks", or of the refusal: "busy"
    says: str = ""
    fix: str | None = None
    command: str | None = None
    detail: dict[str, Any] = _json()
    fingerprint: str | None = Field(default=None, max_length=16, index=True)  # of a coredump
