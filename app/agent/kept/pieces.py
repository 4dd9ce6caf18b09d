"""Bytes of what the agent holds, a piece at a time: answers are signed, so they must be whole."""

from http import HTTPStatus
from urllib.parse import quote

from starlette.responses import Response

from app.agent.kept.files import AgentFiles
from app.errors import Rejected, TooLarge
from app.protocol.messages import FileTaken
from app.protocol.signing import MAX_PIECE_BYTES

_MIB = 1024**2


def piece(files: AgentFiles, file_id: str, asked: str | None) -> Response:
    """The part that the Range header *asked* names, 8 MiB of it at most; small files whole.

    Raises NotFound, Damaged, Rejected for a range of another form, TooLarge without one.
    """
    opened, taken = files.open_file(file_id)
    with opened:
        if asked is None and taken.size_bytes > MAX_PIECE_BYTES:
            raise TooLarge(
                f"The file is larger than {MAX_PIECE_BYTES // _MIB} MiB.",
                fix="Ask for it in ranges.",
            )
        if asked is None:
            return _answer(taken, opened.read(), HTTPStatus.OK)
        start, end = _span(asked, taken.size_bytes)
        if start >= end:
            told = {"Content-Range": f"bytes */{taken.size_bytes}"}
            return Response(status_code=HTTPStatus.REQUESTED_RANGE_NOT_SATISFIABLE, headers=told)
        opened.seek(start)
        answer = _answer(taken, opened.read(end - start), HTTPStatus.PARTIAL_CONTENT)
        answer.headers["Content-Range"] = f"bytes {start}-{end - 1}/{taken.size_bytes}"
        return answer


def starts_at(asked: str | None) -> int:
    """Where the piece begins that the Range header *asked* names, 0 without one."""
    first = (asked or "").removeprefix("bytes=").partition("-")[0]
    return int(first[:20]) if first.isascii() and first.isdigit() else 0


def _span(asked: str, size_bytes: int) -> tuple[int, int]:
    """From where to before where; the piece may be shorter than asked for (RFC 9110 §15.3.7)."""
    first, dash, last = asked.removeprefix("bytes=").partition("-")
    digits = (first + last).isascii() and (first + last or "x").isdigit() and len(asked) <= 60
    if not asked.startswith("bytes=") or not dash or not digits or not first:
        raise Rejected("The range cannot be read.", fix="Ask for one range: bytes=FIRST-LAST.")
    start = int(first)
    end = min(size_bytes, int(last) + 1) if last else size_bytes
    return start, min(end, start + MAX_PIECE_BYTES)


def _answer(taken: FileTaken, body: bytes, status: HTTPStatus) -> Response:
    name = quote(taken.name, safe="")
    headers = {
        "Content-Disposition": f"attachment; filename*=UTF-8''{name}",
        "X-Content-Type-Options": "nosniff",
        "Accept-Ranges": "bytes",
    }
    return Response(body, status, headers, "application/octet-stream")
