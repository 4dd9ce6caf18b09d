"""Connections to the agent: a fixed number, and whoever only holds one makes room.

Anybody who reaches the port can open connections and say nothing, or begin a request that is never
signed. uvicorn alone counts them all and then answers nobody, so here the oldest one on which no
request of a console is under way is dropped for the newest.
"""

import asyncio
import time
from typing import Any

from uvicorn.protocols.http.h11_impl import H11Protocol

MOST_CONNECTIONS = 64  # a console needs a few


class Connection(H11Protocol):
    """One of at most so many."""

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self.made_at = time.monotonic()
        if len(self.connections) >= MOST_CONNECTIONS - 1:
            self._make_room()
        super().connection_made(transport)  # type: ignore[arg-type]

    def _make_room(self) -> None:
        others = [one for one in self.connections if isinstance(one, Connection)]
        idle = [one for one in others if not one.serves_a_console]
        if idle:
            oldest = min(idle, key=lambda one: one.made_at)
            self.connections.discard(oldest)  # as it will do itself, but only in a moment
            oldest.transport.abort()

    @property
    def serves_a_console(self) -> bool:
        """Whether a request that the guard let in is under way."""
        if self.cycle is None or self.cycle.response_complete:
            return False
        state: dict[str, Any] = self.cycle.scope.get("state") or {}
        return "asked" in state
