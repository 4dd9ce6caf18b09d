"""Rows of a console that has seen much: 10 000 incidents, 1 000 000 timeline events."""

from datetime import timedelta

from sqlalchemy import Engine, insert

from app.domain.urgency import Rank
from app.store.tables import Incident, IncidentTarget, Target, TimelineEvent
from tests.make import NOON

INCIDENTS = 10_000
EVENTS_EACH = 100
OPEN = 2_000  # the others are resolved
TARGETS = 22


def fill(engine: Engine) -> None:
    """Insert everything in one transaction, past the console: nothing happens by it."""
    numbers = range(1, INCIDENTS + 1)
    with engine.execution_options(writes=True).begin() as connection:
        connection.execute(insert(Target), [_target(number) for number in range(1, TARGETS + 1)])
        connection.execute(insert(Incident), [_incident(number) for number in numbers])
        links = [{"incident_id": n, "target_id": n % TARGETS + 1} for n in numbers]
        connection.execute(insert(IncidentTarget), links)
        for start in range(1, INCIDENTS + 1, 500):
            rows = [_event(n, k) for n in range(start, start + 500) for k in range(EVENTS_EACH)]
            connection.execute(insert(TimelineEvent), rows)


def _target(number: int) -> dict[str, object]:
    seen = {"at": NOON.isoformat(), "verdict": "healthy", "model": "qwen3", "topology": "TP8"}
    return {
        "id": number,
        "name": f"decode-{number}",
        "base_url": f"http://10.0.0.{number}:30000",
        "engine": "auto",
        "clean": False,
        "watch": False,
        "coredump_when_wedged": False,
        "labels": {},
        "created_at": NOON,
        "updated_at": NOON,
        "seen": seen,
    }


def _incident(number: int) -> dict[str, object]:
    opened_at = NOON + timedelta(minutes=number)
    is_open = number > INCIDENTS - OPEN
    rank = (Rank.UNKNOWN, Rank.SLOW, Rank.QUIET, Rank.QUIET)[number % 4]
    says = f"First tokens took {number % 60} s on average, of which 0.01 s in the queue."
    return {
        "id": number,
        "title": f"Slow first tokens, once more ({number})",
        "severity": f"sev{number % 4 + 1}",
        "state": ("open", "acknowledged", "mitigated")[number % 3] if is_open else "resolved",
        "assignee": "operator" if number % 7 == 0 else None,
        "tags": ["ttft"],
        "opened_by": "mira",
        "opened_at": opened_at,
        "acknowledged_at": opened_at,
        "changed_at": opened_at,
        "rank": (Rank.FAILING if number % 200 == 0 else rank) if is_open else Rank.RESOLVED,
        "verdict": "healthy",
        "headline": {"id": "ttft", "says": says, "status": "supported", "level": "warn"},
        "targets_told": f"decode-{number % TARGETS + 1}",
        "artifact_count": 3,
    }


def _event(incident_id: int, number: int) -> dict[str, object]:
    at = NOON + timedelta(minutes=incident_id, seconds=number)
    return {
        "incident_id": incident_id,
        "kind": "NoteAdded",
        "detail": {"text": f"Seen again, the {number}th time, with the queue empty as before."},
        "actor": "mira",
        "occurred_at": at,
        "recorded_at": at,
        "system": number % 3 == 0,
    }
