"""A worker process for tests that kill it: ``python -m tests.programs.worker FOLDER [DATABASE]``.

Says "ready" when it works, and stops in order when its standard input ends.
"""

import sys
from pathlib import Path

from app.jobs.engine import VERBS, Engine
from app.settings import Settings
from app.store import database, migrations
from app.store.stores import Stores
from tests.integration import verbs

FROZEN_SECONDS = 3  # long enough for a busy machine; a test need not wait as long as a user


def main(folder: str, database_url: str | None = None) -> None:
    database.IDLE_IN_TRANSACTION_SECONDS = FROZEN_SECONDS
    settings = Settings(data_dir=Path(folder), database_url=database_url, min_free_bytes=0)
    stores = Stores.open(settings)
    migrations.upgrade(stores.engine)
    engine = Engine.start(stores, {**VERBS, **verbs.VERBS})
    sys.stdout.write(f"ready {engine.executor_id}\n")
    sys.stdout.flush()
    sys.stdin.read()
    engine.stop()
    stores.close()


if __name__ == "__main__":
    main(*sys.argv[1:])
