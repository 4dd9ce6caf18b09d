"""The document of ``coredump inspect --json``; addresses of 64 bits are hexadecimal texts."""

from collections.abc import Mapping
from typing import Any

from app.domain.coredump.findings import activity, commands, fingerprint, note, where
from app.domain.coredump.gpu_state import (
    GpuException,
    GpuState,
    KernelOnDevice,
    Place,
    readable,
)
from app.domain.coredump.tables import Context, Device

MOST_KERNELS = 512


def document(file: str, path: str, state: GpuState) -> dict[str, Any]:
    """What was read of the complete dump *file*; the commands name it by its *path*."""
    return {
        "file": file,
        "complete": True,
        "kind": "CUDA coredump",
        "note": note(state),
        "fingerprint": fingerprint(state),
        "written_by": _origin(state),
        "devices": [_device(state, one) for one in state.devices],
        "contexts": [_context(one) for one in state.contexts],
        "kernels": [_kernel(one) for one in state.kernels[:MOST_KERNELS]],
        "kernels_total": len(state.kernels),
        "exceptions": [_exception(one) for one in state.exceptions],
        "commands": commands(path, state),
        "sections": state.sections,
        "problems": list(state.problems),
    }


def unreadable(file: str, kind: str, note_text: str, needs_bytes: int | None) -> dict[str, Any]:
    """The same document for a file that cannot be read; *kind* is one word for a program."""
    return {
        "file": file,
        "complete": False,
        "kind": kind,
        "note": note_text,
        "needs_bytes": needs_bytes,
        "fingerprint": None,
        "written_by": None,
        "devices": [],
        "contexts": [],
        "kernels": [],
        "kernels_total": 0,
        "exceptions": [],
        "commands": [],
        "sections": None,
        "problems": [],
    }


def _origin(state: GpuState) -> Mapping[str, Any] | None:
    if state.origin is None:
        return None
    return {
        "generator": state.origin.generator,
        "driver": state.origin.driver,
        "cuda": state.origin.cuda,
        "flags": hex(state.origin.flags),
        "at_seconds": state.origin.written_at_seconds,
    }


def _device(state: GpuState, device: Device) -> Mapping[str, Any]:
    return {
        "index": device.index,
        "name": device.name,
        "chip": device.chip,
        "arch": device.arch,
        "pci_bus": f"{device.pci_bus:02x}",
        "sms": device.sms,
        "sms_with_work": len(state.busy_sms(device.index)),
        "driver_status": device.status,
        "says": next(activity(state, device.index), None),
    }


def _context(context: Context) -> Mapping[str, Any]:
    return {
        "device": context.device,
        "id": hex(context.id),
        "thread": context.thread,
        "modules": context.modules,
    }


def _kernel(kernel: KernelOnDevice) -> Mapping[str, Any]:
    collective = kernel.collective
    return {
        "name": kernel.name,
        "short_name": kernel.short_name,
        "mangled": kernel.mangled,
        "place": where(kernel),
        "device": kernel.device,
        "grid": list(kernel.size),
        "block": list(kernel.block),
        "cluster": list(kernel.cluster) if kernel.cluster else None,
        "count": kernel.grids,
        "status": kernel.status,
        "entry": hex(kernel.entry),
        "blocks": kernel.blocks,
        "warps": kernel.warps,
        "threads": kernel.lanes,
        "sms": list(kernel.sms),
        "collective": None
        if collective is None
        else {
            "library": collective.library,
            "operation": collective.operation,
            "algorithm": collective.algorithm,
            "protocol": collective.protocol,
        },
        "pcs": [_place(place) for place in kernel.places],
    }


def _place(place: Place) -> Mapping[str, Any]:
    return {
        "pc": hex(place.at),
        "function": readable(place.function),
        "offset": None if place.offset is None else hex(place.offset),
        "threads": place.lanes,
        "warps": place.warps,
    }


def _exception(one: GpuException) -> Mapping[str, Any]:
    return {
        "code": one.code.code,
        "name": one.code.name,
        "says": one.code.says,
        "retired": one.code.retired,
        "device": one.device,
        "sm": one.sm,
        "pc": None if one.at is None else hex(one.at),
        "pc_exact": one.exact,
        "kernel": readable(one.kernel),
        "function": readable(one.function),
        "offset": None if one.offset is None else hex(one.offset),
        "block": list(one.block) if one.block else None,
        "thread": list(one.thread) if one.thread else None,
        "threads": one.lanes or None,
        "detail": one.detail,
    }
