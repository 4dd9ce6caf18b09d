"""One trial of a replay in pictures and facts: was it the same load, and how long did it take?"""

from collections.abc import Iterator, Mapping
from typing import Any

from sqlmodel import Session

from app.domain.counting import counted
from app.domain.replay.spread import Spread, spread
from app.domain.replay.tally import LATENESS_BUDGET_MS
from app.store import replay_figures
from app.store.tables import ReplayTrial
from app.web.formats import milliseconds, number
from app.web.replay_pictures import late_bars, scatter
from app.web.replay_standing import Standing
from app.web.views.dump_requests import Fact
from app.web.views.replays import Figures

MOST_DRAWN_AT_ONCE = 5_000  # outcomes of a trial; more are read apart from the page
_LIKENESSES = (
    ("same", "the same"),
    ("noise", "differ no more than batch size explains"),
    ("different", "differ by more"),
    ("unjudged", "differ, by how much is not known"),
    ("unknown", "cannot be compared"),
)


def trial_to_draw(stands: Standing, number_asked: int | None) -> ReplayTrial | None:
    """The trial that was asked for, else the one that tells most; None: none has outcomes."""
    begun = [one for one in stands.trials if one.started_at is not None]
    chosen = [one for one in begun if one.number == number_asked]
    telling = [*chosen, *(one for one in begun if one.state == "running"), *stands.deaths]
    shown = [one for one in begun if stands.told_of(one).get("symptom_was") == "shown"]
    return next(iter([*telling, *shown, *reversed(begun)]), None)


def figures(session: Session, stands: Standing, trial: ReplayTrial) -> Figures:
    """The pictures and facts of *trial*, from all of its outcomes."""
    noise = _noise(session, stands, trial)
    told = spread(replay_figures.figures_of(session, stands.id, trial.number), noise)
    level, valid = _valid(stands, trial, told)
    return Figures(
        trial=stands.label(trial),
        scatter=scatter(told),
        late=late_bars(told),
        level=level,
        valid=valid,
        facts=list(_facts(stands, trial, told)),
    )


def _noise(session: Session, stands: Standing, trial: ReplayTrial) -> float | None:
    """Of the first two whole trials of the same target: A/A."""
    whole = [
        one.number
        for one in stands.trials
        if one.side == trial.side and one.state == "done" and one.started_at and not one.died
    ]
    if len(whole) < 2:
        return None
    return replay_figures.noise_between(session, stands.id, whole[0], whole[1])


def _valid(stands: Standing, trial: ReplayTrial, told: Spread) -> tuple[str, str]:
    if stands.options.mode != "open":
        return "quiet", "there are no recorded times to keep"
    if trial.resumed:
        return "warn", "cut off and gone on with: its load has a gap"
    p99 = told.lateness_ms["p99"]
    if p99 is None:
        return "unknown", "not known yet"
    if p99 > LATENESS_BUDGET_MS:
        return "bad", "sent too late to be the recorded load"
    return "good", "valid" if trial.state == "done" else "valid so far"


def _facts(stands: Standing, trial: ReplayTrial, told: Spread) -> Iterator[Fact]:
    document = stands.told_of(trial)
    plan = (stands.replay.plans or {}).get(trial.side) or {}
    if stands.options.mode == "open":
        yield Fact("Lateness", _lateness(told))
    yield Fact("Concurrency", _concurrency(stands, plan, told))
    yield Fact("Lengths", _lengths(stands, told))
    yield Fact("Times", _times(document))
    yield Fact("Answers", _answers(document))
    yield Fact("Cached", _cached(document))
    yield Fact("Prompts", _prompts(plan))


def _lateness(told: Spread) -> str:
    late = told.lateness_ms
    if late["p50"] is None:
        return "not known"
    figures = ", ".join(f"{name} {milliseconds(late[name])}" for name in ("p50", "p99"))
    beyond = f"{number(told.beyond)} beyond {LATENESS_BUDGET_MS:g} ms"
    return f"{figures}, most {milliseconds(late['max'])}; {beyond}"


def _concurrency(stands: Standing, plan: Mapping[str, Any], told: Spread) -> str:
    if told.in_flight is None:
        return "not known"
    recorded = plan.get("recorded_in_flight")
    was = f"{number(recorded)} recorded" if recorded else "recorded: not known"
    cap = stands.options.parallel
    limit = f"this replay's limit of {number(cap)}"
    held = f"{limit} held nothing back"
    if told.in_flight >= cap:
        held = f"{limit} was reached: requests may have waited for it"
    return f"at most {number(told.in_flight)} in flight, {was}; {held}"


def _lengths(stands: Standing, told: Spread) -> str:
    prompts, answers = told.prompts, told.answers
    parts = []
    if prompts.of:
        parts.append(f"prompts equal in {number(prompts.equal)} of {number(prompts.of)}")
    if answers.of:
        pinned = ", pinned with ignore_eos" if stands.options.ignore_eos else ""
        parts.append(f"answers in {number(answers.equal)} of {number(answers.of)}{pinned}")
    return "; ".join(parts) or "not known"


def _times(document: Mapping[str, Any]) -> str:
    """Of the requests whose answer is as long as the recorded one."""
    told = (document.get("ratio") or {}).get("e2e") or {}
    if not told.get("n"):
        return "compared once the replay has ended" if not document else "not known"
    figures = ", ".join(f"{name} {told[name]:.3g} ×" for name in ("p50", "p90", "p99"))
    return f"{figures} the recorded ones, {counted(told['n'], 'pair')} of equal length"


def _answers(document: Mapping[str, Any]) -> str:
    outputs = document.get("outputs")
    if not outputs:
        return "compared once the replay has ended" if not document else "not known"
    parts = [f"{number(outputs[key])} {says}" for key, says in _LIKENESSES if outputs.get(key)]
    return "; ".join(parts)


def _cached(document: Mapping[str, Any]) -> str:
    cached = document.get("cached_tokens") or {}
    of = cached.get("of_prompt")
    if not of:
        return "not known"
    was, now = cached["recorded"] / of, cached["replayed"] / of
    return f"{now * 100:.0f} % of {number(of)} prompt tokens now, {was * 100:.0f} % recorded"


def _prompts(plan: Mapping[str, Any]) -> str:
    stripped = plan.get("stripped") or {}
    made_up = sum(count for name, count in stripped.items() if "made up" in name)
    if made_up:
        return f"T0: made up for {counted(made_up, 'request')}, as long and alike as recorded"
    return "T2: as recorded"
