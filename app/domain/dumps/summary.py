"""The document of ``dump summarize``: what is in a file of requests, and which ones matter."""

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from app.domain.dumps.problems import Problems
from app.domain.dumps.quantiles import Sample
from app.domain.dumps.recorded import Dump, Row, State
from app.domain.dumps.suspects import Lineup, Suspect
from app.domain.dumps.unpacking import Unpacked

# As the interface names them; the rest keep their own words.
_NAMED = {"session": "sessions"}
_ALWAYS = ("multimodal", "lora", "sessions", "structured", "logprobs")


class Tally:
    """Sees every row of a file once, and knows what the summary needs."""

    def __init__(self) -> None:
        self.states: Counter[State | None] = Counter()
        self._lineup = Lineup()
        self._prompts, self._completions = Sample(), Sample()
        self._features: Counter[str] = Counter()
        self._streaming = self._streaming_known = 0
        self._starts = Span()
        self._problems = Problems()

    def see(self, row: Row) -> None:
        """Take *row* into account."""
        self.states[row["state"]] += 1
        self._lineup.see(row)
        self._prompts.add(row["prompt_tokens"])
        self._completions.add(row["completion_tokens"])
        if row["features"]:
            self._features.update(row["features"])
        if row["stream"] is not None:
            self._streaming_known += 1
            self._streaming += row["stream"]
        self._starts.see(row["started_at"])
        if row["problems"]:
            self._problems.add(f"Request {row['index']}: {'; '.join(row['problems'])}.")

    def suspects(self, dump: Dump) -> list[Suspect]:
        """The suspects among the rows, for a file that is *dump*."""
        return self._lineup.named(dump.kind)

    def document(self, dump: Dump) -> dict[str, Any]:
        """The summary, without the name and hash of the file and without its requests."""
        states, server = self.states, dump.server
        return {
            "kind": dump.kind,
            "format": dump.format,
            "sglang_version": server.sglang_version,
            "model_path": server.model_path,
            "topology": server.topology,
            "launch_command": server.launch_command,
            "requests_total": states.total(),
            "finished": states["finished"] + states["aborted"],  # what came to an end
            "unfinished": states["unfinished"],
            "aborted": states["aborted"],
            "not_recorded": states[None],
            "first_started_at": self._starts.first,
            "last_started_at": self._starts.last,
            "span_seconds": self._starts.seconds(),
            "arrival_rate_per_second": self._starts.rate(),
            "prompt_tokens": self._prompts.figures(),
            "completion_tokens": self._completions.figures(),
            "streaming": self._streaming if self._streaming_known else None,
            "features": _features(self._features),
            "suspects": self.suspects(dump),
            "blocked": dump.blocked,
            "problems": (*dump.problems, *self._problems.told()),
            "truncated": dump.truncated,
            "redacted": server.redacted,
        }


class Span:
    """From the first arrival to the last. Arrivals that are not known do not count."""

    __slots__ = ("_count", "first", "last")

    def __init__(self) -> None:
        self.first: float | None = None
        self.last: float | None = None
        self._count = 0

    def see(self, moment: float | None) -> None:
        """Take one arrival in, in whatever order they come."""
        if moment is None:
            return
        self._count += 1
        if self.first is None or moment < self.first:
            self.first = moment
        if self.last is None or moment > self.last:
            self.last = moment

    def seconds(self) -> float | None:
        """Between the first and the last arrival; None of none."""
        return None if self.first is None or self.last is None else round(self.last - self.first, 6)

    def rate(self) -> float | None:
        """Arrivals a second: intervals over time; None where there is no interval."""
        seconds = self.seconds()
        return round((self._count - 1) / seconds, 6) if seconds else None


def _features(counted: Mapping[str, int]) -> dict[str, int]:
    named = {_NAMED.get(feature, feature): count for feature, count in sorted(counted.items())}
    return {**dict.fromkeys(_ALWAYS, 0), **named}


def unreadable(why: str) -> dict[str, Any]:
    """The document of a file of which nothing could be read, for one reason."""
    dump = Dump("unreadable", "not read", problems=(why,))
    return {**Tally().document(dump), "members": (), "requests": []}


def wrapped(document: dict[str, Any], inside: Unpacked) -> dict[str, Any]:
    """*document* with what it was packed in; a packed file that broke off is unreadable."""
    document["members"] = inside.members
    if inside.wrapped and inside.why_not is None:
        document["format"] = f"{inside.wrapped}: {document['format']}"
    if inside.truncated:
        ends = f"Truncated: the {inside.wrapped} data end too soon."
        document["problems"] = (ends, *document["problems"])
        document |= {"kind": "unreadable", "truncated": True}
    return document


def shown_indexes(found: Iterable[Suspect], first: Sequence[int], most: int) -> list[int]:
    """Which requests a summary lists: the suspects, then the *first* of the file; in order."""
    chosen = dict.fromkeys([suspect["index"] for suspect in found][:most])
    for index in first:
        if len(chosen) >= most:
            break
        chosen.setdefault(index)
    return sorted(chosen)
