"""Whether an answer is the recorded one: never byte for byte.

The same request gives other tokens in another batch, as sums in floating point depend on the
order; where two tokens are about as likely, either may come, and all after it differs. So an
answer is compared by its first token that differs and by how far apart the two tokens were
there; without that, by its length and the reason it ended.
"""

from collections.abc import Sequence
from typing import Literal

from app.domain.replay.logprobs import NOISE_LOGPROB_GAP
from app.domain.replay.outcomes import Outcome
from app.domain.replay.planned import Recorded

Likeness = Literal["same", "noise", "different", "unjudged", "unknown"]


def first_divergent(recorded: Sequence[int], replayed: Sequence[int]) -> int | None:
    """The place, from 0, of the first token that differs; None where one begins the other."""
    return next(
        (
            place
            for place, (was, now) in enumerate(zip(recorded, replayed, strict=False))
            if was != now
        ),
        None,
    )


def likeness(outcome: Outcome, recorded: Recorded) -> Likeness:
    """How the answer compares with the recorded one.

    What differs is "unjudged" where tokens were drawn by chance, and where a token differs and no
    gap of likelihoods is known: that is neither the same nor explained by batch size.
    """
    if not outcome.completed or recorded.state != "finished" or recorded.finish_reason is None:
        return "unknown"
    if outcome.first_divergent_token is not None:
        gap = outcome.logprob_gap if recorded.greedy else None
        if gap is None:
            return "unjudged"
        return "different" if abs(gap) > NOISE_LOGPROB_GAP else "noise"
    if not outcome.compared_tokens:
        return "unknown"
    if _ended_alike(outcome, recorded):
        return "same"
    return "different" if recorded.greedy else "unjudged"


def _ended_alike(outcome: Outcome, recorded: Recorded) -> bool:
    """Whether it is as long and ended for the same reason, or was cut short by our own limit."""
    now, was = outcome.completion_tokens, recorded.completion_tokens
    if outcome.finish_reason == "length" and now is not None and was is not None and now <= was:
        return True
    return outcome.finish_reason == recorded.finish_reason and now == was
