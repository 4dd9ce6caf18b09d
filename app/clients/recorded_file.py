"""A file of requests, opened for a replay: read once, apart, then asked for one by one.

The requests lie in a file without a name meanwhile, as a recording may be larger than memory.
"""

import os
import tempfile
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any, Self

from app.clients.dumps import Reading, export_file
from app.domain.dumps.recorded import RecordedRequest
from app.domain.replay.reading import request_of_line
from app.errors import Malformed, NotFound, Rejected

_BY_ITS_PATH = Reading()


class RecordedFile:
    """The requests of *file* as they are, tier T2; gone once it is left.

    *document* is that of ``dump summarize``, without its requests. Raises Rejected where nothing
    of the file could be read, and NotFound; what could be salvaged is there otherwise.
    """

    def __init__(self, file: Path | int, *, reading: Reading = _BY_ITS_PATH) -> None:
        self._spooled = tempfile.TemporaryFile()  # noqa: SIM115  (closed by __exit__)
        self._lines: list[tuple[int, int]] = []  # offset and length of each
        self._line_of: dict[int, int] = {}  # by the index of the request
        self.document: Mapping[str, Any] = export_file(file, self._take, "T2", reading=reading)
        self._spooled.flush()
        if not self._lines:
            self._spooled.close()
            problems = self.document["problems"] or ["It has no requests."]
            raise Rejected(f"{self.document['file']}: {problems[0]}")

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self._spooled.close()

    def __len__(self) -> int:
        return len(self._lines)

    def requests(self) -> Iterator[RecordedRequest]:
        """All of them, in the order of the file; one that makes no sense as a request is left."""
        for number in range(len(self._lines)):
            try:
                request = self._request(number)
            except Malformed:
                continue
            self._line_of.setdefault(request.index, number)
            yield request

    def request_at(self, index: int) -> RecordedRequest:
        """The first request with that index, among those that ``requests`` has given."""
        if index not in self._line_of:
            raise NotFound(f"There is no request {index} in the file.")
        return self._request(self._line_of[index])

    def _take(self, line: bytes) -> None:
        offset = sum(self._lines[-1]) if self._lines else 0
        self._lines.append((offset, len(line)))
        self._spooled.write(line)

    def _request(self, number: int) -> RecordedRequest:
        offset, length = self._lines[number]
        return request_of_line(os.pread(self._spooled.fileno(), length, offset), number)
