"""Whether it happened again: the runs of a replay taken together, and why that is said."""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from itertools import combinations
from typing import Literal

from app.domain.claims import Status
from app.domain.counting import counted
from app.domain.replay.chance import none_seen
from app.domain.replay.latency import median_noise
from app.domain.replay.symptoms import Question, Sighting, sighting
from app.domain.replay.tally import Trial

Word = Literal["reproduced", "reproduced sometimes", "not reproduced", "inconclusive"]

ESTABLISHED_TRIALS = 3  # that all showed it
_MOST_TRIALS_COMPARED = 10


@dataclass(frozen=True, slots=True)
class Verdict:
    """*shown* of *usable* runs showed the symptom; *unclear* ones are inconclusive."""

    word: Word
    why: str
    status: Status
    shown: int
    usable: int
    unclear: int
    sightings: tuple[Sighting, ...]


def verdict(trials: Sequence[Trial], question: Question) -> Verdict:
    """What *trials*, runs of the same requests on the same target, say together."""
    if question.noise is None:
        question = replace(question, noise=measured_noise(trials))
    sightings = tuple(sighting(trial, question) for trial in trials)
    shown = [one for one in sightings if one.state == "shown"]
    usable = [one for one in sightings if one.state != "inconclusive"]
    word = _word(len(shown), len(usable))
    return Verdict(
        word=word,
        why=_why(word, sightings, trials, question),
        status=_status(word, len(usable)),
        shown=len(shown),
        usable=len(usable),
        unclear=len(sightings) - len(usable),
        sightings=sightings,
    )


def measured_noise(trials: Sequence[Trial]) -> float | None:
    """How far runs of the same requests on one target are apart by their medians: A/A.

    The largest of all pairs of runs, as a share; None where no two can be compared.
    """
    kept = [trial.e2e_seconds for trial in trials if trial.valid is not False and not trial.resumed]
    pairs = combinations(kept[:_MOST_TRIALS_COMPARED], 2)
    apart = [noise for one, other in pairs if (noise := median_noise(one, other)) is not None]
    return max(apart, default=None)


def two_sides(a: Verdict, b: Verdict, name_a: str, name_b: str) -> str:
    """The sentence for the same requests on two targets, A and B: who showed it more stands first.

    One without a conclusive trial stands last; of two that are alike, B stands first.
    """
    if not a.usable and not b.usable:
        return f"No trial of {name_b} or of {name_a} was conclusive."
    (first, name), (last, other) = sorted([(b, name_b), (a, name_a)], key=_least_shown_last)
    if last.usable:
        says = f"{_shown(first, name)}; in {last.shown} of {last.usable} of {other}."
    else:
        says = f"{_shown(first, name)}; no trial of {other} was conclusive."
    unclear = sum(one.unclear for one in (a, b) if one.usable)
    return f"{says} {_inconclusive(unclear)}." if unclear else says


def _least_shown_last(side: tuple[Verdict, str]) -> float:
    one, _ = side
    return -one.shown / one.usable if one.usable else 1.0


def _inconclusive(count: int) -> str:
    return f"{counted(count, 'trial')} {'was' if count == 1 else 'were'} inconclusive"


def _shown(one: Verdict, name: str) -> str:
    return f"Shown in {one.shown} of {counted(one.usable, 'trial')} of {name}"


def _word(shown: int, usable: int) -> Word:
    if not usable:
        return "inconclusive"
    if not shown:
        return "not reproduced"
    return "reproduced" if shown == usable else "reproduced sometimes"


def _status(word: Word, usable: int) -> Status:
    if word == "inconclusive":
        return Status.UNKNOWN
    if word == "reproduced" and usable >= ESTABLISHED_TRIALS:
        return Status.ESTABLISHED
    return Status.SUPPORTED


def _why(
    word: Word, sightings: Sequence[Sighting], trials: Sequence[Trial], question: Question
) -> str:
    if not sightings:
        return "Nothing was sent."
    telling = {"inconclusive": word, "not reproduced": "not shown"}.get(word, "shown")
    first = next(one.why for one in sightings if one.state == telling)
    usable = sum(one.state != "inconclusive" for one in sightings)
    shown = sum(one.state == "shown" for one in sightings)
    unclear = len(sightings) - usable
    parts = [first]
    if word.startswith("reproduced"):
        parts.insert(0, f"Shown in {shown} of {counted(usable, 'trial')}.")
    if word == "not reproduced":
        parts += [_unseen(trials, sightings, question), *filter(None, [question.untested])]
    if unclear and usable:
        other = next(one.why for one in sightings if one.state == "inconclusive")
        parts.append(f"{_inconclusive(unclear)}: {other}")
    return " ".join(parts)


def _unseen(trials: Sequence[Trial], sightings: Sequence[Sighting], question: Question) -> str:
    """What it is worth not to have seen it: by requests where their rate is known, else by runs."""
    clear = [
        trial for trial, one in zip(trials, sightings, strict=True) if one.state != "inconclusive"
    ]
    if question.rate is not None:
        answered = sum(trial.completed for trial in clear)
        return none_seen(answered, question.rate, "request", "requests")
    return none_seen(len(clear), None, "trial", "trials")
