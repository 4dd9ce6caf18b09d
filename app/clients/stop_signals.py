"""The signals by which a person stops a command: Ctrl-C, ``kill``, and the terminal that closes."""

import signal
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from types import FrameType

_STOPPING = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)


@contextmanager
def handled(handler: Callable[[int, FrameType | None], None]) -> Iterator[None]:
    """Meanwhile *handler* hears them, in the main thread only; then who heard them before.

    One that is ignored, as under nohup, stays so.
    """
    before = {
        sign: signal.signal(sign, handler)
        for sign in _STOPPING
        if signal.getsignal(sign) is not signal.SIG_IGN
    }
    try:
        yield
    finally:
        for sign, earlier in before.items():
            signal.signal(sign, earlier)
