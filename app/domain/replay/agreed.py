"""What a person agreed to for a replay, held to its bounds, and kept as JSON."""

from collections.abc import Mapping
from dataclasses import asdict
from typing import Any, get_args

from app.domain.replay.options import Allowed, Mode, Options, Window
from app.errors import Rejected

MOST_TRIALS = 20  # of each side
MOST_PARALLEL = 4096
MOST_NEW_TOKENS = 131_072  # nobody may ask for more of one request
LONGEST_REQUEST_SECONDS = 3600.0
SLOWEST, FASTEST = 0.01, 1000.0
LONGEST_SECONDS = 7 * 24 * 3600.0


def check(options: Options, trials: int) -> None:
    """Raises Rejected for what makes no sense, or is more than a replay may ask for."""
    _within("speed", options.speed, SLOWEST, FASTEST)
    _within("parallel", options.parallel, 1, MOST_PARALLEL)
    _within("trials", trials, 1, MOST_TRIALS)
    _within("most_new_tokens", options.most_new_tokens, 1, MOST_NEW_TOKENS)
    if not 0 < options.sample <= 1:
        raise Rejected(f"A sample is a share above 0 and up to 1, not {options.sample:g}.")
    if options.cut_gaps_to_seconds is not None:
        _within("cut_gaps_to_seconds", options.cut_gaps_to_seconds, 0, LONGEST_SECONDS)
    _check_window(options.window)


def check_deadline(request_seconds: float) -> None:
    """Raises Rejected for a time that no request should take."""
    _within("request_seconds", request_seconds, 1, LONGEST_REQUEST_SECONDS)


def as_json(options: Options) -> dict[str, Any]:
    """*options* as they are kept and shown."""
    told = asdict(options)
    return {**told, "allow": sorted(options.allow)}


def read(told: Mapping[str, Any]) -> Options:
    """The other way round."""
    allow = frozenset(one for one in get_args(Allowed) if one in told["allow"])
    mode: Mode = next(one for one in get_args(Mode) if one == told["mode"])
    return Options(**{**told, "allow": allow, "mode": mode, "window": Window(**told["window"])})


def _check_window(window: Window) -> None:
    _within("from_seconds", window.from_seconds, 0, LONGEST_SECONDS)
    until = window.until_seconds
    if until is not None and not window.from_seconds < until:
        raise Rejected("The window ends before it begins.", fix="Its end is not in it.")


def _within(name: str, value: float, least: float, most: float) -> None:
    if not least <= value <= most:
        raise Rejected(f"{name} is {value:g}; it is {least:g} to {most:g}.")
