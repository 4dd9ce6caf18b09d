"""A debugger that is on a process and does nothing: ``python tracer.py PID``; says "ready"."""

import ctypes
import sys

PTRACE_SEIZE = 0x4206  # linux/ptrace.h


def main(pid: str) -> None:
    libc = ctypes.CDLL(None, use_errno=True)
    if libc.ptrace(PTRACE_SEIZE, int(pid), None, None) != 0:
        sys.exit(f"cannot trace {pid}: errno {ctypes.get_errno()}")
    sys.stdout.write("ready\n")
    sys.stdout.flush()
    sys.stdin.read()


if __name__ == "__main__":
    main(*sys.argv[1:])
