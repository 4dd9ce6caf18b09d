"""The state of a pickle that is being read: stack, marks, memo, and the room that is left."""

from collections.abc import Callable

from app.domain.pickled.outcome import Broken, Limits
from app.domain.pickled.rows import Remembered
from app.domain.pickled.values import Buffer, Global

_SLOT_BYTES = 8
_LOGPROB_BYTES = 130  # of a tuple of two numbers and None
_ENTRY_BYTES = 100  # of a dict that is used as memo

# What an opcode does: *at* is the position behind its byte, the answer that of the next opcode.
Handler = Callable[["Machine", int], int]


class Sparse(dict[int, object]):
    """A memo whose numbers do not follow each other. Its length numbers the next MEMOIZE."""

    def append(self, value: object) -> None:
        self[len(self)] = value


class Machine:
    """What the handlers of the opcodes work on.

    A MARK puts *stack* on *below* and begins a new one, so that nothing can reach beneath it.
    *room* is how many bytes may still be made. *fragments* are runs of opcodes that only push,
    with what they push: the attributes of one request look like those of the next.
    """

    __slots__ = (
        "below",
        "buffer",
        "fragments",
        "kept",
        "limits",
        "memo",
        "names",
        "room",
        "short_frame",
        "size",
        "stack",
        "wide_keys",
    )

    def __init__(self, buffer: Buffer, limits: Limits) -> None:
        self.buffer = buffer
        self.size = len(buffer)
        self.limits = limits
        self.room = limits.made_bytes + limits.made_per_byte * self.size
        self.stack: list[object] = []
        self.below: list[list[object]] = []
        self.memo: list[object] | Sparse = []
        self.fragments: dict[bytes, list[object]] = {}
        self.names: dict[tuple[str, str], Global] = {}
        self.kept: set[Global] = set()
        self.wide_keys: dict[int, int] = {}  # by the id of their dict or set
        self.short_frame: tuple[int, int] | None = None  # where, and how many bytes it claims

    def unmark(self) -> list[object]:
        """What was pushed since the last MARK, which is taken away."""
        items = self.stack
        if not self.below:
            raise Broken("bad-opcode", "needs a MARK, and there is none")
        self.stack = self.below.pop()
        return items

    def make(self, size_bytes: int) -> None:
        """Account for something large before it is made."""
        self.room -= size_bytes
        if self.room < 0:
            raise Broken("limit", "makes more of the file than it may")

    def check(self) -> None:
        """What is looked at once in a while only."""
        held = len(self.stack) + len(self.memo)
        if self.room < held * _SLOT_BYTES:
            raise Broken("limit", "makes more of the file than it may")

    def remember(self, index: int, value: object) -> None:
        """PUT: memo numbers may come in any order and again."""
        memo = self.memo
        if index > self.size:  # no pickle has more memo entries than bytes
            raise Broken("limit", f"numbers a memo entry {index} in a file of {self.size} bytes")
        if isinstance(memo, list):
            if index == len(memo):
                memo.append(value)
                return
            if index > len(memo):
                self.make(_ENTRY_BYTES * len(memo))
                memo = self.memo = Sparse(enumerate(memo))
        self.make(_ENTRY_BYTES)
        memo[index] = value
        self.fragments.clear()  # they hold what the number meant before

    def recall(self, index: int) -> object:
        """GET."""
        try:
            value = self.memo[index]
        except (IndexError, KeyError):
            raise Broken("bad-value", f"asks for memo entry {index}, which is not there") from None
        if isinstance(value, Remembered):
            self._decode(value)
            return self.memo[index]
        return value

    def _decode(self, stand_in: Remembered) -> None:
        """Put real tuples into the memo where *stand_in* stands for them."""
        self.make(_LOGPROB_BYTES * stand_in.rows.own)
        for index, row in enumerate(stand_in.rows, start=stand_in.first):
            if index - stand_in.first == stand_in.rows.own:
                return  # what comes now was appended later on
            if self.memo[index] is stand_in:
                self.memo[index] = row

    def remains(self) -> tuple[object, ...]:
        """Everything that is on the stack, beneath all marks too."""
        return tuple(value for stack in (*self.below, self.stack) for value in stack)
