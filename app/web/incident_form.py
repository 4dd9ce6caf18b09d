"""What people type about an incident: times, tags, notes, facts."""

from datetime import UTC, datetime
from typing import Annotated

from pydantic import BaseModel, Field

from app.errors import Malformed
from app.store.incidents import Changes, OpenIncident
from app.store.tables import Incident

NOTE_MAX_LENGTH = 10_000
MOST_TAGS = 20
TAG_MAX_LENGTH = 40
Line = Annotated[str, Field(max_length=300)]


class TypedIncident(BaseModel):
    """The form that opens an incident; a checkbox that is not ticked is not sent."""

    title: Line
    severity: Line = ""
    target_id: Annotated[list[int], Field(max_length=100)] = []
    started_at: Line = ""
    tags: Line = ""
    collect: bool = False

    def as_wanted(self) -> OpenIncident:
        """The incident to open; raises Malformed for a time or tags that cannot be read."""
        return OpenIncident(
            title=self.title,
            severity=self.severity or None,
            target_ids=tuple(self.target_id),
            started_at=typed_moment(self.started_at),
            tags=typed_tags(self.tags),
            collect=self.collect,
        )


class TypedFacts(BaseModel):
    """The form that edits an incident; an empty field clears the fact."""

    title: Line
    severity: Line = ""
    assignee: Line = ""
    tags: Line = ""
    problem_class: Line = ""

    def as_changes(self, incident: Incident) -> Changes:
        """What to set on *incident*; a class that was not touched stays the rules' to set."""
        changes = Changes(
            title=self.title,
            severity=self.severity or None,
            assignee=self.assignee.strip() or None,
            tags=list(typed_tags(self.tags)),
        )
        if (self.problem_class or None) != incident.problem_class:
            changes["problem_class"] = self.problem_class or None
        return changes


class TypedNote(BaseModel):
    """A note, with the time of what it tells where that is not now."""

    text: Annotated[str, Field(max_length=NOTE_MAX_LENGTH)]
    occurred_at: Annotated[str, Field(max_length=40)] = ""


def typed_moment(text: str) -> datetime | None:
    """The time that a person typed, UTC where no zone is given; raises Malformed."""
    if not text.strip():
        return None
    try:
        at = datetime.fromisoformat(text.strip().removesuffix(" UTC"))
        return at.astimezone(UTC) if at.tzinfo else at.replace(tzinfo=UTC)
    except (ValueError, OverflowError) as error:
        raise Malformed(
            "This is not a time.", fix="Write it like 2026-11-30 02:51:40, in UTC."
        ) from error


def typed_tags(text: str) -> tuple[str, ...]:
    """Tags separated by commas or spaces, each once; raises Malformed for too many."""
    tags = dict.fromkeys(text.replace(",", " ").split())
    if len(tags) > MOST_TAGS or any(len(tag) > TAG_MAX_LENGTH for tag in tags):
        raise Malformed(f"At most {MOST_TAGS} tags of at most {TAG_MAX_LENGTH} characters each.")
    return tuple(tags)
