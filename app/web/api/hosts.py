"""API: hosts and what runs there. A key goes in and never comes out."""

from datetime import datetime
from typing import Annotated, Any

from fastapi import APIRouter
from pydantic import BaseModel, ConfigDict, Field

from app.protocol.messages import Preflight, Processes
from app.store import live
from app.store.hosts import NewHost, get_host, list_hosts, register_host, remove_host
from app.web.dependencies import Admin, AppStores, Now, Reader, Reading, Writing
from app.web.idempotency import IdempotentRoute

router = APIRouter(prefix="/api/v1", tags=["hosts"], route_class=IdempotentRoute)


class HostIn(BaseModel):
    """A host to register, as ``incident-console agent`` prints it. The key is never given back."""

    model_config = ConfigDict(extra="forbid")

    name: Annotated[str, Field(min_length=1, max_length=120)]
    agent_url: Annotated[str, Field(max_length=2048)]
    key: Annotated[str, Field(max_length=200, description="64 hexadecimal digits.")]
    tls_fingerprint: Annotated[str, Field(max_length=200)] | None = None

    def as_new(self) -> NewHost:
        return NewHost(self.name, self.agent_url, self.key, self.tls_fingerprint)


class HostOut(BaseModel):
    """A host. What is null was never heard; ``problem``: why the last try failed."""

    model_config = ConfigDict(from_attributes=True)

    id: int
    name: str
    agent_url: str
    agent_id: str | None
    tls_fingerprint: str | None
    embedded: bool
    registered_by: str
    registered_at: datetime
    removed_at: datetime | None
    heard_at: datetime | None
    asked_at: datetime | None
    problem: str | None
    version: str | None
    clock_offset_seconds: float | None
    info: dict[str, Any] | None
    processes_at: datetime | None
    preflight_at: datetime | None


class HostsOut(BaseModel):
    """Registered hosts, by name."""

    items: list[HostOut]
    next_cursor: None = None


class ProcessesOut(Processes):
    """Servers of a host. ``problem`` null: told just now; otherwise the last that is known."""

    heard_at: datetime
    age_seconds: float
    problem: str | None


class PreflightOut(Preflight):
    """What can be captured there. ``problem`` null: told just now; else the last that is known."""

    heard_at: datetime
    age_seconds: float
    problem: str | None


@router.get("/hosts")
def read_hosts(session: Reading, actor: Reader) -> HostsOut:
    return HostsOut(items=[HostOut.model_validate(host) for host in list_hosts(session)])


@router.post("/hosts", status_code=201)
def register(session: Writing, stores: AppStores, actor: Admin, now: Now, new: HostIn) -> HostOut:
    """It is asked for the first time a few seconds later."""
    host = register_host(session, new.as_new(), vault=stores.vault, actor=actor, at=now)
    return HostOut.model_validate(host)


@router.get("/hosts/{host_id}")
def read_host(host_id: int, session: Reading, actor: Reader) -> HostOut:
    return HostOut.model_validate(get_host(session, host_id))


@router.delete("/hosts/{host_id}", status_code=204)
def remove(host_id: int, session: Writing, actor: Admin, now: Now) -> None:
    """Forget its key and its links to targets; what was taken there stays."""
    remove_host(session, get_host(session, host_id), actor, now)


@router.get("/hosts/{host_id}/processes")
def read_processes(host_id: int, stores: AppStores, actor: Reader, now: Now) -> ProcessesOut:
    """Asked right now where the agent can be reached."""
    heard = live.processes(stores, host_id, actor)
    return ProcessesOut(**heard.told.model_dump(), **_age(heard, now))


@router.get("/hosts/{host_id}/preflight")
def read_preflight(host_id: int, stores: AppStores, actor: Reader, now: Now) -> PreflightOut:
    """Asked right now where the agent can be reached."""
    heard = live.preflight(stores, host_id, actor)
    return PreflightOut(**heard.told.model_dump(), **_age(heard, now))


def _age(heard: live.Heard[Any], now: datetime) -> dict[str, Any]:
    age_seconds = max(0.0, (now - heard.at).total_seconds())
    return {"heard_at": heard.at, "age_seconds": age_seconds, "problem": heard.problem}
