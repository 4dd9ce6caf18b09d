"""A command that a person stops cleans up, however often they ask."""

from collections.abc import Iterator
from contextlib import contextmanager
from types import FrameType

from app.clients.stop_signals import handled


@contextmanager
def stopped_once() -> Iterator[None]:
    """The first signal to stop raises KeyboardInterrupt here; more of them change nothing."""
    was_told = False

    def stop(number: int, frame: FrameType | None) -> None:
        nonlocal was_told
        if not was_told:
            was_told = True
            raise KeyboardInterrupt

    with handled(stop):
        yield
