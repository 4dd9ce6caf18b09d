"""How many wrong links and passwords one address may try. Counted in this process only.

A link has 256 random bits, so guessing is hopeless anyway: the gate keeps the trying from
costing us anything. With several web processes each counts for itself.
"""

from collections import OrderedDict
from datetime import datetime, timedelta

from app.errors import Throttled

FREE_FAILURES = 30
WINDOW = timedelta(minutes=1)
MOST_ADDRESSES = 10_000  # the one that failed longest ago is forgotten first


class ShareGate:
    """Failures of each address within the last window."""

    def __init__(self) -> None:
        self._failures: OrderedDict[str, tuple[datetime, int]] = OrderedDict()

    def check(self, address: str | None, *, at: datetime) -> None:
        """Raise Throttled for an address that failed too often lately."""
        since, count = self._failures.get(address or "", (at, 0))
        if count >= FREE_FAILURES and at < since + WINDOW:
            wait = int((since + WINDOW - at).total_seconds()) + 1
            raise Throttled(
                f"Too many links that do not open. The next is looked at in {wait} s.",
                retry_after_seconds=wait,
            )

    def failed(self, address: str | None, *, at: datetime) -> None:
        """Count one failure of *address*."""
        since, count = self._failures.pop(address or "", (at, 0))
        fresh = at >= since + WINDOW
        self._failures[address or ""] = (at, 1) if fresh else (since, count + 1)
        while len(self._failures) > MOST_ADDRESSES:
            self._failures.popitem(last=False)
