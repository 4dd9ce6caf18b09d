"""Of which processes a preflight tells and by which title: the console finds out what is new."""

from collections.abc import Iterator

from app.protocol.messages import Process, Server

_LEFT_OUT = ("other",)  # resource trackers and the like: nothing to learn from them


def looked_at(server: Server) -> Iterator[Process]:
    """Those of *server* that a preflight of the whole host looks at."""
    for process in server.processes:
        if process.id == server.id or process.role not in _LEFT_OUT:
            yield process


def title_of(process: Process) -> str:
    """Who a process is in a table: "scheduler TP0, pid 700"."""
    rank = f" {process.rank.label}" if process.rank else ""
    return f"{process.role}{rank}, pid {process.pid}"
