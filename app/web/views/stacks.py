"""Raw stacks side by side: a column for each rank, cut so that the whole page stays small."""

from collections.abc import Sequence
from dataclasses import dataclass

from markupsafe import escape

from app.domain.stack_text import Frame, ProcessStacks, Thread
from app.store.tables import DiagnosticItem

PAGE_BYTES = 130_000  # of HTML for all frames of a page; what surrounds them comes on top
COMPARED_PAGE_BYTES = 80_000  # where the comparison of ranks stands above them
FRAME_BYTES = 110  # of the markup around one frame
THREAD_BYTES = 240  # of the markup around one thread
OPEN_FRAMES = 30  # of a main thread; what is deeper is folded
OTHER_FRAMES = 12  # shown of each other thread


@dataclass(frozen=True)
class ThreadTold:
    """A thread as far as it is shown. *deeper* frames are folded, *more* are in the file only."""

    name: str
    state: str  # "active", "idle", "not told"
    owns_gil: bool
    frames: Sequence[Frame]
    deeper: Sequence[Frame]
    more: int

    @property
    def top(self) -> str:
        """The newest call, for the folded line of a thread."""
        return self.frames[0].function if self.frames else "no Python frame"


@dataclass(frozen=True)
class Column:
    """One rank: what was read of it in one sample, or why nothing was. *item* None: not asked."""

    who: str
    host: str
    pid: int | None
    item: DiagnosticItem | None
    main: ThreadTold | None
    others: Sequence[ThreadTold]
    others_left_out: int
    problem: str | None  # read, but it cannot be shown

    @property
    def read(self) -> bool:
        return self.item is not None and self.item.state == "done"

    @property
    def states(self) -> Sequence[str]:
        """The letter of the process's state before and after; one where both are the same."""
        detail = self.item.detail if self.item else {}
        told = (detail.get("state_before"), detail.get("state_after"))
        return list(dict.fromkeys(str(letter) for letter in told if letter))


class Room:
    """How much of the page is left."""

    def __init__(self, size_bytes: int) -> None:
        self.left = size_bytes

    def frames(self, frames: Sequence[Frame], most: int) -> list[Frame]:
        """The first of *frames*, at most *most*, as many as there is room for."""
        taken = []
        for frame in frames[:most]:
            self.left -= FRAME_BYTES + len(escape(frame.function)) + len(escape(frame.place))
            if self.left < 0:
                break
            taken.append(frame)
        return taken


def main_told(stacks: ProcessStacks, room: Room) -> ThreadTold | None:
    """The main thread, which stands open; None where none was read."""
    if not stacks.threads:
        return None
    return _told(stacks.threads[0], room, most=len(stacks.threads[0].frames))


def others_told(stacks: ProcessStacks, room: Room) -> tuple[list[ThreadTold], int]:
    """The other threads, folded, and how many of them are in the file only."""
    told = []
    for thread in stacks.threads[1:]:
        room.left -= THREAD_BYTES + 2 * len(escape(thread.name))
        if room.left < 0:
            break
        told.append(_told(thread, room, most=OTHER_FRAMES))
    return told, len(stacks.threads) - 1 - len(told) + stacks.left_out


def _told(thread: Thread, room: Room, *, most: int) -> ThreadTold:
    shown = room.frames(thread.frames, most)
    words = {True: "active", False: "idle", None: "not told"}
    return ThreadTold(
        name=thread.name,
        state=words[thread.active],
        owns_gil=thread.owns_gil is True,
        frames=shown[:OPEN_FRAMES],
        deeper=shown[OPEN_FRAMES:],
        more=len(thread.frames) - len(shown) + thread.left_out,
    )
