"""Which kind of file of requests some bytes are, told by the bytes and not by the name."""

from collections.abc import Container, Iterator
from dataclasses import dataclass
from mmap import mmap
from typing import Any

import orjson

from app.domain.dumps.json_lines import MAX_LINE_BYTES, JsonLines
from app.domain.dumps.mistaken import LOOKED_AT_BYTES, is_text, mistaken
from app.domain.dumps.pickled_dump import PickledDump
from app.domain.dumps.recorded import Dump, RecordedRequest
from app.domain.dumps.request_log import JSON_MARKS, TEXT_MARKS, RequestLog
from app.domain.dumps.source import Source, States
from app.domain.pickled.reading import read_pickle
from app.domain.redaction import Fingerprint

Buffer = bytes | mmap
_EXPORTED = b'"request_parameters"'
_PICKLE = b"\x80"
_EMPTY = (
    "The file is empty: 0 bytes. SGLang before 0.5.12 leaves that behind when it could not pickle"
    " the requests; no request is in it."
)
_PLAIN_TEXT = "Not a dump but a text: neither JSON nor a request log of SGLang, and no pickle."


@dataclass(frozen=True, slots=True)
class Nothing:
    """A file without any request that could be read: what it is instead, and why."""

    format: str
    why: str

    def requests(self, wanted: Container[int] | None = None) -> Iterator[RecordedRequest]:
        return iter(())

    def dump(self, states: States) -> Dump:
        return Dump("unreadable", self.format, problems=(self.why,))


def source_of(buffer: Buffer, called: str, fingerprint: Fingerprint) -> Source:
    """The requests in *buffer*; *called* is the file's name, a hint and no more."""
    head = bytes(buffer[:LOOKED_AT_BYTES])
    if not head:
        return Nothing("empty file", _EMPTY)
    if head.startswith(_PICKLE):
        return PickledDump(read_pickle(buffer), called, fingerprint)
    if other := mistaken(head):
        return Nothing(*other)
    return _text(buffer, head) or _old_pickle(buffer, head, called, fingerprint)


def _text(buffer: Buffer, head: bytes) -> Source | None:
    """A log or JSON; None where it is neither. What is in braces from the start is no text log:
    a prompt may quote one.
    """
    start = head.removeprefix(b"\xef\xbb\xbf").lstrip()
    braced = start.startswith(b"{")
    if braced and not any(mark in head for mark in JSON_MARKS):
        return _json(buffer, start)
    if not braced and _has(buffer, TEXT_MARKS):
        return RequestLog(lines_of(buffer))
    if _has(buffer, JSON_MARKS):
        return RequestLog(lines_of(buffer), "request log of SGLang, JSON")
    return _json(buffer, start) if start.startswith(b"[") else None


def _has(buffer: Buffer, marks: tuple[bytes, ...]) -> bool:
    return any(buffer.find(mark) >= 0 for mark in marks)


def _old_pickle(buffer: Buffer, head: bytes, called: str, fingerprint: Fingerprint) -> Source:
    """Protocols 0 and 1 have no mark of their own."""
    pickled = read_pickle(buffer)
    if pickled.problem and pickled.problem.kind == "not-a-pickle" and is_text(head):
        return Nothing("text", _PLAIN_TEXT)
    return PickledDump(pickled, called, fingerprint)


def _json(buffer: Buffer, start: bytes) -> Source:
    """JSON lines, or one value, be it over several lines: a payload or a list of them."""
    first = next((line for line in lines_of(buffer) if line.strip()), b"")
    alone = not buffer[len(first) : len(first) + LOOKED_AT_BYTES].strip()
    value = _value(first)
    if value is None:
        value, alone = _value(buffer[: MAX_LINE_BYTES + 1]), True
    if isinstance(value, list):
        return JsonLines(lambda: map(orjson.dumps, value), "JSON list of requests")
    if isinstance(value, dict) and alone:
        return JsonLines(lambda: [orjson.dumps(value)], "JSON payload")
    if value is None and start.startswith(b"["):
        return Nothing("text", "A text without any request in it: neither JSON nor a request log.")
    exported = _EXPORTED in first
    form = "request metrics exported by SGLang" if exported else "JSON lines"
    return JsonLines(lambda: lines_of(buffer), form)


def _value(text: bytes) -> Any:  # noqa: ANN401  (whatever JSON says)
    if len(text) > MAX_LINE_BYTES:
        return None
    try:
        return orjson.loads(text)
    except orjson.JSONDecodeError:
        return None


def lines_of(buffer: Buffer) -> Iterator[bytes]:
    """The lines of *buffer*, without their ends; the text is never copied as a whole."""
    start, size = 0, len(buffer)
    while start < size:
        end = buffer.find(b"\n", start)
        end = size if end < 0 else end
        yield buffer[start : min(end, start + MAX_LINE_BYTES + 1)]
        start = end + 1
