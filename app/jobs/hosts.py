"""Hears every host about every half minute; of several workers one asks a host at a time."""

import logging
from concurrent.futures import Future, wait
from datetime import UTC, datetime
from functools import partial

from app.store import hearing
from app.store.aside import aside
from app.store.database import reading, writing
from app.store.hosts import list_hosts
from app.store.stores import Stores
from app.store.tables import Host

LAST_WORDS_SECONDS = 5.0

log = logging.getLogger(__name__)


class Hearings:
    """Asks in threads of its own, so that a silent host holds up neither beat nor other host."""

    def __init__(self, stores: Stores) -> None:
        self._stores = stores
        self._under_way: dict[Future[None], str] = {}

    def begin(self, now: datetime) -> None:
        """Ask every host whose turn it is; whoever is silent for 3 s is noted as such."""
        self._look_back()
        for host in self._mine(now):
            asking = aside(partial(hearing.hear, self._stores, host), name=f"hear {host.name}")
            self._under_way[asking] = host.name

    def end(self) -> None:
        """Wait briefly for what is under way."""
        wait(self._under_way, LAST_WORDS_SECONDS)
        self._look_back()

    def _mine(self, now: datetime) -> list[Host]:
        agents = self._stores.agents
        with reading(self._stores.engine) as session:
            due = [
                host
                for host in list_hosts(session)
                if agents.reaches(host) and hearing.is_due(host, at=now)
            ]
        if not due:
            return []
        with writing(self._stores.engine) as session:
            return [host for host in due if hearing.claim(session, host, at=datetime.now(UTC))]

    def _look_back(self) -> None:
        for asking in [one for one in self._under_way if one.done()]:
            name = self._under_way.pop(asking)
            if error := asking.exception():
                log.warning("What %s told could not be kept: %s", name, error)
