"""Requests that are in several files: a client that sent again, or dumps that overlap."""

from collections.abc import Mapping, Sequence
from typing import Any

from app.domain.dumps.recorded import Row

_MOST_TOLD = 1000
_MOST_ADDED = 20  # suspects of one file
_MOST_KEPT = 2_000_000


class SharedIdentifiers:
    """Takes the rows of file after file, and knows which identifiers came again."""

    def __init__(self) -> None:
        self._of_file: dict[str, int] = {}
        self._files: list[str] = []
        self._places: dict[str, list[tuple[int, int]]] = {}

    def take(self, rows: Sequence[Row]) -> None:
        """Rows of the file at hand."""
        for row in rows:
            if (rid := row["rid"]) is not None and len(self._of_file) < _MOST_KEPT:
                self._of_file.setdefault(rid, row["index"])

    def next_file(self, name: str) -> None:
        """The rows so far were of the file *name*."""
        for rid, index in self._of_file.items():
            self._places.setdefault(rid, []).append((len(self._files), index))
        self._of_file = {}
        self._files.append(name)

    def in_several(self) -> list[dict[str, Any]]:
        """Each identifier that is in more than one file, and where; the first 1000."""
        return [
            {"rid": rid, "places": [{"file": self._files[at], "index": i} for at, i in places]}
            for rid, places in self._places.items()
            if len(places) > 1
        ][:_MOST_TOLD]

    def added_to(self, document: Mapping[str, Any]) -> Mapping[str, Any]:
        """*document* with the requests of its file that are in others too among its suspects."""
        own = self._files.index(document["file"])
        found = [dict(suspect) for suspect in document["suspects"]]
        by_index = {suspect["index"]: suspect for suspect in found}
        for rid, places in self._places.items():
            index = dict(places).get(own)
            if index is None or len(places) == 1:
                continue
            also = next(self._files[at] for at, _ in places if at != own)
            why = f"its identifier is in {also} too"
            if index in by_index:
                by_index[index]["why"] += f"; {why}"
            elif len(found) < len(document["suspects"]) + _MOST_ADDED:
                found.append({"index": index, "rid": rid, "why": why})
        return {**document, "suspects": found}
