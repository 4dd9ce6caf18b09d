"""Asks the NVIDIA driver which process uses which GPU, and prints it as JSON.

Runs as a program of its own, which may hang in the driver and be killed; it knows nothing of the
rest of the agent. The calls are those of NVML (nvml.h), found in every driver since 515.
"""

import ctypes
import json
import sys

LIBRARIES = ("libnvidia-ml.so.1", "/usr/local/nvidia/lib64/libnvidia-ml.so.1")
NO_DRIVER = 9  # NVML_ERROR_DRIVER_NOT_LOADED
NOT_TOLD = 2**64 - 1  # NVML_VALUE_NOT_AVAILABLE
MAX_PROCESSES = 1024


class ProcessInfo(ctypes.Structure):
    """nvmlProcessInfo_t."""

    _fields_ = (
        ("pid", ctypes.c_uint),
        ("used_bytes", ctypes.c_ulonglong),
        ("gpu_instance", ctypes.c_uint),
        ("compute_instance", ctypes.c_uint),
    )


def main() -> None:
    sys.stdout.write(json.dumps(answer()))


def answer(names: tuple[str, ...] = LIBRARIES) -> dict[str, object]:
    """``{"gpus": […]}``, or ``{"absent": why}``; *names* are tried in turn."""
    library = load(names)
    if library is None:
        return {"absent": "libnvidia-ml.so.1 is not installed"}
    count = ctypes.c_uint()
    status = library.nvmlInit_v2() or library.nvmlDeviceGetCount_v2(ctypes.byref(count))
    if status == NO_DRIVER:
        return {"absent": "no NVIDIA driver is loaded"}
    if status:
        return {"absent": f"NVML answers with error {status}"}
    return {"gpus": [gpu(library, index) for index in range(count.value)]}


def load(names: tuple[str, ...]) -> ctypes.CDLL | None:
    for name in names:
        try:
            return ctypes.CDLL(name)
        except OSError:
            continue
    return None


def gpu(library: ctypes.CDLL, index: int) -> dict[str, object]:
    handle, name = ctypes.c_void_p(), ctypes.create_string_buffer(96)
    if library.nvmlDeviceGetHandleByIndex_v2(index, ctypes.byref(handle)):
        return {"index": index, "name": None, "processes": None}  # fallen off the bus
    named = library.nvmlDeviceGetName(handle, name, len(name)) == 0
    return {
        "index": index,
        "name": name.value.decode(errors="replace") if named else None,
        "processes": processes(library, handle),
    }


def processes(library: ctypes.CDLL, handle: ctypes.c_void_p) -> dict[int, int | None] | None:
    """Used bytes by pid; None when the driver does not tell."""
    count, found = ctypes.c_uint(MAX_PROCESSES), (ProcessInfo * MAX_PROCESSES)()
    if library.nvmlDeviceGetComputeRunningProcesses_v3(handle, ctypes.byref(count), found):
        return None
    return {
        info.pid: None if info.used_bytes == NOT_TOLD else info.used_bytes
        for info in found[: count.value]
    }


if __name__ == "__main__":
    main()
