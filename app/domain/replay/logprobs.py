"""How far apart two tokens were, at the place where an answer leaves the recorded one.

Both answers are the same up to there, so both servers chose between the same tokens. What they
tell of it is one distribution each: by the new one the token that came was likelier than the
recorded one, by the recorded one the other way round. Each distance is the least by which the two
servers disagree, so the larger counts.
"""

from collections.abc import Iterator, Mapping
from math import exp, log

import orjson

from app.domain.dumps.logprobs import token_and_logprob

# Natural logarithm. Gaps of batch size and kernels are below this; above it, something changed.
NOISE_LOGPROB_GAP = 0.1
_LEAST_LEFT = 1e-4  # of probability: less is rounding
_MOST_SUM = 1.001
_DECIMALS = 4


class Logprobs:
    """Those of one answer while it comes, kept as JSON: in no more bytes than it came in."""

    __slots__ = ("_count", "_pieces")

    def __init__(self) -> None:
        self._pieces: list[tuple[int, bytes]] = []  # the place of the first of each
        self._count = 0

    def take(self, rows: list[object], likeliest: object, tokens: int) -> None:
        """*rows* are of all *tokens* tokens so far, or of the last; *likeliest* are beside them.

        Servers tell both ways, whichever way their text comes. Of anything else nothing is kept.
        """
        if self._count + len(rows) != tokens:  # all of them, or none that fit
            self._pieces, self._count = [], 0
        if self._count + len(rows) != tokens:
            return
        try:
            kept = orjson.dumps((rows, likeliest))
        except TypeError:  # nested too deep to be any
            return
        self._pieces.append((self._count, kept))
        self._count = tokens

    def at(self, place: int, token: int) -> dict[int, float]:
        """The log probabilities by token at *place*, where *token* came; empty: not told."""
        held = [one for one in self._pieces if one[0] <= place]
        if place >= self._count or not held:
            return {}
        first, kept = held[-1]
        rows, likeliest = orjson.loads(kept)
        came = token_and_logprob(rows[place - first])
        if came is None or came[0] != token:
            return {}
        return {**dict(_likeliest(likeliest, place - first, len(rows))), came[0]: came[1]}


def logprob_gap(
    recorded: tuple[int, float | None], came: int, told: Mapping[int, float]
) -> float | None:
    """How far apart the two tokens were, or at least: exactly where it is no more than noise.

    *recorded* is the token with its log probability when it was recorded, *told* has those of the
    new answer. None: not known, or what came was the less likely, so chosen by something else.
    """
    token, was = recorded
    if token in told and came in told and told[came] < told[token] - NOISE_LOGPROB_GAP:
        return None
    before = None if was is None else _apart(token, came, {token: was})
    known = [one for one in (_apart(came, token, told), before) if one is not None]
    return max(known, default=None)


def _apart(likelier: int, other: int, told: Mapping[int, float]) -> float | None:
    """Where *other* is not told, it has at most what the rest leaves of 1, and at most as much
    as the least likely that is told: enough to say that it was far off, never that it was near.
    """
    if likelier not in told:
        return None
    if other in told:
        return round(max(told[likelier] - told[other], 0.0), _DECIMALS)
    total = sum(map(exp, told.values()))
    if total > _MOST_SUM:
        return None
    left = max(min(1 - total, exp(min(told.values()))), _LEAST_LEFT)
    apart = round(told[likelier] - log(left), _DECIMALS)
    return apart if apart > NOISE_LOGPROB_GAP else None


def _likeliest(told: object, place: int, places: int) -> Iterator[tuple[int, float]]:
    """The rows of one of *places* places; none where there are not as many."""
    if not isinstance(told, list) or len(told) != places or not isinstance(told[place], list):
        return
    for row in told[place]:
        if (one := token_and_logprob(row)) is not None:
            yield one
