"""A program: the whole of what the console does with a dump that is kept, and its CPU seconds."""

import resource
import sys
import time
from datetime import UTC, datetime
from pathlib import Path
from tempfile import TemporaryDirectory
from threading import Event

from app.jobs.ingest import ingest
from app.jobs.work import Work
from app.settings import Settings
from app.store import attaching, attempts, dumps, migrations
from app.store.attaching import Sent
from app.store.attempts import Attempt
from app.store.database import reading, writing
from app.store.stores import Stores
from app.store.tables import Job
from tests import make


def main(path: Path) -> None:
    """Print how many requests were read, and the CPU seconds of reader and console together."""
    with TemporaryDirectory(dir=path.parent) as folder:
        stores = Stores.open(Settings(data_dir=Path(folder), min_free_bytes=0))
        migrations.upgrade(stores.engine)
        work, dump_id = _claimed(stores, path)
        began = time.process_time()
        ingest(work)
        own, reader = time.process_time() - began, resource.getrusage(resource.RUSAGE_CHILDREN)
        with reading(stores.engine) as session:
            total = dumps.get_dump(session, dump_id).requests_total
        stores.close()
    sys.stdout.write(f"{total} {own + reader.ru_utime + reader.ru_stime} {own}\n")


def _claimed(stores: Stores, path: Path) -> tuple[Work, int]:
    """The job that reads the file at *path*, in the hands of a worker."""
    now, incident = datetime.now(UTC), make.incident(stores)
    with path.open("rb") as file:
        stored = stores.artifacts.put(iter(lambda: file.read(2**20), b""))
    taken = attaching.take_in(
        stores,
        stored,
        Sent("dump.pkl", "a benchmark"),
        incident_id=incident.id or 0,
        actor=make.MIRA,
        at=now,
    )
    assert taken.dump_id is not None
    with writing(stores.engine) as session:
        job = session.get_one(Job, dumps.get_dump(session, taken.dump_id).job_id)
        attempt = Attempt(job.id or 0, job.key)
        claimed = attempts.claim(session, attempt, worker="this", places={"steps": 1}, at=now)
    assert claimed is not None
    return Work(stores, claimed, attempt, Event()), taken.dump_id


if __name__ == "__main__":
    main(Path(sys.argv[1]))
