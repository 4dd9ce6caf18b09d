"""What the pieces of one HTTP answer to a replayed request say, taken in as they arrive."""

from dataclasses import dataclass, field

from app.domain.replay.answer import Answer
from app.domain.replay.frames import Frames
from app.domain.replay.limits import Limits
from app.domain.replay.outcomes import ErrorClass, error_of_status
from app.domain.replay.phrases import redirected

_MOST_ERROR_BYTES = 64 * 1024
_PIECES_A_FRAME = 2  # of a stream, where the network cuts each in two


@dataclass(slots=True)
class Sent:
    """How one request went, on the monotonic clock. *sent_at* None: it found no connection.

    *kept_line*: it went over one that an earlier request had used.
    """

    began_at: float
    sent_at: float | None = None
    ended_at: float = 0.0
    status: int | None = None
    error: ErrorClass | None = None
    says: str | None = None
    answer: Answer = field(default_factory=Answer)
    answer_bytes: int = 0
    kept_line: bool = False

    def fail(self, error: ErrorClass, says: str) -> None:
        """Note what went wrong, unless the target itself had said before what is wrong."""
        if self.error is None:
            told = self.answer.error
            self.error, self.says = (told, self.answer.says) if told else (error, says)


class Answering:
    """Takes an answer in and writes what it says into *sent*.

    Each step returns whether there is any use in more of it; an answer that is not wanted any
    more has told why by then.
    """

    __slots__ = ("_body", "_ended", "_frames", "_limits", "_pieces", "sent")

    def __init__(self, sent: Sent, limits: Limits) -> None:
        self.sent, self._limits = sent, limits
        self._ended = False
        self._pieces = 0
        self._frames: Frames | None = None
        self._body = bytearray()

    def head(
        self, status: int, content_type: bytes, encoding: bytes, location: bytes = b""
    ) -> bool:
        """The status line and the headers that matter, in lower case but for *location*."""
        self.sent.status = status
        self.sent.error = error_of_status(status)
        if self.sent.error == "redirected":
            self.sent.says = redirected(location.decode("utf-8", "replace"))
        if encoding not in (b"", b"identity"):
            self.sent.fail("malformed-answer", "Compressed, although nothing compressed was asked.")
            return False
        if self.sent.error is None and content_type.startswith(b"text/event-stream"):
            self._frames = Frames(self._limits.frame_bytes)
        return True

    def piece(self, piece: bytes, at: float) -> bool:
        """A piece of the body, which arrived *at*."""
        sent, limits = self.sent, self._limits
        sent.answer_bytes += len(piece)
        self._pieces += 1
        if self._pieces > _PIECES_A_FRAME * limits.frames:
            return self._within(within=False)
        if self._frames is None:
            self._body += piece
            if sent.error is not None:
                return len(self._body) < _MOST_ERROR_BYTES
            return self._within(within=sent.answer_bytes <= limits.answer_bytes)
        try:
            for data in self._frames.feed(piece):
                sent.answer.frame(data, at)
        except OverflowError:
            return self._within(within=False)
        except ValueError:
            sent.fail("malformed-answer", "A part of the answer is no JSON.")
            return False
        within = sent.answer_bytes <= limits.answer_bytes and sent.answer.frames <= limits.frames
        return self._within(within=within)

    def end(self) -> None:
        """Nothing more comes: the answer is whole, or was broken off. Once is enough."""
        if self._ended:
            return
        self._ended = True
        sent, answer = self.sent, self.sent.answer
        if sent.error is not None and self._frames is None:
            answer.refused(bytes(self._body))
            sent.says = sent.says or answer.says
            return
        try:
            answer.ended()
            if self._body:
                answer.whole(bytes(self._body))
        except ValueError:
            sent.fail("malformed-answer", "The answer, or a part of it, is no JSON.")
        if answer.error is not None:
            sent.fail(answer.error, answer.says or "")

    def complete(self) -> None:
        """The answer came to its end as far as HTTP goes; whether it also said that it was done."""
        self.end()
        answer = self.sent.answer
        if self._frames is not None and not (answer.done or answer.finish_reason):
            self.sent.fail("stream-cut", "The stream ended before it said that it was done.")
        elif not answer.said_anything:
            what = "with JSON that is no answer" if answer.frames else "without an answer"
            self.sent.fail("malformed-answer", f"It answered {self.sent.status} {what}.")

    def _within(self, *, within: bool) -> bool:
        if not within:
            self.sent.fail("too-large", "The answer has more than is taken in.")
        return within
