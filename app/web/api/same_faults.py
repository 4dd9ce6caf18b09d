"""API: incidents with the same fault, as reports and diagnostics name them."""

from datetime import datetime

from pydantic import BaseModel, ConfigDict


class ElsewhereOut(BaseModel):
    """Another incident. ``ended_at`` null: it goes on; ``earlier``: than the one asked about."""

    model_config = ConfigDict(from_attributes=True)

    number: int
    diagnostic_id: int
    title: str
    opened_at: datetime
    problem_class: str | None
    state: str
    ended_at: datetime | None
    earlier: bool


class SameFaultOut(BaseModel):
    """Where else one fingerprint was seen, the newest first; ``more`` are not listed."""

    fingerprint: str
    says: str
    incidents: list[ElsewhereOut]
    more: int
