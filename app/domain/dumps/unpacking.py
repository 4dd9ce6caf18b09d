"""Dumps that were compressed: unpacked into memory.

What an archive claims about sizes is not believed; what comes out of it is counted.
"""

from collections.abc import Iterator
from dataclasses import dataclass

from app.domain.dumps.scalars import escaped
from app.domain.dumps.streams import (
    BROKEN,
    Buffer,
    TooMuch,
    gathered,
    gunzipped,
    unzstd,
)
from app.domain.dumps.zipped import DAMAGED, MOST_ENTRIES, Archive

_GZIP, _ZIP, _ZSTD = b"\x1f\x8b", b"PK\x03\x04", b"\x28\xb5\x2f\xfd"
_EMPTY_ZIP = b"PK\x05\x06"


@dataclass(frozen=True, slots=True)
class Unpacked:
    """What was inside. *wrapped* names what it was packed with; None: it was not packed.

    *members* are the names of the files in an archive; *why_not* why nothing came out;
    *truncated*: the packed data end before their end, and *content* is what came before.
    """

    content: Buffer = b""
    wrapped: str | None = None
    members: tuple[str, ...] = ()
    why_not: str | None = None
    truncated: bool = False


def unpacked(buffer: Buffer, most_bytes: int, member: int | None = None) -> Unpacked:
    """What *buffer* holds when it is compressed, and itself when it is not.

    Of a zip archive with several files, *member* is the one to unpack, by its place among
    ``members``; None gives their names alone.
    """
    head = bytes(buffer[:4])
    if head.startswith(_GZIP):
        return _stream("gzip", gunzipped(buffer), len(buffer), most_bytes)
    if head in (_ZIP, _EMPTY_ZIP):
        return _of_zip(buffer, most_bytes, member)
    if head == _ZSTD:
        return _stream("zstd", unzstd(buffer), len(buffer), most_bytes)
    return Unpacked(buffer)


def _stream(name: str, pieces: Iterator[bytes], packed_bytes: int, most_bytes: int) -> Unpacked:
    try:
        content, ended = gathered(pieces, packed_bytes, most_bytes)
    except TooMuch as error:
        return Unpacked(wrapped=name, why_not=str(error))
    except BROKEN as error:
        return Unpacked(wrapped=name, why_not=f"The {name} data are damaged: {_short(error)}.")
    return Unpacked(content, name, truncated=not ended)


def _of_zip(buffer: Buffer, most_bytes: int, member: int | None) -> Unpacked:
    names: tuple[str, ...] = ()
    try:
        archive = Archive(buffer)
        names = archive.names()
        if why := _unfit(names, member):
            return Unpacked(wrapped="zip", members=names[:MOST_ENTRIES], why_not=why)
        content, ended = archive.content(member or 0, most_bytes)
    except TooMuch as error:
        return Unpacked(wrapped="zip", members=names, why_not=str(error))
    except DAMAGED as error:
        why = f"The zip archive is damaged: {_short(error)}."
        return Unpacked(wrapped="zip", members=names, why_not=why)
    return Unpacked(content, "zip", names, truncated=not ended)


def _unfit(names: tuple[str, ...], member: int | None) -> str | None:
    """Why no file can be taken out of an archive with *names*; None when one can."""
    if not names:
        return "The zip archive has no file in it."
    if len(names) > MOST_ENTRIES:
        return f"Refused: the zip archive has more than {MOST_ENTRIES} files."
    if member is None and len(names) > 1:
        return f"The zip archive has {len(names)} files: each is to be read by itself."
    if member is not None and member >= len(names):
        return f"The zip archive has {len(names)} files only."
    return None


def _short(error: Exception) -> str:
    return escaped(str(error) or type(error).__name__, 80)
