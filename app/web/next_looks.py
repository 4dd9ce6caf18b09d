"""What to take next where compared stacks leave something open, as buttons for who may act."""

from collections.abc import Iterator, Sequence

from sqlmodel import Session

from app.domain.ladder import rung_of
from app.domain.stacks.samples import ENDED
from app.store.tables import Diagnostic, DiagnosticItem
from app.store.targets import get_target
from app.web.candidates import Candidate, candidates
from app.web.views.comparison import ComparisonKept
from app.web.views.found import who
from app.web.views.ranks import Press

_PARTED = ("rank divergence", "different collectives", "symmetric")
_FOR_GPU = ("GPU event", "GPU sync")


def next_looks(
    session: Session,
    row: Diagnostic,
    items: Sequence[DiagnosticItem],
    comparison: ComparisonKept,
) -> list[Press]:
    """The cheapest first; none where the server is no longer linked or not running."""
    if row.target_id is None:
        return []
    hosts = {one.get("host_id") for one in row.hosts}
    for server in candidates(session, [get_target(session, row.target_id)]):
        if server.found and hosts & {host.id for host, _ in server.found}:
            return list(_presses(server, items, comparison))
    return []


def _presses(
    server: Candidate, items: Sequence[DiagnosticItem], comparison: ComparisonKept
) -> Iterator[Press]:
    open_still = comparison.stuck is None and comparison.verdict != "idle"
    if comparison.missing or open_still:
        yield _press("stacks", "Take stacks again", server)
    held = comparison.ground == "state"
    if held and ENDED & {comparison.states.get(rank) for rank in comparison.outliers}:
        yield _press("host facts", "Read host facts and log", server)
    if comparison.verdict in _PARTED and not held and comparison.ground != "counts":
        yield _press("nccl ras", "Read NCCL RAS", server)
    # py-spy would wait for what does not run
    for rank in [] if held else _native_of(comparison)[:1]:
        process_id = _running(server, items, rank)
        if process_id:
            yield _press("native stacks", f"Native stacks of {rank}…", server, process_id)
    if any(group.primitive in _FOR_GPU for group in comparison.groups) and open_still:
        yield _press("coredump", "CUDA coredump…", server)


def _native_of(comparison: ComparisonKept) -> list[str]:
    """The ranks apart; else one that waits for the GPU, as a collective may hide there."""
    if comparison.outliers:
        return [rank for rank in comparison.outliers if rank in comparison.moved]
    return [one.ranks[0] for one in comparison.groups if one.primitive in _FOR_GPU and one.ranks]


def _running(server: Candidate, items: Sequence[DiagnosticItem], rank: str) -> str | None:
    """The process of *rank*, where it is still the one that was read."""
    running = {process.id for _, process in server.ranks()}
    read = (item.process_id for item in items if who(item) == rank)
    return next((one for one in read if one in running), None)


def _press(kind: str, label: str, server: Candidate, process_id: str = "") -> Press:
    rung = rung_of(kind)
    assert rung is not None
    return Press(rung, label, server.key, process_id)
