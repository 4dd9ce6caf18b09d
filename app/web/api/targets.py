"""API: targets. Secrets go in and never come out: an answer only says that there is one."""

from datetime import datetime
from typing import Annotated, Any, Self, cast

from fastapi import APIRouter
from pydantic import BaseModel, ConfigDict, Field
from sqlmodel import Session

from app.errors import Malformed
from app.protocol.messages import ProcessId
from app.store.tables import Target
from app.store.target_servers import LinkedServer, servers_of
from app.store.targets import Changes, NewTarget, get_target, list_targets
from app.web import paging
from app.web.connection_check import check_and_note, told
from app.web.dependencies import AppStores, Now, Operator, Reader, Reading, demand
from app.web.idempotency import IdempotentRoute
from app.web.registering import AtLinks, AtTargets

router = APIRouter(prefix="/api/v1", tags=["targets"], route_class=IdempotentRoute)

Secret = Annotated[str, Field(max_length=4096)]
Headers = Annotated[dict[str, Annotated[str, Field(max_length=4096)]], Field(max_length=50)]
Labels = Annotated[dict[str, Annotated[str, Field(max_length=200)]], Field(max_length=50)]
Name = Annotated[str, Field(min_length=1, max_length=120)]
Url = Annotated[str, Field(max_length=2048)]
Pem = Annotated[str, Field(max_length=200_000, description="PEM text of a private CA.")]


class ServerIn(BaseModel):
    """A server that a target is, as ``/hosts/{id}/processes`` names it."""

    model_config = ConfigDict(extra="forbid")

    host_id: Annotated[int, Field(ge=1, lt=2**63)]
    server_id: ProcessId


Servers = Annotated[list[ServerIn], Field(max_length=256)]


class TargetIn(BaseModel):
    """A target to register. Tokens, header values and the CA are never given back."""

    model_config = ConfigDict(extra="forbid")

    name: Name
    base_url: Url
    engine: Annotated[str, Field(max_length=40)] = "auto"
    token: Secret | None = None
    admin_token: Secret | None = None
    headers: Headers = {}
    ca_file: Pem | None = None
    clean: bool = False
    watch: bool = False
    coredump_when_wedged: bool = False
    labels: Labels = {}
    servers: Servers = []

    def as_new(self) -> NewTarget:
        given = self.model_dump(exclude={"ca_file", "servers"})
        return NewTarget(ca_pem=self.ca_file, **given)


class TargetChanges(BaseModel):
    """What to set; a field that is not sent stays, a secret sent as null is removed."""

    model_config = ConfigDict(extra="forbid")

    name: Name | None = None
    base_url: Url | None = None
    engine: Annotated[str, Field(max_length=40)] | None = None
    token: Secret | None = None
    admin_token: Secret | None = None
    headers: Headers | None = None
    ca_file: Pem | None = None
    clean: bool | None = None
    watch: bool | None = None
    coredump_when_wedged: bool | None = None
    labels: Labels | None = None
    servers: Servers | None = None

    def as_changes(self) -> Changes:
        """Only what was sent; raises Malformed for null where a value is needed."""
        sent: dict[str, Any] = self.model_dump(exclude_unset=True, exclude={"servers"})
        removable = {"token", "admin_token", "ca_file", "headers"}
        if empty := sorted(name for name in sent if sent[name] is None and name not in removable):
            raise Malformed(f"{', '.join(empty)} cannot be null.", fix="Leave it out to keep it.")
        if "ca_file" in sent:
            sent["ca_pem"] = sent.pop("ca_file")
        if "headers" in sent:
            sent["headers"] = sent["headers"] or {}
        return cast("Changes", sent)


class ServerOut(BaseModel):
    """A confirmed link. ``server`` null: what it leads to now is not known, ``says`` tells why."""

    host_id: int
    host: str
    port: int
    engine: str
    server_id: str | None
    says: str
    confirmed_by: str
    confirmed_at: datetime

    @classmethod
    def of(cls, linked: LinkedServer) -> Self:
        link = linked.link
        return cls(
            host_id=link.host_id,
            host=linked.host.name,
            port=link.port,
            engine=link.engine,
            server_id=linked.server.id if linked.server else None,
            says=linked.says,
            confirmed_by=link.confirmed_by,
            confirmed_at=link.confirmed_at,
        )


class TargetOut(BaseModel):
    """A target. ``seen`` is what the last bundle and the last check of the connection found."""

    model_config = ConfigDict(from_attributes=True)

    id: int
    name: str
    base_url: str
    engine: str
    has_token: bool
    has_admin_token: bool
    has_headers: bool
    has_ca: bool
    clean: bool
    watch: bool
    coredump_when_wedged: bool
    labels: dict[str, Any]
    seen: dict[str, Any] | None
    last_bundle_id: int | None
    last_healthy_bundle_id: int | None
    created_at: datetime
    updated_at: datetime
    deleted_at: datetime | None
    servers: list[ServerOut]

    @classmethod
    def of(cls, session: Session, target: Target) -> Self:
        kept = {name: getattr(target, name) for name in Target.model_fields}
        return cls.model_validate(
            {
                **kept,
                "has_token": target.token_sealed is not None,
                "has_admin_token": target.admin_token_sealed is not None,
                "has_headers": target.headers_sealed is not None,
                "has_ca": target.ca_pem is not None,
                "servers": [ServerOut.of(one) for one in servers_of(session, target)],
            }
        )


class TargetsOut(BaseModel):
    """A page of targets, in the order of their ids."""

    items: list[TargetOut]
    next_cursor: str | None


class CheckOut(BaseModel):
    """How one GET of ``/model_info`` ended. It says nothing about health."""

    outcome: str
    status: int | None
    seconds: float | None
    says: str
    answers: bool


@router.get("/targets")
def read_targets(
    session: Reading, actor: Reader, limit: paging.Limit = 50, cursor: paging.Cursor = None
) -> TargetsOut:
    found = list_targets(session, limit=limit + 1, after_id=paging.number(cursor) or 0)
    more = len(found) > limit
    return TargetsOut(
        items=[TargetOut.of(session, one) for one in found[:limit]],
        next_cursor=paging.encode([found[limit - 1].id]) if more else None,
    )


@router.post("/targets", status_code=201)
def register_target(admin: AtTargets, new: TargetIn) -> TargetOut:
    target = admin.register(new.as_new())
    admin.link(target, _pairs(new.servers))
    return TargetOut.of(admin.session, target)


@router.get("/targets/{target_id}")
def read_target(target_id: int, session: Reading, actor: Reader) -> TargetOut:
    return TargetOut.of(session, get_target(session, target_id))


@router.patch("/targets/{target_id}")
def change_target(target_id: int, at: AtLinks, changes: TargetChanges) -> TargetOut:
    """An operator may send ``servers`` alone; everything else is for an admin."""
    if changes.model_fields_set != {"servers"}:
        demand(at.actor, "admin")
    target = at.change(target_id, changes.as_changes())
    if changes.servers is not None:
        at.link(target, _pairs(changes.servers))
    return TargetOut.of(at.session, target)


@router.delete("/targets/{target_id}", status_code=204)
def delete_target(target_id: int, admin: AtTargets) -> None:
    """Take it off the lists and forget its secrets; 409 while a job is at work on it."""
    admin.delete(target_id)


@router.post("/targets/{target_id}/probe")
async def check_target(target_id: int, stores: AppStores, actor: Operator, now: Now) -> CheckOut:
    """Ask ``/model_info`` once: whether the address and the token are right. Generates nothing."""
    capture = await check_and_note(stores, target_id, now)
    return CheckOut(
        outcome=capture.outcome.value,
        status=capture.status,
        seconds=capture.seconds,
        says=told(capture),
        answers=capture.ok,
    )


def _pairs(servers: list[ServerIn]) -> list[tuple[int, str]]:
    return [(one.host_id, one.server_id) for one in servers]
