"""Whose turn it is on a target: a bundle and stacks are never taken of it at the same time.

A rank that is paused for its stacks can hold up an answer that the bundle waits for, which
would then read as a symptom. ``Job.acted_at`` marks the one whose turn it is.
"""

from datetime import datetime

from sqlmodel import Session, col, select

from app.store import attempts
from app.store.attempts import Attempt
from app.store.tables import Job, Target

PAUSING = ("stacks", "native stacks")


def take_turn(session: Session, attempt: Attempt, *, at: datetime) -> Job | None:
    """The job that has to end first; None: it is this one's turn, until it is over.

    Raises Superseded where the attempt is void.
    """
    job = attempts.held(session, attempt)
    if job.target_id is None or job.acted_at is not None:
        job.acted_at = job.acted_at or at
        return None
    # Two that come in one moment meet at this row; SQLite has one writer anyway.
    session.exec(select(Target).where(Target.id == job.target_id).with_for_update()).one()
    others = select(Job).where(
        Job.target_id == job.target_id,
        Job.state == "running",
        col(Job.acted_at).is_not(None),
        col(Job.id) != job.id,
    )
    rival = next((one for one in session.exec(others) if _takes_turns(one)), None)
    if rival is None:
        job.acted_at = at
    return rival


def _takes_turns(job: Job) -> bool:
    return job.kind == "collect" or job.arguments.get("kind") in PAUSING
