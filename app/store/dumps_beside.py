"""Coredumps of other ranks that an incident has already: who is dumped alone is not read alone."""

from datetime import timedelta

from sqlmodel import Session, col, select

from app.store.tables import Diagnostic, DiagnosticItem

MOST = 64  # ranks; the newest
TOGETHER = timedelta(minutes=30)  # later it may be another hang, or another start of the server


def dumps_beside(session: Session, diagnostic: Diagnostic) -> list[DiagnosticItem]:
    """Dumps of the same server that earlier diagnostics took, the newest first."""
    query = (
        select(DiagnosticItem)
        .join(Diagnostic, col(Diagnostic.id) == DiagnosticItem.diagnostic_id)
        .where(
            Diagnostic.incident_id == diagnostic.incident_id,
            Diagnostic.target_id == diagnostic.target_id,
            Diagnostic.kind == "coredump",
            col(Diagnostic.id) < diagnostic.id,
            Diagnostic.asked_at > diagnostic.asked_at - TOGETHER,
            DiagnosticItem.kind == "coredump",
            col(DiagnosticItem.artifact_id).is_not(None),
        )
        .order_by(col(DiagnosticItem.id).desc())
        .limit(MOST)
    )
    return list(session.exec(query)) if diagnostic.target_id else []
