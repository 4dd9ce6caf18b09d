"""Reads one pickle in a process of its own and says how that ended; started by run_apart."""

import mmap
import os
from collections.abc import Mapping
from functools import partial
from typing import Any

from app.clients.confined import confined
from app.domain.pickled import read_pickle
from app.domain.pickled.values import Buffer


def mapped(descriptor: int) -> Buffer:
    size_bytes = os.fstat(descriptor).st_size  # an empty file cannot be mapped
    return mmap.mmap(descriptor, 0, access=mmap.ACCESS_READ) if size_bytes else b""


def answer(buffer: Buffer, _descriptor: int, _asked: Mapping[str, Any]) -> dict[str, Any]:
    read = read_pickle(buffer)
    return {
        "problem": read.problem.kind if read.problem else None,
        "says": read.problem.says if read.problem else None,
        "blocked": read.blocked,
        "type": type(read.value).__name__,
    }


if __name__ == "__main__":
    confined(partial(answer, mapped(0)))  # mapped first: shut in, it could open nothing
