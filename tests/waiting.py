"""Waiting for what happens elsewhere, never for ever."""

import time
from collections.abc import Callable
from typing import TypeVar

T = TypeVar("T")

BUSY = 10  # how many times slower a machine may be that has other things to do as well


def until(look: Callable[[], T], *, seconds: float = 60.0) -> T:
    """What *look* says as soon as it is true; a failed test when it stays false."""
    deadline = time.monotonic() + seconds
    while not (seen := look()):
        assert time.monotonic() < deadline, f"still {seen!r} after {seconds:g} s"
        time.sleep(0.01)
    return seen
