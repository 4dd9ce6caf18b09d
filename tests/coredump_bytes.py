"""CUDA coredumps made up for tests: the structure of a real one, with nothing inside."""

import struct

MACHINE_CUDA, TYPE_CORE = 190, 4
_ROW = struct.Struct("<IIQQQQIIQQ")
_HEADER_BYTES = 64
_META, _DEVICES, _GLOBAL = 0x8000_0016, 0x8000_0009, 0x8000_0002
_MOST_COUNTED = 0xFF00  # SHN_LORESERVE: more sections are counted in the first row


def coredump_bytes(
    padding_bytes: int = 4096,
    *,
    machine: int = MACHINE_CUDA,
    kind: int = TYPE_CORE,
    sections: int = 3,
    first_section: int = _META,
) -> bytes:
    """A whole coredump whose last section holds *padding_bytes*, which are never zero."""
    payloads = [b"meta" * 8, *[b"devices" * 16] * (sections - 2), b"\xa5" * padding_bytes]
    kinds = [first_section, *[_DEVICES] * (sections - 2), _GLOBAL]
    if first_section < 0x8000_0000:
        kinds = [first_section] * sections
    rows, body, offset = [], bytearray(), _HEADER_BYTES
    for kind_of_section, payload in zip(kinds, payloads, strict=True):
        rows.append(_ROW.pack(0, kind_of_section, 0, 0, offset, len(payload), 0, 0, 8, 0))
        body += payload
        offset += len(payload)
    count = len(rows) + 1
    counted = count if count < _MOST_COUNTED else 0
    rows.insert(0, _ROW.pack(0, 0, 0, 0, 0, 0 if counted else count, 0, 0, 0, 0))
    head = b"\x7fELF\x02\x01\x01\x33\x07" + b"\0" * 7
    head += struct.pack(
        "<HHIQQQIHHHHHH", kind, machine, 1, 0, 0, offset, 0, 64, 0, 0, 64, counted, 0
    )
    return bytes(head + body + b"".join(rows))
