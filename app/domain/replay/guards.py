"""Whether a replay may start: it may bring the target down, and must never harm people on it."""

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Literal

from app.domain.counting import counted
from app.domain.loads import STALE_SECONDS, Loads

Kind = Literal["strangers", "split-engine", "not-clean", "load-unknown"]


@dataclass(frozen=True, slots=True)
class Refusal:
    """Why nothing is sent. *confirmable*: typing the target's name is an answer to it."""

    kind: Kind
    says: str
    fix: str
    confirmable: bool


@dataclass(frozen=True, slots=True)
class Asked:
    """The target as it is right before the first request.

    *clean*: an admin marked it as serving nobody. *of_recording*: the requests were recorded on
    it. *loads* is its answer about its load, None where it gave none. *disaggregation* is
    "prefill" or "decode" for an engine of a split server.
    """

    name: str
    clean: bool
    of_recording: bool = False
    loads: Loads | None = None
    disaggregation: str | None = None


def refusals(asked: Asked, typed: str | None = None) -> tuple[Refusal, ...]:
    """What stands against sending; *typed* is what a person typed to confirm, None: nothing.

    Empty when the replay may start. Strangers are never confirmed away.
    """
    confirmed = typed is not None and typed.strip() == asked.name
    return tuple(one for one in _against(asked) if not (confirmed and one.confirmable))


def strangers(loads: Loads | None, *, own: int = 0) -> int | None:
    """How many requests of others the target has; None where that is not known.

    *own* are ours in flight. A snapshot that is stale tells nothing, and neither do loads of which
    a rank is missing.
    """
    if loads is None:
        return None
    oldest = loads.oldest_seconds
    if not loads.live and oldest is not None and oldest > STALE_SECONDS:
        return None
    running, waiting = loads.total("running", None), loads.total("waiting", None)
    if running is None or waiting is None:
        return None
    return max(0, running + waiting - own)


def to_type(asked: Asked, requests: int) -> str:
    """What a person agrees to by typing the target's name."""
    return (
        f"This sends {counted(requests, 'request')} to {asked.name}, which may bring it down."
        f" Type {asked.name} to send them."
    )


def _against(asked: Asked) -> Iterator[Refusal]:
    found = strangers(asked.loads)
    if found:
        yield Refusal(
            "strangers",
            f"{asked.name} is serving {counted(found, 'request')} of others right now.",
            "Replay to a target that serves nobody. Nothing overrides this.",
            confirmable=False,
        )
    if asked.disaggregation in ("prefill", "decode"):
        yield Refusal(
            "split-engine",
            f"{asked.name} is a {asked.disaggregation} engine of a split server.",
            "Register the router in front of it and replay to that.",
            confirmable=False,
        )
    if not asked.clean:
        was = ", and the requests were recorded on it" if asked.of_recording else ""
        yield Refusal(
            "not-clean",
            f"{asked.name} is not marked as clean{was}.",
            f"Mark it as clean, or type {asked.name} to confirm that it serves nobody.",
            confirmable=True,
        )
    if found is None:
        yield Refusal(
            "load-unknown",
            f"Whether {asked.name} serves anybody right now cannot be told from its loads.",
            f"Look for yourself, then type {asked.name} to confirm that it serves nobody.",
            confirmable=True,
        )
