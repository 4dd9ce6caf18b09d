"""How reading a pickle ends, and how far it may go."""

from dataclasses import dataclass
from typing import Literal

Kind = Literal[
    "empty",
    "wrapped",
    "not-a-pickle",
    "truncated",
    "data-after-stop",
    "bad-opcode",  # no opcode, or one that makes no sense where it stands
    "bad-value",  # an argument that cannot be what its opcode says
    "outside",  # persistent ids, extension codes, out-of-band buffers: it is not in the file
    "limit",
]


@dataclass(frozen=True, slots=True)
class Problem:
    """Why reading ended, or what is wrong with a file that could be read.

    *position* counts bytes from 0 and is that of the opcode. *wrapper* is what the file is
    instead: gzip, zip, zstd, xz, bzip2, html or json.
    """

    kind: Kind
    position: int
    says: str
    wrapper: str | None = None


@dataclass(frozen=True, slots=True)
class Limits:
    """How far one pickle may go.

    *made_bytes* and, for each byte of the file, *made_per_byte* are what may be made of it in
    memory, by an estimate that no opcode exceeds much. *depth* counts open MARKs. *wide_keys* are
    keys of one dict or set whose hash a file could have chosen: numbers beyond 2**24, floats,
    tuples.
    """

    opcodes: int = 500_000_000
    depth: int = 10_000
    made_bytes: int = 64 * 1024 * 1024
    made_per_byte: int = 16
    number_bytes: int = 1024
    name_bytes: int = 512
    names: int = 1000
    wide_keys: int = 1024


DEFAULT_LIMITS = Limits()


@dataclass(frozen=True, slots=True)
class Pickled:
    """What was read.

    *value* is None when the end was not reached. *blocked* are the classes and callables that
    were named, in order of appearance, and kept inert. *rest* is what lay on the stack when
    reading ended early, the oldest first: what is whole in it can be salvaged.
    """

    value: object
    blocked: tuple[str, ...] = ()
    problem: Problem | None = None
    rest: tuple[object, ...] = ()


class Broken(Exception):
    """Reading ends at the opcode at hand, for this reason."""

    def __init__(self, kind: Kind, says: str) -> None:
        super().__init__(says)
        self.kind: Kind = kind
        self.says = says
