"""The inside of a process that reads a hostile file: it shuts itself in before it looks.

A module that reads such files ends in ``confined(answer)``; ``sandbox.run_apart`` starts it. The
file is its standard input. It can open nothing, reach nobody, write nothing but its answer, and
start nothing: no descriptor is left to be had, on any kernel; namespace, user and capabilities
are given up as well where the kernel lets it.
"""

import ctypes
import os
import resource
import sys
from collections.abc import Callable, Mapping
from contextlib import suppress
from typing import Any

import orjson

TOLD = "READER_IS_TOLD"  # the variable that carries limits and question
OUT_OF_MEMORY = 86  # exit status; what else ends it tells by itself
_NOBODY = 65_534
_OPEN_DESCRIPTORS = 3  # input, output, errors
_NEW_USER, _NEW_NET = 0x1000_0000, 0x4000_0000  # CLONE_… of sched.h
_DIE_WITH_PARENT, _DUMPABLE, _NO_NEW_PRIVILEGES = 1, 4, 38  # PR_SET_… of prctl.h
_SIGKILL = 9
_CAPABILITIES_V3 = 0x2008_0522

Answer = Callable[[int, Mapping[str, Any]], object]


def confined(answer: Answer) -> None:
    """Give up every right, then print what *answer* makes of the file and of what was asked.

    Called once, by the main module of a process of its own, after all of its imports.
    """
    told = orjson.loads(os.environ.pop(TOLD))  # no argument: those are shown to everybody
    limits = told["limits"]
    offline = _leave()
    _limit(limits["memory_bytes"] + limits["mapped_bytes"], limits["cpu_seconds"])
    try:
        out = orjson.dumps(
            {"answer": answer(sys.stdin.fileno(), told["asked"]), "offline": offline}
        )
        sys.stdout.buffer.write(out)
        sys.stdout.buffer.flush()
    except MemoryError:
        os._exit(OUT_OF_MEMORY)
    os._exit(0)  # nothing is left to be done, and freeing a large file's values takes a while


def send_line(line: bytes) -> None:
    """Hand on *line* before the answer is there; it has no line end inside and none at its end.

    For a reader that ``sandbox.run_apart`` was given a listener for.
    """
    sys.stdout.buffer.write(line)
    sys.stdout.buffer.write(b"\n")


def _leave() -> bool:
    """Leave network, user and capabilities behind; whether the network could be left."""
    libc = ctypes.CDLL(None, use_errno=True)
    libc.prctl(_DIE_WITH_PARENT, _SIGKILL, 0, 0, 0)
    libc.prctl(_NO_NEW_PRIVILEGES, 1, 0, 0, 0)
    offline = not libc.unshare(_NEW_NET) or not libc.unshare(_NEW_USER | _NEW_NET)
    if os.geteuid() == 0:
        with suppress(OSError):  # a container may have no other user
            os.setgroups([])
            os.setresgid(_NOBODY, _NOBODY, _NOBODY)
            os.setresuid(_NOBODY, _NOBODY, _NOBODY)
    libc.capset((ctypes.c_uint32 * 2)(_CAPABILITIES_V3, 0), (ctypes.c_uint32 * 6)())
    libc.prctl(_DUMPABLE, 0, 0, 0, 0)
    return offline


def _limit(memory_bytes: int, cpu_seconds: int) -> None:
    for what, most in (
        (resource.RLIMIT_CORE, 0),
        (resource.RLIMIT_FSIZE, 0),
        (resource.RLIMIT_NOFILE, _OPEN_DESCRIPTORS),
        (resource.RLIMIT_NPROC, 0),
        (resource.RLIMIT_AS, memory_bytes),
    ):
        resource.setrlimit(what, (most, most))
    # The first ends it with a signal that tells why, the second for certain.
    resource.setrlimit(resource.RLIMIT_CPU, (cpu_seconds, cpu_seconds + 1))
