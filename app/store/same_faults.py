"""Coredumps with one fingerprint in several incidents, found by an index."""

from collections.abc import Iterable

from sqlmodel import Session, col, func, select

from app.domain.same_fault import Elsewhere, SameFault
from app.store.tables import Diagnostic, DiagnosticItem, Incident

MOST_FINGERPRINTS = 8  # of one incident; a fault that comes back has one
MOST_INCIDENTS = 5  # of one fingerprint, the newest


def same_faults(session: Session, incident_id: int) -> list[SameFault]:
    """Where else the faults of an incident were seen; those seen nowhere else are left out."""
    query = (
        select(DiagnosticItem.fingerprint, func.max(DiagnosticItem.id))
        .join(Diagnostic, col(Diagnostic.id) == DiagnosticItem.diagnostic_id)
        .where(Diagnostic.incident_id == incident_id, col(DiagnosticItem.fingerprint).is_not(None))
        .group_by(col(DiagnosticItem.fingerprint))
        .order_by(func.max(DiagnosticItem.id).desc())
        .limit(MOST_FINGERPRINTS)
    )
    known = [fingerprint for fingerprint, _ in session.exec(query) if fingerprint]
    return same_as(session, incident_id, known)


def same_as(session: Session, incident_id: int, fingerprints: Iterable[str]) -> list[SameFault]:
    """Where other incidents than that one have *fingerprints*; the first few are looked up."""
    wanted = list(dict.fromkeys(fingerprints))[:MOST_FINGERPRINTS]
    found = [_same_fault(session, incident_id, one) for one in wanted]
    return [one for one in found if one.incidents]


def _same_fault(session: Session, incident_id: int, fingerprint: str) -> SameFault:
    newest = func.max(Diagnostic.id)
    query = (
        select(Diagnostic.incident_id, newest)
        .join(DiagnosticItem, col(DiagnosticItem.diagnostic_id) == Diagnostic.id)
        .where(DiagnosticItem.fingerprint == fingerprint, Diagnostic.incident_id != incident_id)
        .group_by(col(Diagnostic.incident_id))
    )
    total = session.exec(select(func.count()).select_from(query.subquery())).one()
    listed = query.order_by(col(Diagnostic.incident_id).desc()).limit(MOST_INCIDENTS)
    taken = {number: diagnostic for number, diagnostic in session.exec(listed) if diagnostic}
    rows = session.exec(
        select(Incident).where(col(Incident.id).in_(taken)).order_by(col(Incident.id).desc())
    )
    incidents = [
        _elsewhere(row, row.id, taken[row.id], incident_id) for row in rows if row.id is not None
    ]
    return SameFault(fingerprint, incidents, total - len(incidents))


def _elsewhere(row: Incident, number: int, diagnostic_id: int, looked_at: int) -> Elsewhere:
    return Elsewhere(
        incident_id=number,
        diagnostic_id=diagnostic_id,
        title=row.title,
        opened_at=row.opened_at,
        problem_class=row.problem_class,
        state=row.state,
        ended_at=row.resolved_at or row.mitigated_at,
        earlier=number < looked_at,
    )
