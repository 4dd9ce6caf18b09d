"""How the requests of a dump are spread: counted once, when it was read."""

from sqlalchemy import select
from sqlmodel import Session, col

from app.domain.dumps.spread import Spread, spread
from app.store.dump_tables import DumpRequest


def spread_of(session: Session, dump_id: int) -> Spread:
    """How lengths and arrivals are spread. Looks at every row."""
    query = select(
        col(DumpRequest.prompt_tokens),
        col(DumpRequest.completion_tokens),
        col(DumpRequest.started_at),
        col(DumpRequest.elapsed_seconds),
        col(DumpRequest.state),
    )
    of_dump = query.where(col(DumpRequest.dump_id) == dump_id)
    return spread(session.connection().execute(of_dump))
