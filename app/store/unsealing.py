"""The text of a recorded request: read from its file again, for a reason that is written down."""

from collections.abc import Mapping
from datetime import datetime
from typing import Any, Literal

from app.clients.dumps import Reading, read_requests
from app.errors import NotFound
from app.store import audit, dump_rows, dumps
from app.store.audit import Actor
from app.store.database import writing
from app.store.stores import Stores

Tier = Literal["T1", "T2"]  # redacted text, or as it was recorded


def unseal(  # noqa: PLR0913
    stores: Stores,
    dump_id: int,
    index: int,
    *,
    tier: Tier,
    reason: str,
    actor: Actor,
    at: datetime,
) -> Mapping[str, Any]:
    """A request with payload and output, as a line of ``dump export`` has it.

    Who, what and why is in the audit log before the file is opened. Raises NotFound and Conflict.
    """
    with writing(stores.engine) as session:
        dump = dumps.read_dump(session, dump_id)
        row = dump_rows.request_at(session, dump_id, index)
        audit.note(
            session,
            actor,
            "dump.unseal",
            f"dump:{dump_id}",
            at=at,
            index=index,
            rid=row.rid,
            tier=tier,
            reason=reason,
        )
    told = Reading(called=dump.name, key=stores.vault.fingerprint_key)
    with stores.artifacts.as_file(dump.sha256) as path:
        found = read_requests(path, [index], tier, reading=told)
    if not found:
        raise NotFound(f"Request {index} is not in the file of dump {dump_id} any more.")
    return found[0]
