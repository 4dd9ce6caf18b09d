"""Reading py-spy's JSON: fields of py-spy 0.4, ``src/stack_trace.rs``; nothing is believed.

Values of variables (``--locals``) are prompts and keys: they are noticed and never read.
"""

from collections.abc import Mapping
from functools import lru_cache
from typing import Any

import orjson

from app.domain.stacks.dump import LONGEST_NAME, MOST_FRAMES, MOST_THREADS, Dump, Frame, Thread

_VALUE = b'"repr":'  # of a variable; otherwise "locals" is null


def read_json_dump(body: bytes) -> list[Dump] | None:
    """The processes in ``py-spy dump --json``; None when *body* is something else."""
    try:
        told = orjson.loads(body)
    except orjson.JSONDecodeError:
        return None
    if not isinstance(told, list) or not told or not all(map(_is_thread, told)):
        return None
    by_pid: dict[int | None, list[Thread]] = {}
    for one in told[:MOST_THREADS]:
        pid = one.get("pid")
        by_pid.setdefault(pid if isinstance(pid, int) else None, []).append(_thread(one))
    return [Dump(pid, None, tuple(threads)) for pid, threads in by_pid.items()]


def holds_locals(body: bytes) -> bool:
    """Whether it was taken with ``--locals``."""
    return _VALUE in body


def _is_thread(told: object) -> bool:
    return isinstance(told, dict) and isinstance(told.get("frames"), list)


def _thread(told: Mapping[str, Any]) -> Thread:
    number, name = told.get("os_thread_id"), told.get("thread_name")
    frames = told["frames"][:MOST_FRAMES]
    return Thread(
        id=str(number if isinstance(number, int) else told.get("thread_id"))[:32],
        name=name[:LONGEST_NAME] if isinstance(name, str) else None,
        active=_yes_or_no(told.get("active")),
        owns_gil=_yes_or_no(told.get("owns_gil")),
        frames=tuple([_frame_of(one) for one in frames if isinstance(one, dict)]),
    )


def _frame_of(told: Mapping[str, Any]) -> Frame:
    name, line = told.get("name"), told.get("line")
    file = told.get("short_filename") or told.get("filename")
    return _frame(
        name if isinstance(name, str) else "?",
        file if isinstance(file, str) else "",
        line if isinstance(line, int) else 0,
        bool(told.get("module")),
    )


@lru_cache(maxsize=16_384)
def _frame(name: str, file: str, line: int, native: bool) -> Frame:  # noqa: FBT001
    return Frame(name[:LONGEST_NAME], file[:LONGEST_NAME], line if line > 0 else None, native)


def _yes_or_no(told: object) -> bool | None:
    return told if isinstance(told, bool) else None
