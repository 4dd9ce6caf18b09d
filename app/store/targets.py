"""Targets: registering, changing and reading them; their credentials are sealed at rest."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any, TypedDict

import orjson
from sqlmodel import Session, col, select

from app.clients.addresses import check_url
from app.clients.target import TargetAddress
from app.domain.urgency import Summary, verdict_of
from app.errors import Conflict, NotFound, Rejected
from app.settings import Settings
from app.store import audit
from app.store.audit import Actor
from app.store.tables import BundleRow, Job, Target
from app.store.vault import Vault

LARGEST_ID = 2**63  # beyond it a database cannot look
NAME_MAX_LENGTH = 120
UNFINISHED = ("queued", "running")
PEM_HEAD = "-----BEGIN CERTIFICATE-----"


@dataclass(frozen=True, slots=True)
class NewTarget:
    """A target as it is registered; secrets in the clear, sealed before they are stored."""

    name: str
    base_url: str
    engine: str = "auto"
    token: str | None = None
    admin_token: str | None = None
    headers: Mapping[str, str] = field(default_factory=dict)
    ca_pem: str | None = None
    clean: bool = False
    watch: bool = False
    coredump_when_wedged: bool = False
    labels: Mapping[str, str] = field(default_factory=dict)


class Changes(TypedDict, total=False):
    """What to set; a field that is absent stays, a secret given as None is removed."""

    name: str
    base_url: str
    engine: str
    token: str | None
    admin_token: str | None
    headers: dict[str, str]
    ca_pem: str | None
    clean: bool
    watch: bool
    coredump_when_wedged: bool
    labels: dict[str, str]


def get_target(session: Session, target_id: int) -> Target:
    """The target of that number, a deleted one too, as old incidents speak of it."""
    target = session.get(Target, target_id) if target_id < LARGEST_ID else None
    if target is None:
        raise NotFound(f"There is no target {target_id}.")
    return target


def list_targets(session: Session, *, limit: int = 1000, after_id: int = 0) -> Sequence[Target]:
    """Registered targets in the order of their numbers, those deleted left out."""
    query = select(Target).where(col(Target.deleted_at).is_(None), col(Target.id) > after_id)
    return session.exec(query.order_by(col(Target.id)).limit(limit)).all()


def bundles_of_target(session: Session, target_id: int, *, limit: int) -> Sequence[BundleRow]:
    """The newest bundles of a target, unfinished ones included."""
    query = select(BundleRow).where(BundleRow.target_id == target_id)
    newest = query.order_by(col(BundleRow.collected_at).desc(), col(BundleRow.id).desc())
    return session.exec(newest.limit(limit)).all()


def register_target(
    session: Session, new: NewTarget, *, vault: Vault, actor: Actor, at: datetime
) -> Target:
    """The new target; raises Rejected for an address that may not be asked, Conflict for a name."""
    target = Target(
        name=_free_name(session, new.name),
        base_url=_check_address(new),
        engine=new.engine,
        token_sealed=_sealed(vault, new.token),
        admin_token_sealed=_sealed(vault, new.admin_token),
        headers_sealed=_sealed_headers(vault, new.headers),
        ca_pem=_pem(new.ca_pem),
        clean=new.clean,
        watch=new.watch,
        coredump_when_wedged=new.coredump_when_wedged,
        labels=dict(new.labels),
        created_at=at,
        updated_at=at,
    )
    session.add(target)
    session.flush()
    audit.note(
        session,
        actor,
        "target.create",
        f"target:{target.id}",
        at=at,
        name=target.name,
        base_url=target.base_url,
    )
    return target


def change_target(
    session: Session,
    target: Target,
    changes: Changes,
    *,
    vault: Vault,
    actor: Actor,
    at: datetime,
) -> None:
    """Set what *changes* names; the audit log learns which fields, never a secret."""
    refuse_deleted(target)
    stored = _as_stored(session, target, changes, vault=vault)
    changed = sorted(name for name, value in stored.items() if getattr(target, name) != value)
    for name in changed:
        setattr(target, name, stored[name])
    if not changed:
        return
    target.updated_at = at
    fields = [name.removesuffix("_sealed") for name in changed]
    audit.note(session, actor, "target.change", f"target:{target.id}", at=at, fields=fields)


def delete_target(session: Session, target: Target, *, actor: Actor, at: datetime) -> None:
    """Take the target off the lists and forget its secrets; raises Conflict while a job runs."""
    refuse_deleted(target)
    running = select(Job.id).where(Job.target_id == target.id, col(Job.state).in_(UNFINISHED))
    job_id = session.exec(running).first()
    if job_id is not None:
        raise Conflict(
            f"Job {job_id} is at work on {target.name}.", fix="Cancel it or wait until it ends."
        )
    target.deleted_at = target.updated_at = at
    audit.note(session, actor, "target.delete", f"target:{target.id}", at=at, name=target.name)
    target.token_sealed = target.admin_token_sealed = target.headers_sealed = None
    target.name = f"{target.name[: NAME_MAX_LENGTH - 24]} (deleted #{target.id})"  # frees the name


def take_in_bundle(session: Session, target_id: int, bundle: BundleRow) -> None:
    """Remember what the newest bundle saw, and whether it is one to compare later ones with.

    What was handed in proves no health here, see ``landing.complete``.
    """
    target = get_target(session, target_id)
    at = bundle.finished_at or bundle.collected_at
    if (target.seen or {}).get("at", "") > at.isoformat():
        return
    verdict = verdict_of(bundle.summary)
    target.last_bundle_id = bundle.id
    if bundle.healthy:
        target.last_healthy_bundle_id = bundle.id
    target.seen = {
        **(target.seen or {}),
        **_seen(bundle.summary or {}),
        "at": at.isoformat(),
        "verdict": verdict,
        "bundle_id": bundle.id,
    }


def note_check(session: Session, target_id: int, says: str, *, answers: bool, at: datetime) -> None:
    """Remember how a check of the connection ended; it says nothing about health."""
    target = get_target(session, target_id)
    checked = {"checked_at": at.isoformat(), "checked": says, "answers": answers}
    target.seen = {**(target.seen or {}), **checked}


def topology_told(topology: Mapping[str, Any] | None) -> str:
    """``TP8 · DP2 · decode``: what is larger than one, and the part of a split server."""
    known = topology or {}
    sizes = [
        f"{name.upper()}{size}"
        for name in ("tp", "dp", "pp", "ep")
        if isinstance(size := known.get(f"{name}_size"), int) and size > 1
    ]
    mode = known.get("disaggregation_mode")
    part = [mode] if isinstance(mode, str) and mode not in ("", "null", "none") else []
    return " · ".join([*sizes, *part])


def _seen(summary: Summary) -> dict[str, Any]:
    model = summary.get("model") or {}
    return {
        "version": summary.get("version"),
        "model": model.get("served_model_name") or model.get("model_path"),
        "topology": topology_told(summary.get("topology")),
    }


def address(target: Target, vault: Vault, settings: Settings) -> TargetAddress:
    """Where and with which credentials the target is asked, unsealed."""
    return TargetAddress(
        base_url=target.base_url,
        token=_unsealed(vault, target.token_sealed),
        admin_token=_unsealed(vault, target.admin_token_sealed),
        headers=headers_of(target, vault),
        ca_pem=target.ca_pem,
        allowed=settings.allowed_targets,
    )


def headers_of(target: Target, vault: Vault) -> dict[str, str]:
    """The extra headers, unsealed; their values may be secrets."""
    text = _unsealed(vault, target.headers_sealed)
    headers: dict[str, str] = orjson.loads(text) if text else {}
    return headers


def _as_stored(
    session: Session, target: Target, changes: Changes, *, vault: Vault
) -> dict[str, Any]:
    stored: dict[str, Any] = {**changes}
    TargetAddress(
        target.base_url,
        changes.get("token"),
        changes.get("admin_token"),
        changes.get("headers") or {},
    )  # raises Rejected for what could not be sent
    if "name" in changes and changes["name"].strip() != target.name:
        stored["name"] = _free_name(session, changes["name"])
    if "base_url" in changes:
        stored["base_url"] = check_url(changes["base_url"])
    for name in ("token", "admin_token"):
        if name in stored:
            stored[f"{name}_sealed"] = _sealed(vault, stored.pop(name))
    if "headers" in changes:
        stored["headers_sealed"] = _sealed_headers(vault, stored.pop("headers"))
    if "ca_pem" in changes:
        stored["ca_pem"] = _pem(changes["ca_pem"])
    return stored


def _check_address(new: NewTarget) -> str:
    """The base URL as it is kept; raises Rejected for what could not be asked."""
    address = TargetAddress(new.base_url, new.token, new.admin_token, new.headers)
    return address.base_url


def _free_name(session: Session, name: str) -> str:
    name = name.strip()
    if not 0 < len(name) <= NAME_MAX_LENGTH:
        raise Rejected(f"A target needs a name of 1 to {NAME_MAX_LENGTH} characters.")
    if session.exec(select(Target.id).where(Target.name == name)).first() is not None:
        raise Conflict(f"There is a target {name} already.", fix="Choose another name.")
    return name


def refuse_deleted(target: Target) -> None:
    """Raises Conflict for a target that is deleted: nothing of it changes any more."""
    if target.deleted_at is not None:
        raise Conflict(f"{target.name} is deleted.", fix="Register it again.")


def _pem(text: str | None) -> str | None:
    if not text or not text.strip():
        return None
    if PEM_HEAD not in text or "PRIVATE KEY" in text:
        raise Rejected(
            "The CA file is not a PEM certificate.",
            fix="Paste the certificates of the private CA, never a private key.",
        )
    return text.strip() + "\n"


def _sealed(vault: Vault, secret: str | None) -> str | None:
    return vault.seal(secret.strip()) if secret and secret.strip() else None


def _sealed_headers(vault: Vault, headers: Mapping[str, str]) -> str | None:
    return vault.seal(orjson.dumps(dict(headers)).decode()) if headers else None


def _unsealed(vault: Vault, sealed: str | None) -> str | None:
    return vault.unseal(sealed) if sealed else None
