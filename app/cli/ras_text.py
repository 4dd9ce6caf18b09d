"""What NCCL's RAS says as a compact report for a terminal."""

from collections.abc import Iterator, Mapping
from typing import Any

from app.cli.summary_text import printable, table

_MOST_ROWS = 12
_GROWTH = {"all": "all", "some": "some", "none": "none", None: "?"}


def ras_text(told: Mapping[str, Any]) -> str:
    """*told* (``ras`` in the document of stacks compare) as lines; unknown is a ``?``."""
    blocks = (_head, _communicators, _not_read)
    return "\n".join(line for block in blocks for line in block(told))


def _head(told: Mapping[str, Any]) -> Iterator[str]:
    many = len(told["readings"])
    yield printable(f"NCCL RAS · {many} answer{'s' if many != 1 else ''}")
    yield printable(f"  {told['says']}")


def _communicators(told: Mapping[str, Any]) -> Iterator[str]:
    if not told["shown"]:
        return
    rows: list[tuple[Any, ...]] = [
        ("communicator", "ranks", "standing", "who", "counts", "grew", "not mapped")
    ]
    for one in told["shown"][:_MOST_ROWS]:
        counts = f"{one['low']:,}" if one["low"] is not None else "?"
        if one["low"] != one["high"]:
            counts = f"{counts}..{one['high']:,} {one['kind']}"
        who = ", ".join(few["label"] or f"rank {few['rank']}" for few in one["few"][:4])
        name = one["communicator"].partition(" ")[0]
        why = one["not_mapped"] or ""
        rows.append((name, one["size"], one["standing"], who, counts, _GROWTH[one["growth"]], why))
    yield from table(rows)
    left = told["communicators"] - len(rows) + 1
    if left > 0:
        yield f"  and {left} more communicators that NCCL says nothing else of"


def _not_read(told: Mapping[str, Any]) -> Iterator[str]:
    for one in told["unread"][:_MOST_ROWS]:
        yield printable(f"  {one['source']}: {one['why']}")
