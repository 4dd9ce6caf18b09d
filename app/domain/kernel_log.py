"""What the kernel said about GPUs and memory: Xid errors and processes that it killed.

Formats: the Linux kernel's /dev/kmsg records and ``[seconds] text`` lines; Xid lines and their
numbers as NVIDIA's "Xid errors" catalogue and the lines of its driver give them.
"""

import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import Literal

_KERNEL_FACILITY = 0
_RECORD = re.compile(r"(\d{1,10}),\d{1,20},(\d{1,20}),[^;\n]{0,64};([^\n]*)")
_LINE = re.compile(r"(?:<\d{1,3}>)?\[\s{0,12}(\d{1,12}\.\d{1,9})\]\s(?:\S{1,255} kernel: )?(.*)")
_XID = re.compile(r"NVRM: Xid \((PCI:[0-9A-Fa-f:.]{1,32})(?: [^)]{0,64})?\): (\d{1,4}), ?(.*)")
_XID_PID = re.compile(r"pid='?(\d{1,10})")
_KILLED = re.compile(r"[Kk]ill(?:ed)? process (\d{1,10}) \(([^\n]{0,64}?)\)(?:,| |$)")
_MAX_TEXT = 300

Level = Literal["warn", "bad"]
# Those that end work on the GPU; the rest may be an error of the program that used it.
_XIDS: dict[int, tuple[Level, str]] = {
    13: ("warn", "an exception in the graphics engine, often an error of the program"),
    31: ("warn", "a memory page fault, often an error of the program"),
    43: ("warn", "the GPU stopped the work of one program"),
    45: ("warn", "the work of a program was cleaned up, often after another error"),
    48: ("bad", "a double bit error in GPU memory"),
    61: ("bad", "the GPU's own controller has failed"),
    62: ("bad", "the GPU's own controller has failed"),
    63: ("warn", "GPU memory was marked for repair"),
    64: ("bad", "GPU memory could not be repaired"),
    74: ("bad", "an error of NVLink"),
    79: ("bad", "the GPU has fallen off the bus"),
    94: ("bad", "a contained error in GPU memory"),
    95: ("bad", "an uncontained error in GPU memory"),
    119: ("bad", "the GPU's system processor did not answer"),
    120: ("bad", "the GPU's system processor has failed"),
    154: ("bad", "the GPU needs to be reset or its host restarted"),
}


@dataclass(frozen=True, slots=True)
class KernelLine:
    """One message; *seconds* since the boot of the host."""

    seconds: float
    text: str


@dataclass(frozen=True, slots=True)
class Xid:
    """An error that the NVIDIA driver reported; *pid* as the host counts, None where not said."""

    seconds: float
    number: int
    device: str
    pid: int | None
    text: str

    @property
    def level(self) -> Level:
        return _XIDS.get(self.number, ("warn", ""))[0]

    @property
    def meaning(self) -> str | None:
        """In a few words; None for a number that is not in our list."""
        return _XIDS[self.number][1] if self.number in _XIDS else None


@dataclass(frozen=True, slots=True)
class MemoryKill:
    """A process that the kernel killed for want of memory."""

    seconds: float
    pid: int
    name: str
    limit: bool  # True: at the limit of its own group, not for want of memory of the host


def kernel_record(record: bytes) -> KernelLine | None:
    """A record of /dev/kmsg; None for what a program wrote there: only the kernel is believed."""
    found = _RECORD.match(record.decode("utf-8", "replace"))
    if found is None or int(found[1]) >> 3 != _KERNEL_FACILITY:
        return None
    return KernelLine(int(found[2]) / 1e6, found[3])


def kernel_lines(text: str) -> Iterator[KernelLine]:
    """The lines that dmesg and ``journalctl -k -o short-monotonic`` print."""
    for line in text.split("\n"):
        if found := _LINE.fullmatch(line):
            yield KernelLine(float(found[1]), found[2])


def xids(lines: Iterable[KernelLine]) -> list[Xid]:
    """The Xid errors in *lines*, in their order."""
    found = []
    for line in lines:
        if match := _XID.match(line.text):
            pid = _XID_PID.search(match[3])
            found.append(
                Xid(
                    line.seconds,
                    int(match[2]),
                    match[1],
                    int(pid[1]) if pid else None,
                    match[3][:_MAX_TEXT],
                )
            )
    return found


def memory_kills(lines: Iterable[KernelLine]) -> list[MemoryKill]:
    """The processes killed for want of memory, each once."""
    found: dict[tuple[int, int], MemoryKill] = {}
    for line in lines:
        if match := _KILLED.search(line.text):
            pid = int(match[1])
            limit = line.text.startswith("Memory cgroup")
            # Older kernels say "Kill process" and "Killed process" of the same one.
            found.setdefault(
                (pid, int(line.seconds) // 10), MemoryKill(line.seconds, pid, match[2], limit)
            )
    return list(found.values())
