"""Documents of several dumps beside each other: shortened to be kept, and compared."""

from collections.abc import Mapping
from typing import Any

from app.domain.coredump.ranks import RankPlace, busy_in, compare_places, faulted_in

MOST_KERNELS = 64
MOST_PLACES = 32  # of one kernel, most threads first
MOST_EXCEPTIONS = 256
_MOST_TEXT = 500

Document = Mapping[str, Any]  # of ``coredump inspect``


def shortened(document: Document) -> dict[str, Any]:
    """*document* as it is kept beside others: first kernels, places and exceptions, and counts."""
    kernels = [
        {**one, "pcs": one["pcs"][:MOST_PLACES], "pcs_total": len(one["pcs"])}
        for one in document["kernels"][:MOST_KERNELS]
    ]
    return {
        **document,
        "kernels": kernels,
        "exceptions": document["exceptions"][:MOST_EXCEPTIONS],
        "exceptions_total": len(document["exceptions"]),
    }


def compared(dumps: Mapping[str, Document | str]) -> dict[str, Any]:
    """What the dumps of ranks say together, as plain JSON; a text is why there is no dump."""
    comparison = compare_places({rank: _place(one) for rank, one in dumps.items()})
    return {
        "says": comparison.says,
        "groups": [
            {
                "ranks": list(one.ranks),
                "place": one.place,
                "waits": one.waits,
                "faulted": one.faulted,
            }
            for one in comparison.groups
        ],
        "missing": dict(comparison.missing),
    }


def _place(document: Document | str) -> RankPlace | str:
    if isinstance(document, str):
        return document[:_MOST_TEXT]
    if not document["complete"]:
        return str(document["note"])[:_MOST_TEXT]
    if document["exceptions"]:
        first = document["exceptions"][0]
        return faulted_in(first["name"], first["kernel"] or first["function"])
    busy = [one for one in document["kernels"] if one["sms"]]
    return busy_in([(one["place"], bool(one["collective"])) for one in busy])
