"""Reading py-spy's JSON: fields of py-spy 0.4, ``src/stack_trace.rs``; nothing is believed.

Values of variables (``--locals``) are prompts and keys: they are noticed and never read.
"""

from collections.abc import Mapping, Sequence
from functools import lru_cache
from json import JSONDecoder
from typing import Any

import orjson

from app.domain.stacks.dump import LONGEST_NAME, MOST_FRAMES, MOST_THREADS, Dump, Frame, Thread

_DECODER = JSONDecoder()
_VALUE = b'"repr":'  # of a variable; otherwise "locals" is null


def read_json_dump(body: bytes) -> list[Dump] | None:
    """The processes in ``py-spy dump --json``; None when *body* is something else."""
    try:
        told = orjson.loads(body)
    except orjson.JSONDecodeError:
        return None
    return _by_pid(told) if isinstance(told, list) and is_json_dump(told) else None


def read_json_dumps(body: bytes) -> tuple[list[Dump], bool]:
    """The processes in several documents one after another, and whether all of it was read.

    Each document is what one py-spy wrote, or one thread of it (JSON lines).
    """
    try:
        text = body.decode()
    except UnicodeDecodeError:
        return [], False
    dumps: list[Dump] = []
    threads: list[Any] = []
    at, whole = 0, True
    while whole and (at := _next_begins(text, at)) < len(text):
        told, at = _document(text, at)
        if isinstance(told, dict) and _is_thread(told):
            threads.append(told)
        elif isinstance(told, list) and is_json_dump(told):
            dumps += _by_pid(told)
        else:
            whole = False
    return [*dumps, *_by_pid(threads)], whole


def _next_begins(text: str, at: int) -> int:
    while at < len(text) and text[at] in " \t\r\n,":
        at += 1
    return at


def _document(text: str, at: int) -> tuple[object, int]:
    """The document that begins *at*, and where it ends; None where it is none."""
    try:
        return _DECODER.raw_decode(text, at)
    except (ValueError, RecursionError):
        return None, len(text)


def is_json_dump(told: object) -> bool:
    """Whether *told*, read from JSON, is what one py-spy wrote."""
    return isinstance(told, list) and bool(told) and all(map(_is_thread, told))


def holds_locals(body: bytes) -> bool:
    """Whether it was taken with ``--locals``."""
    return _VALUE in body


def _by_pid(told: Sequence[Mapping[str, Any]]) -> list[Dump]:
    by_pid: dict[int | None, list[Thread]] = {}
    for one in told[:MOST_THREADS]:
        pid = one.get("pid")
        by_pid.setdefault(pid if isinstance(pid, int) else None, []).append(_thread(one))
    return [Dump(pid, None, tuple(threads)) for pid, threads in by_pid.items()]


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
