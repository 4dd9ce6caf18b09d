"""Where one rank is in one sample: its path, what it waits for, and which stage that belongs to.

Stages of SGLang's scheduler loop, 0.4.6 to 0.5.23, and of vLLM's worker loop: a rank that looks
for new requests is *idle*, whoever of the group it is that polls.
"""

import re
from dataclasses import dataclass
from functools import lru_cache
from typing import Literal

from app.domain.stacks.dump import Dump, Frame, Thread, forward_thread
from app.domain.stacks.frames import coarse_key, last_name, python_frames
from app.domain.stacks.waits import Wait, wait_of

Stage = Literal["idle", "batch", "work", "start", "elsewhere"]

_LOOP = re.compile(r"event_loop\w*|worker_busy_loop|run_busy_loop")
_TAKES_REQUESTS = "process_input_requests"
_LOOKS_FOR_WORK = frozenset(
    (
        "recv_requests",
        "ingest_requests",
        "on_idle",
        "self_check_during_idle",
        "check_memory",
        "maybe_sleep_on_idle",
        _TAKES_REQUESTS,
        "_process_input_queue",
        "dequeue",
    )
)
_MAY_DO_NOTHING = frozenset(("get_next_batch_to_run", "get_new_batch_prefill", "_get_next_batch"))
_RUNS_BATCH = frozenset(
    ("run_batch", "forward_batch_generation", "execute_model", "execute_method")
)
_QUEUES_BATCHES = frozenset(("resolve_batch_result", "resolve_last_batch_result"))


@dataclass(frozen=True, slots=True)
class Place:
    """Where a rank is. *frames* are root first and without wrapping; *path* their keys."""

    path: tuple[str, ...]
    frames: tuple[Frame, ...]
    newest: Frame | None  # as it was written, a library's included
    wait: Wait
    stage: Stage
    fine: tuple[Frame, ...]  # with lines: differs as soon as anything moved
    active: bool | None
    owns_gil: bool | None

    @property
    def kind(self) -> tuple[str, ...]:
        """Equal for ranks of one class: the same wait of the same stage, or the same path."""
        if self.wait.kind == "collective" and self.wait.site:
            return (self.wait.kind, self.wait.says, *self.wait.site, self.stage)
        return (self.wait.kind, *self.path)

    @property
    def top(self) -> Frame | None:
        """The newest call of Python; of a library where there is none."""
        return self.frames[-1] if self.frames else self.newest


def place_of(dump: Dump) -> Place | None:
    """Where the rank of *dump* is; None when its main thread has no calls."""
    thread = _deciding_thread(dump)
    if thread is None or not thread.frames:
        return None
    wait = wait_of(thread.frames, thread.active, _who_owns_gil(dump, thread))
    path, frames, fine, stage = _normalised(thread.frames)
    return Place(path, frames, thread.frames[0], wait, stage, fine, thread.active, thread.owns_gil)


def _deciding_thread(dump: Dump) -> Thread | None:
    """The main thread; in old versions the one that runs the model while the main one waits."""
    main = dump.main
    if main and any(last_name(frame.function) in _QUEUES_BATCHES for frame in main.frames[:6]):
        return forward_thread(dump) or main
    return main


def _who_owns_gil(dump: Dump, thread: Thread) -> str | None:
    if thread.owns_gil:
        return "self"
    return "other" if any(one.owns_gil for one in dump.threads) else None


_Normalised = tuple[tuple[str, ...], tuple[Frame, ...], tuple[Frame, ...], Stage]


@lru_cache(maxsize=1_024)
def _normalised(newest_first: tuple[Frame, ...]) -> _Normalised:
    frames = tuple(reversed(list(python_frames(newest_first))))
    fine = tuple(frame for frame in newest_first if not frame.native)
    return tuple(map(coarse_key, frames)), frames, fine, _stage(frames)


def _stage(frames: tuple[Frame, ...]) -> Stage:
    names = [last_name(frame.function) for frame in frames]
    loop = next((at for at, name in enumerate(names) if _LOOP.fullmatch(name)), None)
    if loop is None:
        started = "run_scheduler_process" in names or any("importlib" in f.file for f in frames)
        return "start" if started else "elsewhere"
    inside = names[loop + 1 :]
    if any(name in _RUNS_BATCH for name in inside):
        return "batch"
    if inside[:1] == [_TAKES_REQUESTS] and len(inside) > 1:
        return "work"  # of a request: new weights come this way, too
    if not inside or inside[0] in _LOOKS_FOR_WORK:
        return "idle"
    return "idle" if all(name in _MAY_DO_NOTHING for name in inside) else "work"
