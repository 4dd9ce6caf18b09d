"""What replays that were cut off have measured, from the journals of this machine into the store.

So a person sees all of it before he decides whether to go on. A journal on another machine is
taken in once a worker runs there again.
"""

from contextlib import suppress
from pathlib import Path

from app.clients.journal import Journal, journals_in
from app.errors import Conflict
from app.store import replay_progress
from app.store.database import reading
from app.store.stores import Stores
from app.store.tables import ReplayTrial


def take_in_left(stores: Stores) -> None:
    """Take in what nobody is at work on, and remove it then; safe while others do the same."""
    for trial_id, path in journals_in(stores.settings.data_dir).items():
        with suppress(Conflict):  # it is being written
            _take_in(stores, trial_id, path)


def _take_in(stores: Stores, trial_id: int, path: Path) -> None:
    """A trial that came to its end elsewhere has sent all of this again and is judged by that."""
    with Journal(path) as journal:
        with reading(stores.engine) as session:
            trial = session.get(ReplayTrial, trial_id)
        if trial is None:
            return
        if trial.state == "done" or replay_progress.take_in(stores, trial_id, journal.left()):
            journal.remove()
