"""What the rules say of a bundle, as rows with chips that lead to the place they rest on."""

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from app.web.formats import visible

MOST_CHIPS = 6
LONGEST_TOLD = 600
LONGEST_PLACE = 60
_FILE = re.compile(r"artifact (\d{1,12})")
_MARKS = {"bad": "bad", "warn": "warn", "note": "quiet"}


@dataclass(frozen=True, slots=True)
class Chip:
    """A place in a capture: ``loads_all_1 /loads/5``. With *artifact_id*, in a file of a host."""

    capture: str
    at: str
    text: str
    artifact_id: int | None = None


@dataclass(frozen=True, slots=True)
class SignalRow:
    """One finding, its mark, how much stands behind it, and where that can be seen."""

    rule: str
    mark: str
    says: str
    status: str
    chips: tuple[Chip, ...]
    more: int  # places that have no chip of their own


@dataclass(frozen=True, slots=True)
class RuleTold:
    """A rule that found nothing, or could not look, and its reason."""

    rule: str
    says: str
    chips: tuple[Chip, ...] = ()


def signal_rows(claims: Sequence[Mapping[str, Any]]) -> list[SignalRow]:
    """The findings in the order in which they were weighed."""
    return [
        SignalRow(
            rule=str(claim["id"]),
            mark=_MARKS.get(str(claim.get("level")), "quiet"),
            says=told(claim["says"]),
            status=str(claim.get("status", "unknown")),
            chips=chips(claim),
            more=max(0, len(claim.get("evidence") or ()) - MOST_CHIPS),
        )
        for claim in claims
    ]


def rules_told(entries: Sequence[Mapping[str, Any]]) -> list[RuleTold]:
    """Rules that stayed quiet (``says``) or could not look (``why``)."""
    return [
        RuleTold(str(entry["id"]), told(entry.get("says") or entry.get("why") or ""), chips(entry))
        for entry in entries
    ]


def chips(claim: Mapping[str, Any]) -> tuple[Chip, ...]:
    """The first places that *claim* rests on; a place is a capture and what stands in it."""
    places = list(claim.get("evidence") or ())[:MOST_CHIPS]
    return tuple(_chip(str(one["artifact"]), str(one.get("at") or "")) for one in places)


def _chip(artifact: str, at: str) -> Chip:
    if file := _FILE.fullmatch(artifact):
        return Chip(artifact, at, visible(at)[:LONGEST_PLACE], int(file[1]))
    capture = artifact.rsplit("/", 1)[-1].partition(".")[0]
    short = at if len(at) <= LONGEST_PLACE else f"{at[: LONGEST_PLACE - 1]}…"
    return Chip(capture, at, visible(f"{capture} {short.removeprefix('sglang:')}".strip()))


def told(text: Any) -> str:  # noqa: ANN401  (out of a summary's JSON)
    """*text* with bounded length and its control characters shown."""
    return visible(str(text)[:LONGEST_TOLD])
