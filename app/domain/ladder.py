"""The evidence ladder: what can be taken of a server, by how much it disturbs it.

Figures of cost are measured with py-spy 0.4 on CPU processes; what a coredump costs on a GPU is
told by its makers, and was not seen by us.
"""

from dataclasses import dataclass
from typing import Literal

NO_EFFECT = "No effect on the target"
SHORT_PAUSE = "Pauses each rank for less than 0.2 s"
SLOWS = "Pauses or slows the target"
MAY_END = "May end the process"

Kind = Literal[
    "stacks",
    "native stacks",
    "coredump",
    "nccl ras",
    "host facts",
    "server dumps",
    "cpu profile",
    "flight recorder",
]


@dataclass(frozen=True, slots=True)
class Rung:
    """One kind of evidence. *warns* None: it is harmless, one click takes it."""

    level: int
    kind: Kind
    name: str
    effect: str  # the divider it stands under
    does: str
    verb: str  # on its button: "Take", "Read"
    warns: str | None = None
    one_process: bool = False  # of one rank at a time, unless all are asked for


RUNGS = (
    Rung(
        0,
        "host facts",
        "Host facts and server log",
        NO_EFFECT,
        "memory, pressure, disk, clock, kernel log, and the end of the log with secrets masked",
        "Read",
    ),
    Rung(
        0,
        "nccl ras",
        "NCCL RAS",
        NO_EFFECT,
        "what NCCL itself knows of each rank, read twice, 10 s apart",
        "Read",
    ),
    Rung(
        0,
        "server dumps",
        "Dumps the server wrote",
        NO_EFFECT,
        "copies crash and request dumps out of its folders, before a restart or the end of a pod "
        "takes them; no byte is interpreted",
        "Copy",
    ),
    Rung(
        1,
        "stacks",
        "Stacks",
        SHORT_PAUSE,
        "3 samples 5 s apart, all ranks in the same second",
        "Take",
    ),
    Rung(
        2,
        "native stacks",
        "Native stacks",
        SLOWS,
        "adds the C++ frames",
        "Take",
        "Stops each rank for 0.2 to 1 s. Harmless on a hung server; on a serving one users see a "
        "pause.",
    ),
    Rung(
        3,
        "cpu profile",
        "CPU profile",
        SLOWS,
        "10 samples a second for 10 s, threads that wait included",
        "Record",
        "Pauses the rank about 100 times for some milliseconds. A serving one slows down for 10 s.",
        one_process=True,
    ),
    Rung(
        4,
        "flight recorder",
        "NCCL flight recorder",
        SLOWS,
        "PyTorch writes down its last collectives; the file is kept unread",
        "Dump",
        "A thread of each rank writes its ring buffer to a file. It takes seconds and needs the "
        "server to have been started for it.",
    ),
    Rung(
        6,
        "coredump",
        "CUDA coredump",
        MAY_END,
        "the state of every GPU of the rank: kernels, registers, exceptions",
        "Take",
        "The GPUs stop while it is written, for seconds up to minutes, and the process may end. "
        "Watchdogs keep counting meanwhile, those of its peers too.",
        one_process=True,
    ),
)


def rung_of(kind: str) -> Rung | None:
    """The rung that takes *kind*; None for a kind that is not on the ladder."""
    return next((rung for rung in RUNGS if rung.kind == kind), None)
