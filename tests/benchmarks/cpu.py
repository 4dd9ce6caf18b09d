"""CPU time of this process, which others on the machine distort least."""

import time
from collections.abc import Callable


def cpu_seconds(work: Callable[[], object], *, rounds: int = 3) -> float:
    """The least of *rounds*: what the work needs when nobody else is in the caches."""
    taken = []
    for _ in range(rounds):
        started = time.process_time()
        work()
        taken.append(time.process_time() - started)
    return min(taken)
