"""What every kind of file of requests gives: its requests, then what it is as a whole."""

from collections import Counter
from collections.abc import Container, Iterator
from typing import Protocol

from app.domain.dumps.recorded import Dump, RecordedRequest, State

States = Counter[State | None]


class Source(Protocol):
    """An opened file of requests. Never raises for what is in the file."""

    def requests(self, wanted: Container[int] | None = None) -> Iterator[RecordedRequest]:
        """The requests in the order of the file; only those with an index in *wanted* if given."""
        ...

    def dump(self, states: States) -> Dump:
        """The file as a whole, once all of its requests were read; *states* counts theirs."""
        ...
