"""Prometheus text, as a target exposes it: its samples, and what could not be read of it.

Any bytes give an Exposition: one bad line is one problem, and the rest survives. The time is
linear in the length of the text; whatever a cap leaves out is said by ``truncated``.
"""

import math
from codecs import BOM_UTF8
from collections import defaultdict
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import islice
from typing import Final

from app.domain.metric_line import BLANKS, number, read_labels, read_line, read_type, sample_name
from app.domain.series import Key, Sample, counted, fell

__all__ = [
    "Change",
    "Exposition",
    "Sample",
    "by_label",
    "counter_change",
    "figures",
    "parse",
    "total",
]

_MAX_BYTES: Final = 64 * 1024 * 1024
_MAX_SAMPLES: Final = 200_000
_MAX_LINES: Final = 1_000_000  # blank and bad lines cost time too
_MAX_PROBLEMS: Final = 20
_BLOCK_BYTES: Final = 1024 * 1024
_SUFFIXES: Final = ("", "_bucket", "_sum", "_count", "_total", "_created", "_info")


@dataclass(frozen=True, slots=True)
class Exposition:
    """What one scrape said."""

    samples: Mapping[str, Sequence[Sample]]  # by sample name, in the order of the text
    types: Mapping[str, str]  # family → gauge, counter, histogram …, as told by # TYPE
    problems: tuple[str, ...]  # "line 12: …"; the first 20, then how many more
    truncated: bool  # a cap was hit: there was more than was read


@dataclass(frozen=True, slots=True)
class Change:
    """A counter at two scrapes."""

    before: float
    after: float
    difference: float | None  # None where any of its series fell: the process was restarted


def parse(
    text: bytes,
    *,
    wanted: Collection[str] | None = None,
    max_bytes: int = _MAX_BYTES,
    max_samples: int = _MAX_SAMPLES,
) -> Exposition:
    """The samples of *text*, in Prometheus or OpenMetrics form.

    wanted: families to keep, under either spelling of the prefix; None keeps all. Lines of
    other families are passed over unread, so their faults are no problems. Invalid UTF-8
    becomes U+FFFD. A last line that max_bytes would cut is left out whole.
    """
    whole = text if len(text) <= max_bytes else text[: text.rfind(b"\n", 0, max_bytes) + 1]
    reading = _Reading(max_samples, None if wanted is None else _sample_names(wanted))
    lines = _lines(whole.removeprefix(BOM_UTF8))
    finished = reading.read(islice(lines, _MAX_LINES)) and next(lines, None) is None
    return Exposition(
        samples=reading.samples,
        types=reading.types,
        problems=reading.told_problems(),
        truncated=len(whole) < len(text) or not finished,
    )


def total(exposition: Exposition, name: str) -> float | None:
    """The sum over the series of *name* that count; None when absent, only NaN, or not finite.

    Shares such as token_usage are no sums: with several dp_rank ask ``by_label``.
    """
    return _sum(figures(exposition, name))


def by_label(exposition: Exposition, name: str, label: str) -> dict[str, float]:
    """Like ``total``, for each value of *label*; series without it are left out, as is None."""
    sums: defaultdict[str, float] = defaultdict(float)
    for key, value in figures(exposition, name, apart=label).items():
        labels = dict(key)
        if label in labels:
            sums[labels[label]] += value
    return {value: told for value, told in sums.items() if math.isfinite(told)}


def counter_change(first: Exposition, second: Exposition, name: str) -> Change | None:
    """How counter *name* moved from the first scrape to the second.

    None when either does not tell it, or was cut short: a missing part would look like a restart.
    """
    if first.truncated or second.truncated:
        return None
    earlier, later = figures(first, name), figures(second, name)
    before, after = _sum(earlier), _sum(later)
    if before is None or after is None:
        return None
    return Change(before, after, None if fell(earlier, later) else max(0.0, after - before))


def figures(
    exposition: Exposition,
    name: str,
    *,
    where: Mapping[str, str] | None = None,
    apart: str | None = None,
) -> dict[Key, float]:
    """The series of *name*, in either spelling, that count; see ``app.domain.series``.

    where: only series with these labels. apart: a label whose values are kept apart.
    """
    found = next((one for one in _spellings(name) if one in exposition.samples), name)
    asked = (where or {}).items()
    samples = (one for one in exposition.samples.get(found, ()) if asked <= one.labels.items())
    return counted(samples, adds_up=_adds_up(exposition, found), apart=apart)


def _sum(values: Mapping[Key, float]) -> float | None:
    result = sum(values.values()) if values else math.nan
    return result if math.isfinite(result) else None  # large ones together make +Inf


def _adds_up(exposition: Exposition, name: str) -> bool:
    kind = exposition.types.get(name)
    return kind == "counter" or (
        kind is None and name.endswith(("_total", "_bucket", "_count", "_sum"))
    )


def _spellings(name: str) -> tuple[str, ...]:
    """*name* and its other spelling: some relabelling writes ``sglang_`` for ``sglang:``."""
    for prefix, other in (("sglang:", "sglang_"), ("sglang_", "sglang:")):
        if name.startswith(prefix):
            return name, other + name.removeprefix(prefix)
    return (name,)


def _sample_names(families: Collection[str]) -> frozenset[str]:
    """Every sample name that one of *families* can expose."""
    # The family of a counter bears the _total of its sample in one format and not in the other.
    stems = {stem for family in families for stem in (family, family.removesuffix("_total"))}
    known = {name for stem in stems for name in _spellings(stem)}
    return frozenset(name + suffix for name in known for suffix in _SUFFIXES)


def _lines(text: bytes) -> Iterator[str]:
    """The lines of *text*, a block at a time: 64 MiB of newlines as one list would not fit."""
    start = 0
    while start < len(text):
        end = text.find(b"\n", start + _BLOCK_BYTES)
        end = len(text) if end < 0 else end
        # Not splitlines: a label may hold a form feed or U+2028.
        yield from text[start:end].decode("utf-8", "replace").split("\n")
        start = end + 1


@dataclass(slots=True)
class _Reading:
    """What has been read so far."""

    room: int  # samples that may still be kept
    wanted: frozenset[str] | None
    samples: dict[str, list[Sample]] = field(default_factory=dict)
    types: dict[str, str] = field(default_factory=dict)
    passed_over: set[str] = field(default_factory=set)  # names seen that nobody wanted
    blocks: dict[str, Mapping[str, str]] = field(default_factory=dict)  # raw text → its labels
    problems: list[str] = field(default_factory=list)
    problem_count: int = 0

    def read(self, lines: Iterator[str]) -> bool:
        """Take in *lines*; False when there is no room for a sample."""
        for line_number, line in enumerate(lines, 1):
            name, _, rest = line.partition("{")
            if name in self.passed_over:
                continue
            try:
                sample = self._quick(name, rest) or self._careful(line.strip(BLANKS))
            except ValueError as error:
                self._problem(line_number, error)
                continue
            if sample is not None:
                if self.room <= 0:
                    return False
                self.room -= 1
                self.samples.setdefault(sample.name, []).append(sample)
        return True

    def told_problems(self) -> tuple[str, ...]:
        """The first problems, then how many more there were."""
        more = self.problem_count - len(self.problems)
        return (*self.problems, f"and {more} more lines") if more else tuple(self.problems)

    def _quick(self, name: str, rest: str) -> Sample | None:
        """The sample of a line ``name{labels} value`` without more, its name known; else None."""
        if name not in self.samples:
            return None
        # The last brace may be an exemplar's; then what stands before is not one whole block.
        block, brace, figure = rest.rpartition("} ")
        labels = self._labels(block) if brace else None
        if labels is None:
            return None
        try:
            return Sample(name, labels, number(figure))
        except ValueError:
            return None

    def _labels(self, block: str) -> Mapping[str, str] | None:
        """The labels of *block*, read once: one server repeats the same few thousand times over."""
        labels = self.blocks.get(block)
        if labels is None:
            labels = read_labels(block)
            if labels is not None:
                self.blocks[block] = labels
        return labels

    def _careful(self, line: str) -> Sample | None:
        if not line or line.startswith("#"):
            self._comment(line)
            return None
        name = sample_name(line)
        if self.wanted is not None and name is not None and name not in self.wanted:
            self.passed_over.add(name)
            return None
        return Sample(*read_line(line))

    def _comment(self, line: str) -> None:
        told = read_type(line)
        if told is not None and (self.wanted is None or told[0] in self.wanted):
            self.types.setdefault(*told)

    def _problem(self, line_number: int, error: ValueError) -> None:
        self.problem_count += 1
        if len(self.problems) < _MAX_PROBLEMS:
            self.problems.append(f"line {line_number}: {error}")
