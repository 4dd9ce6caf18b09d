"""Writes notes and acknowledges each on standard output once it is committed, until it is killed.

``python -m tests.programs.writer FOLDER INCIDENT``
"""

import itertools
import sys
from datetime import UTC, datetime
from pathlib import Path

from app.domain.playbook import NoteAdded
from app.settings import Settings
from app.store import timeline
from app.store.audit import CONSOLE
from app.store.database import open_database, writing


def main(folder: str, incident_id: str) -> None:
    engine = open_database(Settings(data_dir=Path(folder)).database)
    for number in itertools.count():
        note = NoteAdded(f"note {number}")
        with writing(engine) as session:
            now = datetime.now(UTC)
            timeline.record(session, note, incident_id=int(incident_id), actor=CONSOLE, at=now)
        sys.stdout.write(f"{number}\n")
        sys.stdout.flush()


if __name__ == "__main__":
    main(*sys.argv[1:])
