"""How lengths and arrivals of a file's requests are spread: what its pictures are drawn of."""

from array import array
from collections.abc import Iterable
from typing import TypedDict

ARRIVAL_BARS = 120
_MOST_BITS = 63  # of a length; a database holds no larger one

Bar = tuple[int, int]  # requests, and how many of them were unfinished
Shape = tuple[int | None, int | None, float | None, float | None, str | None]


class Lengths(TypedDict):
    """Bar *n* counts the lengths with *n* binary digits: 0, 1, 2 to 3, 4 to 7, …"""

    bars: list[Bar]
    unknown: Bar


class Arrivals(TypedDict):
    """Bars of equal time. *written_at*: the moment of the dump, where the file tells one."""

    since: float | None  # epoch seconds; None: no request has a time
    until: float | None
    written_at: float | None
    bars: list[Bar]
    unknown: Bar


class Spread(TypedDict):
    """Of all requests of a file."""

    prompt_tokens: Lengths
    completion_tokens: Lengths
    arrivals: Arrivals


def spread(shapes: Iterable[Shape]) -> Spread:
    """The spread of requests, each as prompt, completion, start, seconds since then, and state."""
    prompts, completions, arrivals = _Lengths(), _Lengths(), _Arrivals()
    for prompt, completion, started_at, elapsed_seconds, state in shapes:
        unfinished = state == "unfinished"
        prompts.see(prompt, unfinished=unfinished)
        completions.see(completion, unfinished=unfinished)
        arrivals.see(started_at, elapsed_seconds, unfinished=unfinished)
    return {
        "prompt_tokens": prompts.told(),
        "completion_tokens": completions.told(),
        "arrivals": arrivals.told(),
    }


class _Lengths:
    def __init__(self) -> None:
        self._all, self._unfinished = [0] * (_MOST_BITS + 1), [0] * (_MOST_BITS + 1)
        self._unknown, self._unknown_unfinished = 0, 0

    def see(self, length: int | None, *, unfinished: bool) -> None:
        if length is None:
            self._unknown += 1
            self._unknown_unfinished += unfinished
            return
        digits = min(length.bit_length(), _MOST_BITS)
        self._all[digits] += 1
        self._unfinished[digits] += unfinished

    def told(self) -> Lengths:
        last = max((n for n, count in enumerate(self._all) if count), default=-1)
        bars = list(zip(self._all[: last + 1], self._unfinished, strict=False))
        return {"bars": bars, "unknown": (self._unknown, self._unknown_unfinished)}


class _Arrivals:
    """Times are kept until all were seen: only then is known how long the whole is."""

    def __init__(self) -> None:
        self._times, self._flags = array("d"), bytearray()
        self._unknown, self._unknown_unfinished = 0, 0
        self._written_at: float | None = None

    def see(
        self, started_at: float | None, elapsed_seconds: float | None, *, unfinished: bool
    ) -> None:
        if started_at is None:
            self._unknown += 1
            self._unknown_unfinished += unfinished
            return
        self._times.append(started_at)
        self._flags.append(unfinished)
        if unfinished and elapsed_seconds is not None:  # to the moment of the dump
            moment = started_at + elapsed_seconds
            self._written_at = max(moment, self._written_at or moment)

    def told(self) -> Arrivals:
        unknown = (self._unknown, self._unknown_unfinished)
        if not self._times:
            return {
                "since": None, "until": None, "written_at": None, "bars": [], "unknown": unknown,
            }  # fmt: skip
        since, written_at = min(self._times), self._written_at
        last = max(self._times)
        until = last if written_at is None else max(last, written_at)
        return {
            "since": since,
            "until": until,
            "written_at": written_at,
            "bars": self._bars(since, until),
            "unknown": unknown,
        }

    def _bars(self, since: float, until: float) -> list[Bar]:
        count = ARRIVAL_BARS if until > since else 1
        width = (until - since) / count or 1.0
        bars, unfinished = [0] * count, [0] * count
        for moment, flag in zip(self._times, self._flags, strict=True):
            place = min(int((moment - since) / width), count - 1)
            bars[place] += 1
            unfinished[place] += flag
        return list(zip(bars, unfinished, strict=True))
