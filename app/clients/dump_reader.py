"""The program that reads one file of requests, started by ``dumps`` in a process of its own."""

import codecs
import gc
import mmap
import os
import sys
from base64 import b64encode
from collections.abc import Mapping
from functools import partial
from typing import Any

import orjson

from app.clients.confined import confined, send_line
from app.domain.dumps.export import entry, shown
from app.domain.dumps.recognise import Nothing, source_of
from app.domain.dumps.recorded import Row, row
from app.domain.dumps.source import Source
from app.domain.dumps.summary import Tally, shown_indexes, wrapped
from app.domain.dumps.unpacking import Unpacked, unpacked
from app.domain.pickled.values import Buffer
from app.domain.redaction import Fingerprint, keyed_fingerprint

_ROWS_A_LINE = 1000
_PIECE_BYTES = 48 * 1024


def answer(file: Buffer, _descriptor: int, asked: Mapping[str, Any]) -> dict[str, Any]:
    """The document of *file*, with what is asked sent before it.

    ``want`` is "summary", "entries" or "content". For a summary all rows are sent in lists where
    ``rows`` says so, and ``most`` requests are listed. Entries are requests one by one, those in
    ``indexes`` or all, at ``tier``. The content is what is packed, in base64, piece by piece.
    """
    gc.disable()  # a dump is a tree: looking for cycles in it takes as long as reading it
    fingerprint = keyed_fingerprint(bytes.fromhex(asked["key"]))
    inside = unpacked(file, asked["most_unpacked_bytes"], asked["member"])
    if asked["want"] == "content":
        return _content(inside)
    source = _source(inside, asked["called"], fingerprint)
    if asked["want"] == "entries":
        return _entries(source, inside, asked, fingerprint)
    return _summary(source, inside, asked, fingerprint)


def _content(inside: Unpacked) -> dict[str, Any]:
    """Whether what is packed is all there, and why not."""
    if inside.why_not is None:
        for start in range(0, len(inside.content), _PIECE_BYTES):
            send_line(b64encode(inside.content[start : start + _PIECE_BYTES]))
    return {"truncated": inside.truncated, "why_not": inside.why_not}


def mapped(descriptor: int) -> Buffer:
    """The file at *descriptor*, of which only what is looked at takes memory."""
    size_bytes = os.fstat(descriptor).st_size
    return mmap.mmap(descriptor, 0, access=mmap.ACCESS_READ) if size_bytes else b""


def _source(inside: Unpacked, called: str, fingerprint: Fingerprint) -> Source:
    if inside.why_not is not None:
        return Nothing(f"packed with {inside.wrapped}", inside.why_not)
    return source_of(inside.content, called, fingerprint)


def _summary(
    source: Source, inside: Unpacked, asked: Mapping[str, Any], fingerprint: Fingerprint
) -> dict[str, Any]:
    tally, first = _all_rows(source, most=asked["most"], send=asked["rows"])
    dump = source.dump(tally.states)
    chosen = frozenset(shown_indexes(tally.suspects(dump), first, asked["most"]))
    requests = source.requests(chosen) if chosen else ()
    return {
        **wrapped(tally.document(dump), inside),
        "requests": [shown(one, asked["tier"], fingerprint) for one in requests],
    }


def _all_rows(source: Source, *, most: int, send: bool) -> tuple[Tally, list[int]]:
    """Everything that the rows add up to, and the first *most* indexes."""
    tally, first, batch = Tally(), list[int](), list[Row]()
    for request in source.requests():
        own = row(request)
        tally.see(own)
        if len(first) < most:
            first.append(own["index"])
        if send:
            batch.append(own)
            if len(batch) == _ROWS_A_LINE:
                send_line(orjson.dumps(batch))
                batch.clear()
    if batch:
        send_line(orjson.dumps(batch))
    return tally, first


def _entries(
    source: Source, inside: Unpacked, asked: Mapping[str, Any], fingerprint: Fingerprint
) -> dict[str, Any]:
    tally = Tally()
    wanted = None if asked["indexes"] is None else frozenset(asked["indexes"])
    for request in source.requests(wanted):
        tally.see(row(request))
        send_line(orjson.dumps(entry(request, asked["tier"], fingerprint)))
    return wrapped(tally.document(source.dump(tally.states)), inside)


if __name__ == "__main__":
    # Both take a descriptor, and none is to be had once it is shut in; nothing is looked at yet.
    for encoding in ("cp437", "raw_unicode_escape", "unicode_escape", "latin-1", "ascii"):
        codecs.lookup(encoding)
    confined(partial(answer, mapped(sys.stdin.fileno())))
