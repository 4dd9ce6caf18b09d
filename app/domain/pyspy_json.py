"""Whether bytes are what ``py-spy dump --json`` writes.

The fields and their meaning: py-spy 0.4, ``src/stack_trace.rs``. The bytes themselves are kept
as they are; who shows or compares them reads them again.
"""

from collections.abc import Mapping
from typing import Any

from app.domain.plain_json import read_json
from app.errors import Malformed

MAX_THREADS = 20_000  # a server has hundreds


def thread_count(body: bytes, *, pid: int) -> int:
    """How many threads of process *pid* there are stacks of, one at least.

    Raises Malformed, saying where it is not what py-spy writes, is of another process, or
    holds values of variables, which are prompts and keys and are never asked for.
    """
    threads = read_json(body)
    if not isinstance(threads, list) or not all(isinstance(one, dict) for one in threads):
        raise Malformed("Not a list of threads.")
    if not 0 < len(threads) <= MAX_THREADS:
        raise Malformed(f"{len(threads)} threads; at least one and at most {MAX_THREADS} fit.")
    for number, thread in enumerate(threads):
        if problem := _problem(thread, pid):
            raise Malformed(f"Thread {number}: {problem}.")
    return len(threads)


def _problem(thread: Mapping[str, Any], pid: int) -> str | None:
    if thread.get("pid") != pid:
        return "of another process"
    if not isinstance(thread.get("thread_id"), int):
        return "thread_id is no number"
    if not all(isinstance(thread.get(flag), bool) for flag in ("active", "owns_gil")):
        return "active and owns_gil are not true or false"
    frames = thread.get("frames")
    if not isinstance(frames, list) or not all(map(_is_frame, frames)):
        return "frames are no list of calls"
    return "holds values of variables" if any(frame.get("locals") for frame in frames) else None


def _is_frame(frame: object) -> bool:
    return (
        isinstance(frame, dict)
        and isinstance(frame.get("name"), str)
        and isinstance(frame.get("filename"), str)
        and isinstance(frame.get("line"), int)
    )
