"""An operator who acts on an incident: who, on which one, in which transaction, when."""

from dataclasses import dataclass
from datetime import datetime
from typing import Annotated

from fastapi import Depends, Request, Response
from sqlmodel import Session

from app.store import audit
from app.store.audit import Actor
from app.store.incidents import Changes, change_incident, get_incident
from app.store.tables import Incident
from app.web.answers import done
from app.web.dependencies import Now, Operator, Writing


@dataclass(frozen=True, slots=True)
class Acting:
    """Everything that an action on *incident* needs; committed when the endpoint is done."""

    request: Request
    actor: Actor
    session: Session
    incident: Incident
    at: datetime

    @property
    def incident_id(self) -> int:
        assert self.incident.id is not None
        return self.incident.id

    def change(self, changes: Changes) -> Response:
        """Set what *changes* names and go on to the incident's page."""
        change_incident(self.session, self.incident, changes, actor=self.actor, at=self.at)
        return self.done()

    def note(self, action: str, **detail: object) -> None:
        """Add a line to the audit log."""
        subject = f"incident:{self.incident_id}"
        audit.note(self.session, self.actor, action, subject, at=self.at, **detail)

    def done(self) -> Response:
        """On to the incident's page."""
        page = self.request.url_for("incident", incident_id=self.incident_id)
        return done(self.request, page.path)


def _acting(
    request: Request, incident_id: int, actor: Operator, session: Writing, now: Now
) -> Acting:
    return Acting(request, actor, session, get_incident(session, incident_id), now)


ActingOn = Annotated[Acting, Depends(_acting)]
