"""A command that a person stops cleans up, however often they ask."""

import signal
from collections.abc import Iterator
from contextlib import contextmanager
from types import FrameType

_STOPPING = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)


@contextmanager
def stopped_once() -> Iterator[None]:
    """The first signal to stop raises KeyboardInterrupt here; more of them change nothing.

    One that is ignored, as under nohup, stays so.
    """
    was_told = False

    def stop(number: int, frame: FrameType | None) -> None:
        nonlocal was_told
        if not was_told:
            was_told = True
            raise KeyboardInterrupt

    before = {
        sign: signal.signal(sign, stop)
        for sign in _STOPPING
        if signal.getsignal(sign) is not signal.SIG_IGN
    }
    try:
        yield
    finally:
        for sign, handler in before.items():
            signal.signal(sign, handler)
