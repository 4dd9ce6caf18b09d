"""Compressed bytes, unpacked piece by piece up to what a dump can honestly be."""

import sys
import zlib
from collections.abc import Iterator
from mmap import mmap

if sys.version_info >= (3, 14):
    from compression import zstd
else:
    from backports import zstd

Buffer = bytes | mmap

STEP_BYTES = 1024 * 1024
_GZIP = b"\x1f\x8b"
_WITH_GZIP_HEADER = 31  # zlib's wbits
_MIB = 1024 * 1024
_FREE_BYTES = 64 * _MIB  # that may come out of anything
_MOST_RATIO = 100  # dumps shrink to a fifth; what shrinks to a thousandth is made to fill memory


class TooMuch(ValueError):
    """More comes out than a dump can be."""


BROKEN = (zlib.error, EOFError, zstd.ZstdError)


def gathered(pieces: Iterator[bytes], packed_bytes: int, most_bytes: int) -> tuple[bytes, bool]:
    """All of *pieces*, and whether they came to their end; raises TooMuch for a bomb.

    Raises what *pieces* raises when nothing came before it.
    """
    content = bytearray()
    try:
        for piece in pieces:
            content += piece
            _refuse_bomb(len(content), packed_bytes, most_bytes)
    except BROKEN:
        if not content:
            raise
        return bytes(content), False
    return bytes(content), True


def _refuse_bomb(unpacked_bytes: int, packed_bytes: int, most_bytes: int) -> None:
    if unpacked_bytes > most_bytes:
        raise TooMuch(f"Refused: it unpacks to more than {most_bytes // _MIB} MiB.")
    if unpacked_bytes > max(_FREE_BYTES, packed_bytes * _MOST_RATIO):
        raise TooMuch(
            f"Refused: it unpacks to more than {_MOST_RATIO} times its size, as no dump does."
        )


def gunzipped(buffer: Buffer) -> Iterator[bytes]:
    """The unpacked bytes of all gzip members; raises EOFError where the last one is cut off."""
    inflate = zlib.decompressobj(_WITH_GZIP_HEADER)
    at, size = 0, len(buffer)
    while at < size:
        packed = buffer[at : at + STEP_BYTES]
        at += len(packed)
        while packed:
            yield inflate.decompress(packed, STEP_BYTES)
            packed = inflate.unconsumed_tail
            if inflate.eof:
                packed = inflate.unused_data
                if not packed.startswith(_GZIP):
                    return  # padding behind the data, as gzip itself allows
                inflate = zlib.decompressobj(_WITH_GZIP_HEADER)
    if not inflate.eof:
        raise EOFError("it ends too soon")


def unzstd(buffer: Buffer) -> Iterator[bytes]:
    """The unpacked bytes of all frames; raises EOFError where the last one is cut off."""
    frame = zstd.ZstdDecompressor()
    at, size = 0, len(buffer)
    while at < size or not frame.needs_input:
        packed = b""
        if frame.needs_input:
            packed = buffer[at : at + STEP_BYTES]
            at += len(packed)
        yield frame.decompress(packed, STEP_BYTES)
        if frame.eof:
            at -= len(frame.unused_data)
            if at >= size:
                return
            frame = zstd.ZstdDecompressor()
    raise EOFError("it ends too soon")
