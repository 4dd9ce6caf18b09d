"""What the pieces of one answer add up to, with the moments at which its tokens came.

Streams of SGLang are cumulative, each frame with all that was said before, or, started with
``--incremental-streaming-output``, they carry what is new. A server does not tell which: the
counts of tokens do, and where there are none, whether a text begins with the one before it.
"""

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from hashlib import sha256
from typing import Any

import orjson

from app.domain.replay.logprobs import Logprobs
from app.domain.replay.outcomes import ErrorClass
from app.domain.replay.said import ALL, Said, said, words

DONE = b"[DONE]"
_OBJECT = b"{"
# In JSON a quotation mark inside a text has a backslash before it: no text looks like this.
_TOKENS = re.compile(rb'"completion_tokens":\s*(\d{1,9})')
_RUNS_ON = b'"finish_reason":null'
_MOST_PARTS = 65_536


@dataclass(slots=True)
class _Part:
    """One answer of a batch, or the only one; a figure that a later frame leaves out stays."""

    cumulative: bool | None = None  # None: one frame so far, which is the same either way
    pieces: list[str] = field(default_factory=list)
    ids: list[int] = field(default_factory=list)
    logprobs: Logprobs | None = None
    prompt_tokens: int | None = None
    completion_tokens: int | None = None
    cached_tokens: int | None = None
    finish_reason: str | None = None

    def take(self, one: Said, *, first: bool) -> None:
        if self.cumulative is None and not first and not one.added:
            self.cumulative = self._is_cumulative(one)
        if one.added or self.cumulative is False:
            self.pieces.append(one.text)
            self.ids += one.ids or ()
        elif one.text or one.ids:  # the last frame of an abort may be empty
            self.pieces = [one.text]
            self.ids = one.ids or []
        if one.prompt_tokens is not None:
            self.prompt_tokens = one.prompt_tokens
        if one.completion_tokens is not None:
            self.completion_tokens = one.completion_tokens
        if one.cached_tokens is not None:
            self.cached_tokens = one.cached_tokens
        if one.finish_reason is not None:
            self.finish_reason = one.finish_reason

    def take_logprobs(self, rows: list[Any], likeliest: object) -> None:
        self.logprobs = self.logprobs or Logprobs()
        self.logprobs.take(rows, likeliest, len(self.ids))

    def _is_cumulative(self, one: Said) -> bool:
        known, told = len(self.ids), one.completion_tokens
        if one.ids is not None and told is not None and known:
            if known + len(one.ids) == told:
                return False
            if len(one.ids) == told:
                return True
        return one.text.startswith("".join(self.pieces))


@dataclass(slots=True)
class Answer:
    """One answer as it comes. *ends* and *tokens* are of each frame that brought tokens."""

    frames: int = 0
    done: bool = False  # a stream said that it is
    error: ErrorClass | None = None
    says: str | None = None
    moments: list[float] = field(default_factory=list)
    counts: list[int] = field(default_factory=list)
    _parts: dict[int, _Part] = field(default_factory=dict)
    _known_tokens: int = 0
    _told_tokens: int = 0  # by all parts that told any
    _silent_parts: int = 0  # those that told none so far
    _repeats: bool = False  # it is one answer, whose frames are cumulative
    _undecoded: bytes | None = None

    def frame(self, data: bytes, at: float) -> None:
        """Take in one event of a stream, which came *at*. Raises ValueError for no answer."""
        if data == DONE:
            self.done = True
            return
        self.frames += 1
        if self._scanned(data, at):
            return
        self._undecoded = None
        self._take(orjson.loads(data), at)

    def whole(self, body: bytes) -> None:
        """Take in the body of an answer that is no stream. Raises ValueError for no answer."""
        self.frames += 1
        self._take(orjson.loads(body), None)
        self.done = True

    def refused(self, body: bytes) -> None:
        """Take the words out of the body of an answer whose status is no success."""
        try:
            self.says = words(orjson.loads(body))
        except orjson.JSONDecodeError:
            self.says = body.decode("utf-8", "replace")

    def ended(self) -> None:
        """To be called once, when nothing comes any more."""
        if self._undecoded is not None:
            self._take(orjson.loads(self._undecoded), None)

    def _scanned(self, data: bytes, at: float) -> bool:
        """Whether the frame tells all that matters before the end without being decoded.

        What a frame of a cumulative stream says is in the next one again, so only the last is
        decoded: all of them together are as long as the square of the answer.
        """
        if not self._repeats or _RUNS_ON not in data or data[:1] != _OBJECT:
            return False
        found = _TOKENS.search(data)
        if found is None:
            return False
        self._undecoded = data
        self._stamp(int(found[1]) - self._known_tokens, at)
        return True

    def _take(self, value: Any, at: float | None) -> None:  # noqa: ANN401  (JSON)
        spoken = False
        for one in said(value):
            if one.error is not None and self.error is None:
                self.error, self.says = one.error, one.says
            if one.text or one.ids:
                spoken = True
            self._take_part(one)
        if at is None:
            return
        only = self._parts.get(0) if len(self._parts) == 1 else None
        self._repeats = only is not None and only.cumulative is True
        told = self._told_so_far()
        new = (told - self._known_tokens) if told is not None else int(spoken)
        self._stamp(new if spoken or new > 0 else 0, at)

    def _take_part(self, one: Said) -> None:
        part = self._parts.get(one.place)
        first = part is None
        if part is None:
            if len(self._parts) >= _MOST_PARTS:
                raise ValueError(one.place)
            part = self._parts[one.place] = _Part()
            self._silent_parts += 1
        before = part.completion_tokens
        part.take(one, first=first)
        if one.logprobs is not None:
            part.take_logprobs(*one.logprobs)
        after = part.completion_tokens
        if after is not None:
            self._told_tokens += after - (before or 0)
            self._silent_parts -= before is None

    def _told_so_far(self) -> int | None:
        """As ``completion_tokens``; at each frame, so the parts are not added up anew."""
        if ALL in self._parts:
            return self._parts[ALL].completion_tokens
        return None if self._silent_parts else self._told_tokens

    def _stamp(self, new: int, at: float) -> None:
        if new > 0:
            self._known_tokens += new
            self.moments.append(at)
            self.counts.append(new)

    @property
    def said_anything(self) -> bool:
        return bool(self._parts)

    @property
    def prompt_tokens(self) -> int | None:
        return self._figure("prompt_tokens")

    @property
    def completion_tokens(self) -> int | None:
        return self._figure("completion_tokens")

    @property
    def cached_tokens(self) -> int | None:
        return self._figure("cached_tokens")

    @property
    def finish_reason(self) -> str | None:
        """Of all parts; one that was aborted, or has not finished, before the others."""
        reasons = [part.finish_reason for part in self._spoken()]
        if not reasons or None in reasons:
            return None
        return "abort" if "abort" in reasons else reasons[0]

    @property
    def text(self) -> str:
        return "\n".join("".join(part.pieces) for part in self._spoken())

    @property
    def ids(self) -> Sequence[int]:
        """The token ids of the only part; empty where the server tells none, or of a batch."""
        parts = self._spoken()
        ids = parts[0].ids if len(parts) == 1 else []
        return ids if set(map(type, ids)) <= {int} else ()  # the server may say anything

    def logprobs_at(self, place: int) -> Mapping[int, float]:
        """Those by token where ``ids`` has *place*; empty where the server told none."""
        parts = self._spoken()
        told = parts[0].logprobs if len(parts) == 1 else None
        return told.at(place, parts[0].ids[place]) if told else {}

    def output_hash(self) -> str | None:
        """Of the text, or of the ids where there is no text; None where there is neither."""
        text, ids = self.text, self.ids
        if not text and not ids:
            return None
        told = text.encode("utf-8", "surrogatepass") if text else repr(list(ids)).encode()
        return sha256(told).hexdigest()[:16]

    def _spoken(self) -> list[_Part]:
        return [part for place, part in self._parts.items() if place != ALL]

    def _figure(self, name: str) -> int | None:
        """The figure of the whole answer, or of its parts together where all tell it."""
        if ALL in self._parts:
            told: int | None = getattr(self._parts[ALL], name)
            return told
        total = 0
        for part in self._parts.values():
            number = getattr(part, name)
            if number is None:
                return None
            total += number
        return total if self._parts else None


def pace_ms(moments: Sequence[float], counts: Sequence[int]) -> tuple[float, float] | None:
    """The median and the 99th percentile of milliseconds from token to token, after the first.

    Tokens that came in one frame share the time since the one before. None of fewer than two.
    """
    gaps = sorted(
        (1000.0 * (at - before) / count, count)
        for before, at, count in zip(moments, moments[1:], counts[1:], strict=False)
    )
    total = sum(count for _, count in gaps)
    return (_rank(gaps, total, 50), _rank(gaps, total, 99)) if total else None


def _rank(gaps: Sequence[tuple[float, int]], total: int, percent: int) -> float:
    left = -(-total * percent // 100)
    for gap, count in gaps:
        left -= count
        if left <= 0:
            return gap
    return gaps[-1][0]
