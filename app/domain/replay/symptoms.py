"""Whether one run of a replay showed the symptom that is looked for, and by what.

Each symptom is looked for in what the target did. What is of our own making never shows one: it
can only make a run say nothing.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any, Literal

from app.domain.claims import ProblemClass
from app.domain.counting import counted
from app.domain.replay.died import After
from app.domain.replay.latency import ASSUMED_NOISE, COLD_CACHE_SHARE, LEAST_PAIRS, paired
from app.domain.replay.options import Options
from app.domain.replay.outcomes import TURNED_AWAY, UNANSWERED
from app.domain.replay.readings import name_of
from app.domain.replay.tally import LATENESS_BUDGET_MS, Trial

Symptom = Literal["crash", "hang", "latency", "error", "output"]
State = Literal["shown", "not shown", "inconclusive"]

_NOT_TOLD: frozenset[After] = frozenset(("answers", "unknown"))  # whether it serves
MOST_BLIND_SHARE = 0.01  # of the requests; where more never took part, silence says nothing
_OF_CLASS: Mapping[ProblemClass, Symptom] = {
    ProblemClass.DOWN: "crash",
    ProblemClass.CRASH: "crash",
    ProblemClass.HANG: "hang",
    ProblemClass.LATENCY: "latency",
    ProblemClass.WRONG_OUTPUT: "output",
    ProblemClass.REGRESSION: "error",
}


@dataclass(frozen=True, slots=True)
class Sameness:
    """Whether the target is what was recorded; None is unknown."""

    model: bool | None = None
    topology: bool | None = None
    accelerator: bool | None = None
    by_word: tuple[str, ...] = ()  # what only a person said

    def said(self) -> "Sameness":
        """With a person's word for what is not known; what is known to differ stays so."""
        told = {name: True for name, same in self._told().items() if same is None}
        return Sameness(**{**self._told(), **told}, by_word=tuple(told))

    def missing(self) -> tuple[str, ...]:
        """What is not known to be the same."""
        return tuple(name for name, same in self._told().items() if not same)

    def _told(self) -> dict[str, bool | None]:
        return {
            "model": self.model, "topology": self.topology, "accelerator": self.accelerator,
        }  # fmt: skip


@dataclass(frozen=True, slots=True)
class Question:
    """What a replay is to tell.

    *reference*: "faulty" is a recording of the incident, whose symptom is to come again; "sound"
    one of a good server or of side A, from which the target is to differ. *suspects* are indexes
    of requests that must have taken part, *left_out* of those where none of them could be sent.
    *untested* is the sentence for what of the recording was not sent as it was. *rate* is the share
    of requests that had the symptom, where that is known; *noise* what an A/A run measured of the
    medians, None where none did.
    """

    symptom: Symptom
    options: Options = field(default_factory=Options)
    reference: Literal["faulty", "sound"] = "faulty"
    sameness: Sameness = field(default_factory=Sameness)
    suspects: frozenset[int] = frozenset()
    left_out: frozenset[int] = frozenset()
    untested: str | None = None
    rate: float | None = None
    noise: float | None = None


@dataclass(frozen=True, slots=True)
class Sighting:
    """What one run says of the symptom; *indexes* are the requests that showed it."""

    state: State
    why: str
    indexes: tuple[int, ...] = ()


def symptom_of(problem_class: ProblemClass | None) -> Symptom:
    """The symptom to look for in an incident of that class; a crash while it is undecided."""
    return "crash" if problem_class is None else _OF_CLASS[problem_class]


def sighting(trial: Trial, question: Question) -> Sighting:
    """What *trial* says. That nothing was seen counts only where it could have been seen."""
    seen = _LOOKS[question.symptom](trial, question)
    if seen.state != "not shown":
        return seen
    why = _blindness(trial, question)
    return seen if why is None else Sighting("inconclusive", why)


def _blindness(trial: Trial, question: Question) -> str | None:
    """Why a run in which nothing was seen says nothing; None where it does say something."""
    if not trial.reached or not trial.completed:
        return _nothing_answered(trial)
    if trial.sent < trial.planned and trial.died is not None:
        return f"{trial.died.says} The rest was not sent."
    if trial.sent < trial.planned:
        return f"It was stopped after {trial.sent:,} of {trial.planned:,} requests."
    if why := _missing(trial, question) or _turned_away(trial, question):
        return why
    if trial.valid is False:
        return _late(trial)
    if question.symptom == "crash" and trial.after == "unknown":
        return "How the target was afterwards is not known."
    return None


def _missing(trial: Trial, question: Question) -> str | None:
    """Of requests that never took part by our own making."""
    if missing := sorted(question.suspects.intersection(trial.blind)):
        return f"Request {missing[0]}, which is to show it, never took part."
    if question.left_out:
        return f"Request {min(question.left_out)}, which is to show it, was left out."
    blind = len(trial.blind)
    if blind > MOST_BLIND_SHARE * trial.planned:
        return f"{blind:,} of {trial.planned:,} requests never took part: {_ours(trial)}."
    return None


def _turned_away(trial: Trial, question: Question) -> str | None:
    """Of requests that the target was too busy for: it never began with them."""
    if missing := sorted(question.suspects.intersection(trial.turned_away)):
        return f"Request {missing[0]}, which is to show it, was turned away."
    count = len(trial.turned_away)
    if count > MOST_BLIND_SHARE * trial.planned:
        return f"{count:,} of {counted(trial.planned, 'request')} were turned away and never ran."
    return None


def _nothing_answered(trial: Trial) -> str:
    refused_alone = all(one.error == "connection-refused" for one in trial.failures)
    if trial.blind and not refused_alone:
        return f"No request was answered in full, for reasons of our own making: {_ours(trial)}."
    if not trial.reached:
        return "The target answered nothing and was not seen alive before: it was perhaps not up."
    return "No request was answered in full."


def _ours(trial: Trial) -> str:
    """The classes of failures that are of our own making, with their counts."""
    own = [one for one in trial.failures if one.own_making]
    return ", ".join(f"{one.own_making:,} × {name_of(one.error)}" for one in own)


def _late(trial: Trial) -> str:
    return (
        f"It was sent too late to be the recorded load: lateness p99 {trial.lateness_ms['p99']:.0f}"
        f" ms, where {LATENESS_BUDGET_MS:.0f} ms are allowed."
    )


def _crash(trial: Trial, question: Question) -> Sighting:
    died = trial.died
    if died is not None and died.certain and trial.taken:
        return Sighting("shown", died.says, tuple(dict.fromkeys((died.last_sent, *died.in_flight))))
    if trial.after == "down" and trial.taken and trial.reached:
        return Sighting("shown", "The target was found down afterwards; when it went is not known.")
    if died is not None:
        why = "Nothing else confirms it." if trial.taken else "It had taken none of the requests."
        return Sighting("inconclusive", f"{died.says} {why}", (died.last_sent,))
    wedged = ", but it is wedged: look for a hang" if trial.after == "wedged" else ""
    return Sighting("not shown", f"The target stayed up{wedged}.")


def _hang(trial: Trial, question: Question) -> Sighting:
    unanswered = len(trial.unanswered)
    said = f"{counted(unanswered, 'request')} got no whole answer in time"
    if not trial.reached:
        return Sighting("not shown", said)  # which says nothing, as it was perhaps not up
    if trial.after == "wedged" and (unanswered or trial.completed):
        return Sighting("shown", f"The target is wedged: {said}.", trial.unanswered)
    if trial.died is not None or trial.after == "down":
        return Sighting("inconclusive", "The target went away, so it cannot be seen hanging.")
    if again := trial.again_unanswered:
        says = f"Request {again[0]}, unfinished in the recording, got no answer in time again."
        return Sighting("shown", says, again)
    if trial.silent_at_end > 1 and trial.after in _NOT_TOLD:
        says = f"The target stopped answering: the last {trial.silent_at_end:,} got no answer."
        return Sighting("shown", says, trial.unanswered)
    if unanswered:
        return _left_waiting(trial, said)
    return Sighting("not shown", "Every request was answered in time.")


def _left_waiting(trial: Trial, said: str) -> Sighting:
    """Requests waited in vain, and nothing else speaks of a hang of the whole target."""
    if trial.after in _NOT_TOLD:
        return Sighting(
            "inconclusive", f"{said}, and whether the target lives on was not looked at."
        )
    if len(trial.unanswered) > 1:
        return Sighting("inconclusive", f"{said}, while others did: a part of the target may hang.")
    return Sighting("not shown", f"{said}, and the target went on answering.")


def _error(trial: Trial, question: Question) -> Sighting:
    if not trial.faulty:
        if count := len(trial.unanswered):
            says = f"{counted(count, 'request')} got no whole answer in time, so no error either."
            return Sighting("inconclusive", says)
        return Sighting("not shown", "The target refused and aborted nothing that it could take.")
    of_target = [one for one in trial.failures if one.count > one.own_making]
    told = ", ".join(f"{one.count - one.own_making:,} × {name_of(one.error)}" for one in of_target)
    if not trial.completed and all(one.error == "malformed-answer" for one in of_target):
        says = f"{told}, and not one answer: something else than the target may answer there."
        return Sighting("inconclusive", says)
    crowded = all(one.error in TURNED_AWAY for one in of_target if one.error not in UNANSWERED)
    if crowded and not question.options.as_recorded:
        return Sighting(
            "inconclusive", f"{told}: but the requests came faster than they were recorded."
        )
    says = f"{counted(len(trial.faulty), 'request')} failed by the target's making: {told}."
    return Sighting("shown", says, trial.faulty)


def _latency(trial: Trial, question: Question) -> Sighting:
    if why := _not_comparable(trial, question):
        return Sighting("inconclusive", why)
    measure, compared = _compared(trial)
    ratio, count = compared["p50"], compared["n"]
    if ratio is None or count < LEAST_PAIRS:
        return Sighting("inconclusive", _few(count))
    noise = question.noise if question.noise is not None else ASSUMED_NOISE
    source = "measured" if question.noise is not None else "assumed"
    says = (
        f"Replayed {measure} is {ratio:.2f} × the recorded one, the median of {count:,}"
        f" pairs; noise {noise:.0%}, {source}."
    )
    if by_word := question.sameness.by_word:
        are = "is" if len(by_word) == 1 else "are"
        says += f" That {' and '.join(by_word)} {are} the same was said, not read."
    if question.reference == "sound":
        return Sighting("shown" if ratio > 1 + noise else "not shown", says)
    if ratio < 1 - noise:
        return Sighting("not shown", says)
    cold = _cold_cache(trial)
    return Sighting("inconclusive", f"{says} {cold}") if cold else Sighting("shown", says)


def _not_comparable(trial: Trial, question: Question) -> str | None:
    if missing := question.sameness.missing():
        return f"Latency is not compared: not known to be the same {' and '.join(missing)}."
    options = question.options
    if options.mode != "open" or options.speed != 1:
        return "Latency is not compared: the requests did not come as they were recorded."
    if trial.resumed:
        return (
            "Latency is not compared: it was cut off and gone on with, so the requests before and"
            " after the gap met another load than the recorded one."
        )
    if trial.died is not None and trial.died.back_at is not None:
        return "Latency is not compared: the target went away in the middle and came back."
    if trial.lag_p99_ms is not None and trial.lag_p99_ms > LATENESS_BUDGET_MS:
        return (
            "Latency is not compared: our own event loop stood still for up to"
            f" {trial.lag_p99_ms:.0f} ms (p99), which would count as the target's."
        )
    return _late(trial) if trial.valid is False else None


def _compared(trial: Trial) -> tuple[str, dict[str, Any]]:
    """Whole times where there are enough pairs of them, else times to the first token."""
    whole = paired(trial.pairs["e2e"])
    if whole["n"] >= LEAST_PAIRS or len(trial.pairs["ttft"]) < LEAST_PAIRS:
        return "end to end", whole
    return "time to first token", paired(trial.pairs["ttft"])


def _few(count: int) -> str:
    return (
        f"Only {counted(count, 'request')} of the recording can be compared, with equal lengths of"
        f" answer; {LEAST_PAIRS} are needed. Pin the lengths (--ignore-eos) for more."
    )


def _cold_cache(trial: Trial) -> str | None:
    """The sentence for a cache that the recording had and the target has not."""
    was, now, prompt = trial.cached_tokens
    if not prompt or (was - now) / prompt <= COLD_CACHE_SHARE:
        return None
    return (
        f"But {was / prompt:.0%} of the prompt tokens were cached when it was recorded, and"
        f" {now / prompt:.0%} now: a cold cache would explain it."
    )


def _output(trial: Trial, question: Question) -> Sighting:
    same, noise, different, unjudged = (
        trial.likenesses.get(like, ()) for like in ("same", "noise", "different", "unjudged")
    )
    compared = len(same) + len(noise) + len(different) + len(unjudged)
    if not compared:
        return Sighting("inconclusive", "No answer could be compared with a recorded one.")
    if question.reference == "faulty":
        return _faulty_again(question, frozenset(same), frozenset(different))
    if different:
        says = f"{len(different):,} of {compared:,} answers differ by more than batch size explains"
        return Sighting("shown", f"{says}, the first of request {different[0]}.", different)
    if unjudged:
        says = f"{len(unjudged):,} of {counted(compared, 'answer')} differ, the first of request"
        return Sighting(
            "inconclusive", f"{says} {unjudged[0]}, and whether chance explains it is not known."
        )
    if (left := trial.completed - compared) > MOST_BLIND_SHARE * trial.completed:
        says = f"{left:,} of {counted(trial.completed, 'answer')} could not be compared."
        return Sighting("inconclusive", says)
    says = f"None of {counted(compared, 'answer')} differs by more than batch size explains"
    return Sighting("not shown", f"{says}; {len(noise):,} differ by less.")


def _faulty_again(question: Question, same: frozenset[int], different: frozenset[int]) -> Sighting:
    """Whether wrong answers came again: only a person knows which of the recorded are wrong."""
    if not question.suspects:
        return Sighting(
            "inconclusive", "Which of the recorded answers are wrong is not known here."
        )
    again = tuple(sorted(same & question.suspects))
    if again:
        says = f"{len(again):,} of {counted(len(question.suspects), 'wrong answer')} came again,"
        return Sighting("shown", f"{says} token for token, the first of request {again[0]}.", again)
    if question.suspects <= different:
        return Sighting("not shown", "Every answer that was wrong is another one now.")
    return Sighting(
        "inconclusive", "The wrong answers did not come again, and chance may explain that."
    )


_LOOKS: Mapping[Symptom, Callable[[Trial, Question], Sighting]] = {
    "crash": _crash,
    "hang": _hang,
    "latency": _latency,
    "error": _error,
    "output": _output,
}
