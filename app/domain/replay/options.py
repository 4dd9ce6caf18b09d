"""What a person chose for a replay, and what is known of the target it goes to."""

import re
from dataclasses import dataclass
from typing import Literal

Mode = Literal["open", "closed", "flat-out"]
Allowed = Literal["media-addresses", "custom-code"]
Version = tuple[int, ...]

DEFAULT_PARALLEL = 128
DEFAULT_MOST_NEW_TOKENS = 8192


@dataclass(frozen=True, slots=True)
class Window:
    """A stretch of the recording, in seconds after its first arrival; the end is not in it."""

    from_seconds: float = 0.0
    until_seconds: float | None = None


@dataclass(frozen=True, slots=True)
class Options:
    """How the requests are sent.

    *mode*: "open" sends each at its time whether or not earlier ones were answered, as the
    recorded clients did; "closed" keeps *parallel* in flight; "flat-out" sends as fast as it can,
    never more than *parallel* at once. *sample* is the share of sessions and single requests to
    take, and *seed* which. *cut_gaps_to_seconds* shortens silences of the recording that are
    longer than ``schedule.IDLE_GAP_SECONDS``; None waits them out. *name* begins the
    identifiers that requests get on the target; None lets the target make them up. *same_setup*
    is a person's word for what no recording tells: the target has its model, topology and
    accelerator.
    """

    mode: Mode = "open"
    speed: float = 1.0
    parallel: int = DEFAULT_PARALLEL
    window: Window = Window()
    sample: float = 1.0
    seed: int = 0
    cut_gaps_to_seconds: float | None = None
    most_new_tokens: int = DEFAULT_MOST_NEW_TOKENS
    ignore_eos: bool = False
    allow: frozenset[Allowed] = frozenset()
    name: str | None = None
    same_setup: bool = False

    @property
    def as_recorded(self) -> bool:
        """Whether the requests come no faster than they were recorded."""
        return self.mode == "open" and self.speed <= 1.0


@dataclass(frozen=True, slots=True)
class TargetFacts:
    """What decides which requests a target accepts; None is unknown, and then nothing is assumed.

    *vocab_size* bounds the token ids of synthetic prompts.
    """

    version: str | None = None
    frontend: Literal["python", "rust"] | None = None
    is_generation: bool | None = None
    disaggregation: str | None = None  # "prefill" or "decode" for an engine of a split server
    vocab_size: int | None = None


def release(version: str | None) -> Version | None:
    """The numbers of a version, ``0.5.9.post1`` as (0, 5, 9); None where it has none to go by.

    Builds from source may call themselves 0.0.0: that tells nothing.
    """
    found = re.match(r"v?(\d{1,4})\.(\d{1,4})(?:\.(\d{1,4}))?", version or "")
    if found is None:
        return None
    numbers = tuple(int(part or 0) for part in found.groups())
    return numbers if any(numbers) else None
