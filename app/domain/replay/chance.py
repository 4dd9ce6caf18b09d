"""What it means that something was not seen: how likely that is where it happens now and then.

Twenty answers without a fault that spoils 1.6 % of them prove nothing: 72 times in 100 twenty
such answers are all sound.
"""

from math import ceil, log, log1p

CONFIDENCE = 0.95


def chance_of_none(rate: float, trials: int) -> float:
    """How likely *trials* independent tries all miss what happens at *rate* (0 to 1) of them."""
    return (1.0 - min(1.0, max(0.0, rate))) ** max(0, trials)


def trials_needed(rate: float, confidence: float = CONFIDENCE) -> int | None:
    """How many tries show it at least once, this surely; None for what never happens."""
    if rate <= 0:
        return None
    if rate >= 1:
        return 1
    return max(1, ceil(log(1.0 - confidence) / log1p(-rate)))


def rate_excluded(trials: int, confidence: float = CONFIDENCE) -> float:
    """The lowest rate that *trials* tries without it speak against, this surely; 1 of none."""
    return 1.0 if trials <= 0 else 1.0 - (1.0 - confidence) ** (1.0 / trials)


def none_seen(trials: int, rate: float | None, one: str, many: str) -> str:
    """The sentence about *trials* of *one* or *many* without it; *rate* None: not known."""
    named = f"{trials:,} {one if trials == 1 else many}"
    if trials < 1:
        return f"No {one} was sent, which says nothing."
    if rate is None:
        least = _percent(rate_excluded(trials))
        return (
            f"None in {named}: that speaks only against a fault that comes in at least {least} of"
            f" {many}. A rarer one may still be there."
        )
    missed, needed = chance_of_none(rate, trials), trials_needed(rate)
    verdict = "proves nothing" if missed > 1.0 - CONFIDENCE else "speaks against it"
    says = (
        f"None in {named} {verdict}: at a rate of {_percent(rate)}, {named} would show none"
        f" {_percent(missed)} of the time."
    )
    if needed is not None and needed > trials:
        says += f" {needed:,} {many} are needed to see it with {_percent(CONFIDENCE)} certainty."
    return says


def _percent(rate: float) -> str:
    return f"{100 * rate:.2g} %"
