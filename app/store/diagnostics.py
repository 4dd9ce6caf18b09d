"""Diagnostics: asked for, read back."""

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Literal

from sqlmodel import Session, col, select

from app.domain.counting import counted
from app.domain.playbook import Diagnose, DiagnosticKind
from app.errors import Conflict, NotFound, Rejected
from app.protocol.messages import MAX_INTERVAL_SECONDS, MAX_PROCESSES, MAX_SAMPLES
from app.store import chosen
from app.store.audit import Actor
from app.store.chosen import Chosen
from app.store.hosts import processes_of
from app.store.incidents import get_incident, targets_of
from app.store.outbox import request
from app.store.stores import Stores
from app.store.tables import Diagnostic, DiagnosticItem, Job, Target

LARGEST_ID = 2**63
OF_SERVERS: frozenset[DiagnosticKind] = frozenset(("server dumps",))
OF_HOSTS: frozenset[DiagnosticKind] = frozenset(("nccl ras", "host facts"))


@dataclass(frozen=True, slots=True)
class NewDiagnostic:
    """What to take, of whom. *confirm*: names of hosts, typed by the person who asks."""

    incident_id: int
    target_id: int | None
    host_ids: Sequence[int]
    kind: DiagnosticKind
    process_ids: Sequence[str] | Literal["schedulers"] = "schedulers"
    samples: int = 1
    interval_seconds: float = 5.0
    confirm: str | None = None


def request_diagnostic(
    session: Session, stores: Stores, new: NewDiagnostic, *, actor: Actor, at: datetime
) -> tuple[Job, Diagnostic]:
    """The job and the diagnostic that it fills, in the caller's transaction.

    Raises Conflict where it is ambiguous whom to look at, or where a coredump is not confirmed.
    """
    _check_figures(new)
    target = _target(session, new)
    found = _chosen(session, target, new)
    if not found or max(len(one.process_ids) for one in found) > MAX_PROCESSES:
        raise Rejected(f"Between 1 and {MAX_PROCESSES} processes of a host can be looked at.")
    if new.kind == "coredump":
        _check_confirmed(new, found)
    step = Diagnose(
        new.kind,
        {one.host.name: one.process_ids for one in found},
        new.samples,
        new.interval_seconds,
    )
    target_id = target.id if target else chosen.only_target(session, found)
    job = request(
        session,
        stores.outbox,
        step,
        incident_id=new.incident_id,
        target_id=target_id,
        actor=actor,
        at=at,
    )
    return job, _open(session, job, new, found, actor=actor, at=at)


def get_diagnostic(session: Session, diagnostic_id: int) -> Diagnostic:
    """The diagnostic of that number; raises NotFound."""
    found = session.get(Diagnostic, diagnostic_id) if diagnostic_id < LARGEST_ID else None
    if found is None:
        raise NotFound(f"There is no diagnostic {diagnostic_id}.")
    return found


def of_job(session: Session, job_id: int) -> Diagnostic:
    """The diagnostic that a job fills."""
    return session.exec(select(Diagnostic).where(Diagnostic.job_id == job_id)).one()


def items_of(session: Session, diagnostic_id: int) -> list[DiagnosticItem]:
    """What came of it so far, in the order in which it came."""
    query = select(DiagnosticItem).where(DiagnosticItem.diagnostic_id == diagnostic_id)
    return list(session.exec(query.order_by(col(DiagnosticItem.id))))


def item_of_artifact(session: Session, artifact_id: int) -> DiagnosticItem | None:
    """What a diagnostic brought as that file; None where it came another way."""
    query = select(DiagnosticItem).where(DiagnosticItem.artifact_id == artifact_id)
    return session.exec(query.order_by(col(DiagnosticItem.id)).limit(1)).first()


def diagnostics_of(session: Session, incident_id: int) -> list[Diagnostic]:
    """The diagnostics of an incident, newest first."""
    query = select(Diagnostic).where(Diagnostic.incident_id == incident_id)
    return list(session.exec(query.order_by(col(Diagnostic.id).desc())))


def last_of_kind(session: Session, incident_id: int) -> dict[str, Diagnostic]:
    """The newest diagnostic of each kind."""
    newest: dict[str, Diagnostic] = {}
    for one in diagnostics_of(session, incident_id):
        newest.setdefault(one.kind, one)
    return newest


def _open(
    session: Session,
    job: Job,
    new: NewDiagnostic,
    found: Sequence[Chosen],
    *,
    actor: Actor,
    at: datetime,
) -> Diagnostic:
    assert job.id is not None
    diagnostic = Diagnostic(
        incident_id=new.incident_id,
        target_id=job.target_id,
        job_id=job.id,
        kind=new.kind,
        says=job.says,
        asked_by=actor.name,
        asked_at=at,
        hosts=[
            {
                "host_id": one.host.id,
                "name": one.host.name,
                "process_ids": list(one.process_ids),
                "ranks": _ranks(one),
            }
            for one in found
        ],
    )
    session.add(diagnostic)
    session.flush()
    return diagnostic


def _chosen(session: Session, target: Target | None, new: NewDiagnostic) -> list[Chosen]:
    if new.kind in OF_SERVERS:
        named = () if isinstance(new.process_ids, str) else new.process_ids
        return chosen.of_servers(session, target, new.host_ids, named)
    if isinstance(new.process_ids, str):
        if new.kind in OF_HOSTS:
            return chosen.of_hosts(session, target, new.host_ids)
        return chosen.of_schedulers(session, target, new.host_ids)
    return chosen.of_processes(session, target, new.host_ids, new.process_ids)


def _target(session: Session, new: NewDiagnostic) -> Target | None:
    """The target named, or the only one of the incident where nothing else says whom to ask."""
    get_incident(session, new.incident_id)
    targets = targets_of(session, new.incident_id)
    if new.target_id is not None:
        found = next((one for one in targets if one.id == new.target_id), None)
        if found is None:
            raise NotFound(f"Incident {new.incident_id} is not about target {new.target_id}.")
        return found
    if new.host_ids or not isinstance(new.process_ids, str):
        return None
    if len(targets) != 1:
        names = ", ".join(f"{one.id} ({one.name})" for one in targets) or "none"
        raise Conflict(
            f"Incident {new.incident_id} is about {len(targets)} targets: {names}.",
            fix="Send target_id, or host_ids.",
        )
    return targets[0]


def _check_figures(new: NewDiagnostic) -> None:
    if not 1 <= new.samples <= MAX_SAMPLES:
        raise Rejected(f"Between 1 and {MAX_SAMPLES} samples are taken.")
    if not 0.5 <= new.interval_seconds <= MAX_INTERVAL_SECONDS:
        raise Rejected(f"Samples are 0.5 to {MAX_INTERVAL_SECONDS:.0f} s apart.")


def _check_confirmed(new: NewDiagnostic, found: Sequence[Chosen]) -> None:
    given = new.confirm or ""
    typed = {given.strip(), *(word.strip() for word in given.split(","))}
    missing = [one.host.name for one in found if one.host.name not in typed]
    if missing:
        count = sum(len(one.process_ids) for one in found)
        where = ", ".join(one.host.name for one in found)
        processes = counted(count, "process", "processes")
        raise Conflict(
            f"This would ask {processes} on {where} for a CUDA coredump.",
            why="Their GPUs stop while it is written, and a process may end.",
            fix=f"Send confirm with the name of each host: {where}.",
        )


def _ranks(one: Chosen) -> dict[str, str]:
    """Names of ranks by process id, as far as they are known now."""
    told = processes_of(one.host)
    return {
        process.id: process.rank.label
        for server in (told.servers if told else [])
        for process in server.processes
        if process.rank is not None and process.id in one.process_ids
    }
