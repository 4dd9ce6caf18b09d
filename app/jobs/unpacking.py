"""A zip archive of several dumps: each becomes an artifact with a dump of its own.

Asked again after it was cut off, equal bytes are known and nothing is attached twice.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import UTC, datetime

from app.clients.dumps import unpack_member
from app.domain.dump_recognition import HEAD_BYTES, is_recorded
from app.errors import NoSpace, TooLarge
from app.jobs.work import Work
from app.store import attaching
from app.store.artifacts import Spool
from app.store.attaching import Sent
from app.store.audit import CONSOLE
from app.store.tables import Artifact

MOST_MEMBERS = 100  # an archive of more is kept as it is
_PACKED = (b"PK\x03\x04", b"\x1f\x8b", b"\x28\xb5\x2f\xfd")  # what is inside is unpacked once


@dataclass(frozen=True, slots=True)
class Unpacked:
    """What became of the files of an archive: so many dumps, and why others are none."""

    dumps: int
    left_out: tuple[str, ...]


def unpack(work: Work, archive: Artifact, members: Sequence[str]) -> Unpacked:
    """Attach what the files *members* of *archive* hold. Raises what ``Work.check`` raises."""
    left_out: list[str] = []
    room_bytes = work.stores.settings.max_artifact_bytes
    taken = 0
    for place, name in enumerate(members):
        work.check()
        work.tell(f"Unpacking file {place + 1} of {len(members)}.")
        with work.stores.artifacts.spool() as spool:
            why = _fill(work, archive, place, spool)
            room_bytes -= spool.size_bytes
            if room_bytes < 0:
                why = "the archive unpacks to more than one artifact may hold"
            why = why or _take(work, archive, name, spool)
        if why:
            left_out.append(f"{name}: {why}")
        else:
            taken += 1
    return Unpacked(taken, tuple(left_out))


def _fill(work: Work, archive: Artifact, place: int, spool: Spool) -> str | None:
    """Why the file at *place* did not come into *spool* as a whole; None: it did."""
    try:
        with work.stores.artifacts.as_file(archive.sha256) as path:
            return unpack_member(path, place, spool.write)
    except (TooLarge, NoSpace) as error:
        return error.what


def _take(work: Work, archive: Artifact, name: str, spool: Spool) -> str | None:
    """Attach what is in *spool*, if it is a file of requests; why not."""
    spool.settle()
    with spool.path.open("rb") as file:
        head = file.read(HEAD_BYTES)
    if head.startswith(_PACKED):
        return "it is packed itself"
    if not is_recorded(head, name):
        return "no file of requests"
    sent = Sent(name.rsplit("/", 1)[-1], f"{archive.name} (artifact {archive.id}), file {name}")
    stored = work.stores.artifacts.keep(spool)
    incident_id = archive.incident_id
    assert incident_id is not None
    attaching.take_in(
        work.stores, stored, sent, incident_id=incident_id, actor=CONSOLE, at=datetime.now(UTC)
    )
    return None
