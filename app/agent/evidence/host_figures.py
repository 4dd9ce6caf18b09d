"""Start, load, memory and network of the host: what psutil reads of it, in one sentence each."""

import time
from collections.abc import Callable, Iterator, Mapping
from datetime import UTC, datetime

import psutil

from app.agent.evidence.pressure import unread
from app.agent.evidence.sizes import seconds_text, size_text
from app.protocol.messages import Fact

_LOW_MEMORY = 0.10  # of the whole: reclaim begins to be felt
_VERY_LOW_MEMORY = 0.03
_JUST_STARTED_SECONDS = 600
_STAT, _LOAD, _MEMORY, _NETWORK = "/proc/stat", "/proc/loadavg", "/proc/meminfo", "/proc/net/dev"
# What psutil raises over a procfs that is hidden, or that says what no kernel does.
_UNREADABLE = (OSError, LookupError, ValueError, ArithmeticError, RuntimeError)


def host_figures() -> Iterator[Fact]:
    """The facts; what cannot be read is told as unknown, and keeps no other from being told."""
    yield from _told("boot", "When the host started", _STAT, _boot)
    yield from _told("load", "The load of the host", _LOAD, _load)
    yield from _told("memory", "The memory of the host", _MEMORY, _memory)
    yield from _told("memory", "The swap of the host", _MEMORY, _swap)
    yield from _told("network", "What its network lost", _NETWORK, _network)


def booted_at() -> datetime | None:
    """When the kernel started; None where it cannot be read."""
    try:
        return datetime.fromtimestamp(psutil.boot_time(), UTC)
    except _UNREADABLE:
        return None


def boot_fact(seconds: float) -> Fact:
    """For how long the host runs."""
    says = f"The host runs since {seconds_text(seconds)}."
    level = "warn" if seconds < _JUST_STARTED_SECONDS else "quiet"
    return Fact(topic="boot", says=says, level=level, source=_STAT)


def load_fact(one: float, five: float, fifteen: float, cpus: int) -> Fact:
    """How many tasks run or wait, over 1, 5 and 15 minutes, against the CPUs there are."""
    says = f"Load {one:.2f}, {five:.2f} and {fifteen:.2f} over 1, 5 and 15 min, on {cpus} CPUs."
    return Fact(topic="load", says=says, level="warn" if one > 2 * cpus else "quiet", source=_LOAD)


def memory_fact(available_bytes: int, total_bytes: int) -> Fact:
    """How much memory is left."""
    share = available_bytes / total_bytes
    level = "bad" if share < _VERY_LOW_MEMORY else "warn" if share < _LOW_MEMORY else "good"
    left, whole = size_text(available_bytes), size_text(total_bytes)
    says = f"{left} of {whole} memory is available ({share:.0%})."
    return Fact(topic="memory", says=says, level=level, source=_MEMORY)


def swap_facts(used_bytes: int) -> list[Fact]:
    """That memory is swapped out, where some is."""
    if used_bytes <= 0:
        return []
    says = f"{size_text(used_bytes)} of memory is swapped out."
    return [Fact(topic="memory", says=says, level="warn", source=_MEMORY)]


def network_fact(errors: Mapping[str, int]) -> Fact:
    """Packets lost to errors by interface. When they were is not known, so it is no warning."""
    lossy = ", ".join(f"{name} {count:,}" for name, count in sorted(errors.items()) if count)
    says = (
        f"Packets that its network lost to errors since boot: {lossy}."
        if lossy
        else "Its network lost no packet to errors since boot."
    )
    return Fact(topic="network", says=says, level="quiet", source=_NETWORK)


def _told(topic: str, what: str, source: str, read: Callable[[], list[Fact]]) -> list[Fact]:
    try:
        return read()
    except _UNREADABLE:
        return [unread(topic, what, source)]


def _boot() -> list[Fact]:
    return [boot_fact(time.time() - psutil.boot_time())]


def _load() -> list[Fact]:
    one, five, fifteen = psutil.getloadavg()
    return [load_fact(one, five, fifteen, psutil.cpu_count() or 1)]


def _memory() -> list[Fact]:
    memory = psutil.virtual_memory()
    if memory.available <= 0:  # psutil says 0 where it cannot tell
        raise LookupError
    return [memory_fact(memory.available, memory.total)]


def _swap() -> list[Fact]:
    return swap_facts(psutil.swap_memory().used)


def _network() -> list[Fact]:
    """Of the network namespace that the agent runs in."""
    counted = psutil.net_io_counters(pernic=True, nowrap=False)
    return [network_fact({name: one.errin + one.errout for name, one in counted.items()})]
