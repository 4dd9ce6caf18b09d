"""Server-sent events out of the bytes of a stream, as they come."""

_FIELD = b"data:"
_LINE_END, _CARRIAGE_RETURN, _EVENT_END = b"\n", b"\r", b"\n\n"
_EVENT_ENDS = (_EVENT_END, b"\n\r\n")
_LONGEST_END = 3


class Frames:
    """Cuts a stream into its events; what is not whole yet is kept.

    No longer than *most_bytes* in one event: ``OverflowError`` says that it would be.
    """

    def __init__(self, most_bytes: int) -> None:
        self._most_bytes = most_bytes
        self._parts: list[bytes] = []
        self._kept_bytes = 0
        self._tail = b""  # of what is kept

    def feed(self, piece: bytes) -> list[bytes]:
        """The data of the events that end in *piece*, in order. Raises OverflowError."""
        if not self._ends_an_event(piece):  # what is kept is put together once, when it is whole
            self._keep(piece)
            return []
        if self._parts:
            piece = b"".join((*self._parts, piece))
            self._parts, self._kept_bytes, self._tail = [], 0, b""
        if _CARRIAGE_RETURN in piece:
            piece = piece.replace(b"\r\n", b"\n")
        *whole, rest = piece.split(_EVENT_END)
        if rest:
            self._keep(rest)
        if len(piece) > self._most_bytes and max(map(len, whole), default=0) > self._most_bytes:
            raise OverflowError
        return [data for event in whole if (data := _data_of(event))]

    def _ends_an_event(self, piece: bytes) -> bool:
        if piece.endswith(_EVENT_END):  # as most do
            return True
        if _LINE_END not in piece:
            return False
        piece = self._tail + piece
        return any(end in piece for end in _EVENT_ENDS)

    def _keep(self, piece: bytes) -> None:
        self._kept_bytes += len(piece)
        if self._kept_bytes > self._most_bytes:
            raise OverflowError
        self._parts.append(piece)
        self._tail = (self._tail + piece[-_LONGEST_END:])[-_LONGEST_END:]


def _data_of(event: bytes) -> bytes:
    """What the event carries; empty for a comment or an event without data."""
    if _LINE_END not in event:
        return event[len(_FIELD) :].strip() if event.startswith(_FIELD) else b""
    lines = (line for line in event.split(b"\n") if line.startswith(_FIELD))
    return b"\n".join(line[len(_FIELD) :].strip() for line in lines)
