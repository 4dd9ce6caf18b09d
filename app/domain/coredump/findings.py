"""What the state of the GPUs says, and no more: notes, a fingerprint, commands to look further."""

import hashlib
import re
import shlex
from collections.abc import Iterator

from app.domain.coredump.gpu_state import GpuException, GpuState, KernelOnDevice, readable

_CONSUMER = (
    "The faulting kernel is the consumer: look one kernel upstream, at what wrote the addresses"
    " and indices that it used."
)
_COLLECTIVE = "A collective moves only once all of its ranks are in it: compare their dumps."
_ONE_LOOK = "One dump does not tell standing still from moving."
_LOOK = ("info cuda devices", "info cuda kernels", "info cuda blocks", "info cuda warps", "bt")
_REGISTERS = "info registers $pc"
_ERROR = ("print/x $errorpc", "info symbol $errorpc", "x/32i $errorpc-0x100")
_ANONYMOUS = re.compile(r"(\d+)(_GLOBAL__N_)")
_GZIP = ".gz"
_SHARES_SHOWN = 4


def note(state: GpuState) -> str:
    """What the dump says, in sentences for the person who opened it."""
    if state.exceptions:
        return " ".join([*_exceptions(state), _CONSUMER])
    lines = [line for device in state.devices for line in activity(state, device.index)]
    if not lines:
        return (
            "No exception, and no block of any kernel on any SM: the GPUs had nothing to do."
            " Look at the process, by its stacks."
        )
    waits = any(kernel.collective for kernel in state.kernels if kernel.sms)
    advice = _COLLECTIVE if waits else _ONE_LOOK
    return " ".join(["No exception.", *lines, advice])


def activity(state: GpuState, device: int) -> Iterator[str]:
    """What the SMs of one GPU were in; nothing where none held a block."""
    busy = state.busy_sms(device)
    if not busy:
        return
    kernels = [one for one in state.kernels if one.device == device and one.sms]
    places = {where(kernel) for kernel in kernels}
    sms = next((one.sms for one in state.devices if one.index == device), 0)
    of = f" of {sms}" if sms >= len(busy) else ""
    if len(places) == 1:
        yield f"GPU {device}: all SMs with work ({len(busy)}{of}) are in {places.pop()}."
        return
    shares = ", ".join(
        f"{len(kernel.sms)} in {where(kernel)}" for kernel in kernels[:_SHARES_SHOWN]
    )
    more = len(kernels) - _SHARES_SHOWN
    yield (
        f"GPU {device}: {len(busy)}{of} SMs have work: {shares}"
        + (f", and {more} more kernels." if more > 0 else ".")
    )


def where(kernel: KernelOnDevice) -> str:
    """The collective that a kernel is, or its name without parameters."""
    return str(kernel.collective) if kernel.collective else kernel.short_name


def fingerprint(state: GpuState) -> str | None:
    """16 hex digits that the same fault has in other dumps: kernel, exception, architecture.

    None without an exception, or where its kernel is not known.
    """
    strongest = next((one for one in state.exceptions if one.where), None)
    if strongest is None or strongest.where is None:
        return None
    parts = (
        _without_build(strongest.where),
        strongest.code.name,
        state.arch(strongest.device) or "",
    )
    return hashlib.sha256("\0".join(parts).encode()).hexdigest()[:16]


def commands(path: str, state: GpuState) -> list[str]:
    """Commands for ``cuda-gdb``, which needs no GPU; the first unpacks a compressed file.

    They parse a file that may be hostile: run them in a folder that can be thrown away.
    """
    file, before = path, []
    if path.endswith(_GZIP):
        file = path.removesuffix(_GZIP)
        before = [f"gunzip --keep -- {shlex.quote(path)}"]
    looks = [f"target cudacore {file}", *_LOOK, _REGISTERS]
    found = [*before, _gdb(looks)]
    if state.exceptions:
        found.append(_gdb([looks[0], *_ERROR]))
    return found


def _gdb(looks: list[str]) -> str:
    return " ".join(["cuda-gdb", "-batch", *(f"-ex {shlex.quote(look)}" for look in looks)])


def _exceptions(state: GpuState) -> Iterator[str]:
    """Each kind of exception once, with how many SMs report it."""
    groups: dict[tuple[int, str | None], list[GpuException]] = {}
    for one in state.exceptions:
        groups.setdefault((one.code.code, one.where), []).append(one)
    for ones in list(groups.values())[:_SHARES_SHOWN]:
        first = ones[0]
        name = readable(first.where)
        sms = len({(one.device, one.sm) for one in ones})
        on = f"SM {first.sm} of GPU {first.device}" if sms == 1 else f"{sms} SMs"
        retired = ", which drivers since CUDA 13.1 no longer report" if first.code.retired else ""
        yield (
            f"{first.code.name} ({first.code.code}{retired}): {first.code.says},"
            f" in {name or 'a kernel that is not known'}, on {on}."
        )


def _without_build(mangled: str) -> str:
    """*mangled* without the hash that each build puts into the names of anonymous namespaces."""
    out, at = [], 0
    for found in _ANONYMOUS.finditer(mangled):
        end = found.start(2) + int(found[1][:4])
        if found.start() >= at and end <= len(mangled):
            out += [mangled[at : found.start()], found[2]]
            at = end
    return "".join([*out, mangled[at:]])
