"""Whether a file is one of recorded requests, told by its first bytes: reading it decides.

Saying yes costs a reading apart from us that may end as "cannot be read"; the file is kept as
evidence either way. Nothing is unpacked beyond ``HEAD_BYTES``.
"""

import re
import struct
import zlib
from collections.abc import Iterator

HEAD_BYTES = 64 * 1024
_GZIP, _ZSTD, _ZIP = b"\x1f\x8b", b"\x28\xb5\x2f\xfd", b"PK\x03\x04"
_GZIP_ONLY = 31  # zlib's wbits
_RAW = -15
_STORED, _DEFLATED = 0, 8
_MOST_ENTRIES = 16  # of an archive that are looked at
_ZIP_ENTRY = struct.Struct("<4sHHHHHIIIHH")
_SIZE_FOLLOWS = 0x08  # flag of an entry: how long it is stands behind it
_PACKED_SUFFIX = re.compile(r"\.(gz|zst|zstd)$")
_DUMP_SUFFIX = re.compile(r"\.(pkl|pickle|jsonl|ndjson)$")
# A pickle of protocol 2 or later begins with PROTO; then comes a frame, or a container or global.
_PICKLE = re.compile(rb"\x80[\x02-\x05](\x95.{7}\x00|[\]\}\)\(c\x8c])", re.DOTALL)
# One of protocol 0 or 1: an empty container that is put into the memo.
_OLD_PICKLE = re.compile(rb"(\((lp|dp)\d+\n|[\]\}]q[\x00\x01])")
_FIELDS = re.compile(
    rb'"(input_ids|messages|prompt|sampling_params|payload|request_parameters)"\s*:'
)
_TEXT = re.compile(rb'\{\s*"text"\s*:(?!.*"meta_info"\s*:)', re.DOTALL)  # and no answer
_LOG = re.compile(rb'(Receive|Receive OpenAI|Finish): obj=|"request\.(received|finished)')


def is_recorded(head: bytes, name: str) -> bool:
    """Whether the file that begins with *head* is to be read as a dump; *name* is a hint."""
    plain = _PACKED_SUFFIX.sub("", name.lower())
    if _DUMP_SUFFIX.search(plain):
        return True
    if head.startswith(_ZIP):
        return any(_is_plain(inside, entry) for entry, inside in _entries(head))
    if head.startswith(_GZIP):
        return _is_plain(_unpacked(head, _GZIP_ONLY), plain)
    if head.startswith(_ZSTD):
        return ".json" in plain  # what is inside cannot be seen from here
    return _is_plain(head, plain)


def _is_plain(head: bytes, name: str) -> bool:
    if _DUMP_SUFFIX.search(_PACKED_SUFFIX.sub("", name.lower())):
        return True
    if _PICKLE.match(head) or _OLD_PICKLE.match(head):
        return True
    text = head.lstrip()
    if text.startswith((b"{", b"[")) and (_FIELDS.search(text) or _TEXT.match(text)):
        return True
    return _LOG.search(head) is not None


def _unpacked(packed: bytes, wbits: int) -> bytes:
    try:
        return zlib.decompressobj(wbits).decompress(packed, HEAD_BYTES)
    except zlib.error:
        return b""


def _entries(head: bytes) -> Iterator[tuple[str, bytes]]:
    """The first entries of a zip whose headers lie in *head*, each with its first bytes."""
    offset = 0
    for _ in range(_MOST_ENTRIES):
        if len(head) < offset + _ZIP_ENTRY.size or not head.startswith(_ZIP, offset):
            return
        _, _, flags, method, _, _, _, packed_bytes, _, name_bytes, extra_bytes = (
            _ZIP_ENTRY.unpack_from(head, offset)
        )
        at = offset + _ZIP_ENTRY.size
        name = head[at : at + name_bytes].decode("utf-8", "replace")
        at += name_bytes + extra_bytes
        unknown = flags & _SIZE_FOLLOWS
        packed = head[at:] if unknown else head[at : at + packed_bytes]
        yield name, _inside(packed, method)
        if unknown:
            return
        offset = at + packed_bytes


def _inside(packed: bytes, method: int) -> bytes:
    if method == _STORED:
        return packed[:HEAD_BYTES]
    return _unpacked(packed, _RAW) if method == _DEFLATED else b""
