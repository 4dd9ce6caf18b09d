"""What a file is that is no CUDA coredump of this machine's kind, in exact words."""

import struct

_STARTS = (
    (b"PK\x03\x04", "a zip archive: unpack it and name the coredump inside"),
    (b"PK\x05\x06", "an empty zip archive"),
    (b"\x28\xb5\x2f\xfd", "compressed with zstd: unpack it first (zstd -d)"),
    (b"\xfd7zXZ\x00", "compressed with xz: unpack it first (xz -d)"),
    (b"BZh", "compressed with bzip2: unpack it first (bzip2 -d)"),
    (b"\x04\x22\x4d\x18", "compressed with lz4: unpack it first (lz4 -d)"),
    (b"7z\xbc\xaf\x27\x1c", "a 7z archive: unpack it and name the coredump inside"),
    (b"\x1f\x8b", "a second layer of gzip: unpack it first (gunzip)"),
)
_TAR = (257, b"ustar")
_TYPES = {1: "an object file", 2: "a program", 3: "a library or program", 4: "a core"}
_MACHINES = {3: "x86, 32 bit", 40: "ARM, 32 bit", 62: "x86-64", 183: "ARM, 64 bit", 190: "CUDA"}
_CUDA, _CORE = 190, 4
SNIFFED_BYTES = 264


def other_format(head: bytes) -> str | None:
    """In words, what a file is that begins with *head*; None: nothing that is known.

    *head* has SNIFFED_BYTES, or the whole file.
    """
    for start, words in _STARTS:
        if head.startswith(start):
            return words
    if head[_TAR[0] : _TAR[0] + len(_TAR[1])] == _TAR[1]:
        return "a tar archive: unpack it and name the coredump inside"
    return _elf(head) if head.startswith(b"\x7fELF") and len(head) >= 20 else None


def _elf(head: bytes) -> str | None:
    if head[4] == 1:
        return "an ELF file of 32 bit; CUDA coredumps have 64"
    if head[5] == 2:
        return "an ELF file with the most significant byte first; CUDA coredumps have it last"
    if head[4] != 2 or head[5] != 1:
        return "an ELF file of no known class or byte order"
    kind, machine = struct.unpack_from("<HH", head, 16)
    if (kind, machine) == (_CORE, _CUDA):
        return None
    if machine == _CUDA:
        return "code for a GPU (a cubin), no coredump"
    name = _MACHINES.get(machine, f"machine {machine}")
    if kind == _CORE:
        return f"a core of a host process ({name}), not of its GPUs: read it with gdb"
    return f"{_TYPES.get(kind, f'an ELF file of type {kind}')} for {name}, no coredump"
