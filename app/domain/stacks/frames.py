"""Calls made comparable between ranks: what is the same call, and what is only wrapping.

A call is known by its function and the last part of its file: text and JSON shorten paths
differently, and installations differ between hosts. Addresses, template arguments and the
compiler's suffixes differ between two runs of the same program, so they are cut.
"""

import re
from collections.abc import Iterable, Iterator
from functools import lru_cache

from app.domain.stacks.dump import Frame

_ADDRESS = re.compile(r"^0x[0-9a-fA-F]+$")
_SUFFIX = re.compile(r"(\.(cold|part|isra|constprop)(\.\d+)*|\[abi:\w+\]|@@?[A-Z_0-9.]+)+$")
# Decorators, profilers and torch's own call machinery: they say nothing of where a rank is.
_WRAPPERS = frozenset(("wrapper", "inner", "decorate_context", "_call_impl", "_wrapped_call_impl"))
_WRAPPING_FILES = frozenset(("c10d_logger.py", "nvtx_utils.py", "scheduler_stage_metrics.py"))
_WRAPPED_IN = frozenset(("_contextlib.py", "contextlib.py", "module.py", "profiler.py"))


def last_name(function: str) -> str:
    """``all_reduce`` of ``GroupCoordinator.all_reduce``: classes are told since Python 3.11."""
    return function.rpartition(".")[2] or function


def base_name(file: str) -> str:
    """``scheduler.py`` of ``sglang/srt/managers/scheduler.py``."""
    return file.replace("\\", "/").rpartition("/")[2]


@lru_cache(maxsize=16_384)
def coarse_key(frame: Frame) -> str:
    """What makes it the same call in every rank, whichever line it stands at."""
    return f"{bare_name(frame.function)} ({base_name(frame.file)})"


def bare_name(function: str) -> str:
    """*function* without what differs between two runs of one program."""
    if _ADDRESS.match(function):
        return "?"
    bare = _SUFFIX.sub("", function)
    return _without_templates(bare) if "::" in bare else bare


def _without_templates(name: str) -> str:
    """``a::b`` of ``a<int, char>::b``; brackets are counted, as they nest."""
    kept, depth = [], 0
    for char in name:
        depth += char == "<"
        if depth == 0:
            kept.append(char)
        depth = max(0, depth - (char == ">"))
    return "".join(kept) or name


@lru_cache(maxsize=16_384)
def is_wrapping(frame: Frame) -> bool:
    """Whether *frame* only wraps the call that it makes."""
    name, file = last_name(frame.function), base_name(frame.file)
    if file in _WRAPPING_FILES:
        return True
    return name in _WRAPPERS and (file in _WRAPPED_IN or "<locals>" in frame.function)


def python_frames(frames: Iterable[Frame]) -> Iterator[Frame]:
    """The calls of Python itself, wrapping left out and recursion told once; order as given."""
    before = None
    for frame in frames:
        if frame.native or is_wrapping(frame):
            continue
        key = coarse_key(frame)
        if key != before:
            yield frame
        before = key


def leading_native(frames: Iterable[Frame]) -> Iterator[str]:
    """Names of the library calls above the newest Python call, newest first."""
    for frame in frames:
        if not frame.native:
            return
        yield bare_name(frame.function)
