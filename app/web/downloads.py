"""Downloads of stored files: always an attachment, whole or one range, verified when whole."""

from collections.abc import Iterator
from dataclasses import dataclass
from itertools import chain
from urllib.parse import quote

from fastapi import Response
from fastapi.responses import StreamingResponse

from app.store.artifacts import ArtifactStore

# Whatever a stored file claims to be, a browser neither shows it nor runs it.
_INERT = {
    "Content-Security-Policy": "sandbox; default-src 'none'",
    "X-Content-Type-Options": "nosniff",
    "Accept-Ranges": "bytes",
}


@dataclass(frozen=True, slots=True)
class Span:
    """The bytes from *start* to before *end*."""

    start: int
    end: int


def asked_span(header: str | None, size_bytes: int) -> Span | None:
    """What a Range header asks for (RFC 9110 §14); None for the whole file.

    Several ranges, and what is no byte range, count as no range. Raises ValueError where
    nothing of the file lies in the range.
    """
    unit, _, ranges = (header or "").partition("=")
    first, dash, last = ranges.strip().partition("-")
    digits = (first + last).isascii() and (first + last).isdigit()
    if unit.strip().lower() != "bytes" or not dash or not digits or len(ranges) > 50:
        return None
    start = int(first) if first else max(0, size_bytes - int(last))
    end = min(size_bytes, int(last) + 1) if first and last else size_bytes
    if first and last and int(last) < int(first):
        return None
    if start >= end:
        raise ValueError(ranges)
    return Span(start, end)


def disposition(name: str) -> str:
    """A Content-Disposition that saves the file as *name* (RFC 6266, RFC 8187)."""
    plain = "".join(char if char.isascii() and char.isprintable() else "_" for char in name)
    plain = plain.replace('"', "_").replace("\\", "_").replace("/", "_").replace("%", "_")
    spelled = quote(name.encode(errors="replace").decode(), safe="")
    return f"attachment; filename=\"{plain}\"; filename*=UTF-8''{spelled}"


def download(
    artifacts: ArtifactStore, sha256: str, *, name: str, span: str | None, if_range: str | None
) -> Response:
    """The stored file as an attachment, or the part of it that the Range header *span* asks for.

    Raises NotFound or, for a small file, Damaged; a large one that is damaged ends too early.
    """
    size_bytes = artifacts.size(sha256)
    headers = {**_INERT, "Content-Disposition": disposition(name), "ETag": f'"{sha256}"'}
    fresh = if_range is None or if_range == headers["ETag"]
    try:
        asked = asked_span(span, size_bytes) if fresh else None
    except ValueError:
        return Response(status_code=416, headers={"Content-Range": f"bytes */{size_bytes}"})
    start, end = (asked.start, asked.end) if asked else (0, size_bytes)
    headers["Content-Length"] = str(end - start)
    if asked:
        headers["Content-Range"] = f"bytes {start}-{end - 1}/{size_bytes}"
    return StreamingResponse(
        _begun(artifacts.stream(sha256, start, end)),
        status_code=206 if asked else 200,
        headers=headers,
        media_type="application/octet-stream",
    )


def _begun(pieces: Iterator[bytes]) -> Iterator[bytes]:
    """*pieces* with the first one read already, so that what is missing is told as an error."""
    return chain([next(pieces, b"")], pieces)
