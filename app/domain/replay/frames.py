"""Server-sent events out of the bytes of a stream, as they come."""

_FIELD = b"data:"
_LINE_END, _CARRIAGE_RETURN, _EVENT_END = b"\n", b"\r", b"\n\n"


class Frames:
    """Cuts a stream into its events; what is not whole yet is kept.

    No longer than *most_bytes* in one event: ``OverflowError`` says that it would be.
    """

    def __init__(self, most_bytes: int) -> None:
        self._most_bytes = most_bytes
        self._parts: list[bytes] = []
        self._kept_bytes = 0

    def feed(self, piece: bytes) -> list[bytes]:
        """The data of the events that end in *piece*, in order. Raises OverflowError."""
        if _LINE_END not in piece:  # an event is one line: the middle of a long one is not searched
            self._keep(piece)
            return []
        if self._parts:
            piece = b"".join((*self._parts, piece))
            self._parts, self._kept_bytes = [], 0
        if _CARRIAGE_RETURN in piece:
            piece = piece.replace(b"\r\n", b"\n")
        *whole, rest = piece.split(_EVENT_END)
        if rest:
            self._keep(rest)
        if len(piece) > self._most_bytes and max(map(len, whole), default=0) > self._most_bytes:
            raise OverflowError
        return [data for event in whole if (data := _data_of(event))]

    def _keep(self, piece: bytes) -> None:
        self._kept_bytes += len(piece)
        if self._kept_bytes > self._most_bytes:
            raise OverflowError
        self._parts.append(piece)


def _data_of(event: bytes) -> bytes:
    """What the event carries; empty for a comment or an event without data."""
    if _LINE_END not in event:
        return event[len(_FIELD) :].strip() if event.startswith(_FIELD) else b""
    lines = (line for line in event.split(b"\n") if line.startswith(_FIELD))
    return b"\n".join(line[len(_FIELD) :].strip() for line in lines)
