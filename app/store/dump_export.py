"""Chosen requests of a dump as JSON lines: read from its file again, noted before it is opened."""

from collections.abc import Sequence
from datetime import datetime
from typing import IO

from app.clients.dumps import Reading, export_file
from app.domain.dumps.choosing import Choice
from app.domain.dumps.redacted import Tier
from app.errors import NotFound, Rejected, TooLarge
from app.store import audit, dumps
from app.store.audit import Actor
from app.store.database import writing
from app.store.dump_choices import chosen_indexes, count_chosen
from app.store.dump_tables import Dump
from app.store.stores import Stores

MOST = 10_000  # requests that are named to the reader; a dump as a whole may have any number


def export(  # noqa: PLR0913
    stores: Stores,
    dump_id: int,
    choice: Choice,
    *,
    tier: Tier,
    reason: str | None,
    actor: Actor,
    at: datetime,
) -> IO[bytes]:
    """The requests that *choice* means, an open file at its start that is gone when it is closed.

    Raises NotFound where it means none, TooLarge for too many, Conflict and Rejected where the
    dump cannot be read.
    """
    with writing(stores.engine) as session:
        dump = dumps.read_dump(session, dump_id)
        total = count_chosen(session, dump_id, choice).total
        if not total:
            raise NotFound(f"Dump {dump_id} has no request like that.", fix="Choose others.")
        is_all = total == dump.requests_total
        indexes = None if is_all else chosen_indexes(session, dump_id, choice, limit=MOST + 1)
        if indexes is not None and len(indexes) > MOST:
            raise TooLarge(
                f"{total} requests are more than {MOST} at once.",
                fix=f"Choose all of them as 0:{dump.requests_total}, or fewer.",
            )
        audit.note(
            session,
            actor,
            "dump.export",
            f"dump:{dump_id}",
            at=at,
            select=str(choice),
            requests=total,
            tier=tier,
            reason=reason,
        )
    return _written(stores, dump, indexes, tier)


def _written(stores: Stores, dump: Dump, indexes: Sequence[int] | None, tier: Tier) -> IO[bytes]:
    told = Reading(called=dump.name, key=stores.vault.fingerprint_key)
    with stores.artifacts.spool() as spooled:
        with stores.artifacts.as_file(dump.sha256) as path:
            document = export_file(
                path,
                lambda line: spooled.write(line + b"\n"),
                tier,
                indexes=indexes,
                reading=told,
            )
        if not spooled.size_bytes:
            raise Rejected(f"{dump.name} cannot be read any more: {document['problems'][:1]}")
        spooled.settle()
        return spooled.path.open("rb")  # its name goes now, its bytes when it is closed
