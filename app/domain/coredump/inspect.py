"""One file, from its first bytes to the document: what it is, whether it is whole, what it says."""

from typing import Any

from app.domain.coredump.document import document, unreadable
from app.domain.coredump.formats import SNIFFED_BYTES, other_format
from app.domain.coredump.reader import read_coredump
from app.domain.coredump.sections import Read
from app.domain.coredump.unpacked import Unpacked, first_bytes
from app.domain.coredump_file import shape_of
from app.errors import Malformed, TooLarge

MOST_UNPACKED_BYTES = 8 * 1024**3
_GZIP, _ELF = b"\x1f\x8b", b"\x7fELF"
_NOTHING = "Nothing can be read of it: the table of what it holds stands at its end."


def inspect_coredump(file: str, path: str, size_bytes: int, read: Read) -> dict[str, Any]:
    """The document of *file*, whatever it is; ``complete`` is false where nothing was read.

    *file* is the name that a person gave, *path* the one that the commands need.
    """
    try:
        head = read(0, SNIFFED_BYTES)
        if not head.startswith(_GZIP):
            return _inspected(file, path, size_bytes, read, head)
        head = first_bytes(read, SNIFFED_BYTES)
        if head[: len(_ELF)] != _ELF[: len(head)]:
            other = other_format(head) or "no ELF file"
            says = f"It is compressed, and inside is {other}."
            return unreadable(file, "not a CUDA coredump", says, None)
        inside = Unpacked(size_bytes, read, max_bytes=MOST_UNPACKED_BYTES)
        return _inspected(file, path, inside.size_bytes, inside.read, head)
    except TooLarge as error:
        return unreadable(file, "too large", error.detail, None)
    except Malformed as error:
        return unreadable(file, "incomplete", f"{error.detail} {_NOTHING}", None)


def _inspected(file: str, path: str, size_bytes: int, read: Read, head: bytes) -> dict[str, Any]:
    other = other_format(head)
    if other is not None:
        return unreadable(file, "not a CUDA coredump", f"This is {other}.", None)
    shape = shape_of(size_bytes, read)
    if shape.kind == "complete":
        return document(file, path, read_coredump(read))
    says = shape.says[:1].upper() + shape.says[1:]
    if shape.kind == "incomplete":
        return unreadable(file, shape.kind, f"{says}. {_NOTHING}", shape.needs_bytes)
    return unreadable(file, shape.kind, f"{says}.", None)
