"""The dumps of an incident: what each comes to, and which one to open next."""

from sqlmodel import Session

from app.store.dump_tables import Dump
from app.store.dumps import count_dumps, foremost_dumps
from app.web.dump_page import finding
from app.web.views.dumps import DumpTold
from app.web.views.incident_dumps import DumpLine, IncidentDumps

MOST_LINES = 8
_STEP_KIND = "crash dump"  # what was in flight is in no other


def incident_dumps(session: Session, incident_id: int) -> IncidentDumps:
    """The foremost dumps of an incident."""
    lines = [_line(dump) for dump in foremost_dumps(session, incident_id, limit=MOST_LINES)]
    total = count_dumps(session, incident_id) if len(lines) == MOST_LINES else len(lines)
    step = next((line for line in lines if line.kind == _STEP_KIND), None)
    return IncidentDumps(lines, total, step)


def _line(dump: Dump) -> DumpLine:
    told = DumpTold.of(dump)
    return DumpLine(
        id=told.id,
        name=told.name,
        kind=told.kind,
        state=told.state,
        level=told.level,
        headline=finding(dump),
    )
