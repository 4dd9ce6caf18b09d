"""What a replay says, in the words of its page: its title, and its verdict with its evidence."""

import re
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from app.domain.counting import counted
from app.domain.replay.verdict import ESTABLISHED_TRIALS
from app.store.tables import Replay, ReplayTrial
from app.web.formats import visible
from app.web.replay_standing import Standing
from app.web.views.replays import EvidenceChip, ReplayVerdict

_SHOWN = ("reproduced", "reproduced sometimes")
_CAME_BACK = {
    "crash": "The crash came back",
    "hang": "The hang came back",
    "latency": "The slowness came back",
    "error": "The error came back",
    "output": "The wrong output came back",
}
_MOST_CHIPS = 6
_COUNT = re.compile(r"^Shown in \d+ of \d+ trials?\. ")


def finding(replay: Replay, names: Sequence[str], trials: Sequence[ReplayTrial] = ()) -> str:
    """The title of a replay's page. Without its *trials* it does not name requests."""
    if replay.state == "running":
        return _at_work(replay, names, [one for one in trials if one.died])
    if (at_once := _pending(replay, " and ".join(names))) is not None:
        return at_once
    if replay.state != "done":
        return _stopped(replay)
    if len(names) > 1:
        return _of_two(replay, names)
    return _of_one(replay, names[0], [one for one in trials if one.died])


def title_of(stands: Standing) -> str:
    """The title of its page."""
    return finding(stands.replay, [one.name for one in stands.targets], stands.trials)


def verdict_told(stands: Standing) -> ReplayVerdict | None:
    """What it says so far; None where nothing was sent."""
    replay = stands.replay
    if replay.started_at is None:
        return None
    if replay.state != "done":
        return _so_far(stands)
    shown = replay.verdict in _SHOWN
    open_still = replay.verdict == "inconclusive"
    status = _status(stands.documents)
    return ReplayVerdict(
        level="bad" if shown else "unknown" if open_still else "",
        mark="bad" if shown else "unknown" if open_still else "quiet",
        line=_line(stands),
        proof=status,
        why=visible(_why(stands)),
        would_settle=_would_settle(stands) if shown else None,
        chips=list(_chips(stands)),
    )


def _pending(replay: Replay, names: str) -> str | None:
    """The title before there is anything to say; None: there is."""
    if replay.state == "waiting":
        return f"Replay {replay.id} waits for a worker"
    if replay.state == "planning":
        return f"Looking at what would be sent to {visible(names)}"
    if replay.state == "planned":
        planned = counted(replay.planned or 0, "request")
        return f"{planned} would go to {visible(names)}; nothing was sent yet"
    return None


def _at_work(replay: Replay, names: Sequence[str], deaths: Sequence[ReplayTrial]) -> str:
    """No count: how far it is changes under the title, and stands below it."""
    if not deaths:
        return f"Sending {counted(replay.total or 0, 'request')} to {visible(' and '.join(names))}"
    last = deaths[-1]
    told = last.died or {}
    went = "went away" if told.get("certain") else "seems to have gone away"
    return f"{visible(names['AB'.index(last.side)])} {went} after request {told.get('last_sent')}"


def _stopped(replay: Replay) -> str:
    after = f"after {replay.sent:,} of {counted(replay.total or 0, 'request')}"
    if not replay.sent:
        after = "before the first answer" if replay.started_at else "before anything was sent"
    word = {
        "refused": "was held back", "interrupted": "was cut off", "cancelled": "was cancelled",
    }.get(replay.state, "failed")  # fmt: skip
    return f"Replay {replay.id} {word} {after}"


def _of_one(replay: Replay, name: str, deaths: Sequence[ReplayTrial]) -> str:
    word = replay.verdict
    if word in _SHOWN:
        sometimes = ", not each time" if word == "reproduced sometimes" else ""
        last = {(one.died or {}).get("last_sent") for one in deaths}
        if replay.symptom == "crash" and deaths:
            after = f" after request {next(iter(last))}" if len(last) == 1 else ""
            return f"{visible(name)} went away{after}{sometimes or _each(deaths)}"
        return f"{_CAME_BACK.get(replay.symptom, 'It came back')} on {visible(name)}{sometimes}"
    if word == "not reproduced":
        return f"It did not come back: {counted(replay.sent, 'request')} to {visible(name)}"
    return f"Whether it comes back on {visible(name)} stays open"


def _each(deaths: Sequence[ReplayTrial]) -> str:
    return ", each time" if len(deaths) > 1 else ""


def _of_two(replay: Replay, names: Sequence[str]) -> str:
    words = [(replay.summary or {}).get(side, {}).get("verdict") for side in "AB"]
    shown = [visible(name) for name, word in zip(names, words, strict=False) if word in _SHOWN]
    not_shown = [
        visible(name) for name, word in zip(names, words, strict=False) if word == "not reproduced"
    ]
    if len(shown) == len(names):
        return f"{' and '.join(shown)} both show it"
    if shown and not_shown:
        return f"{shown[0]} shows it, {not_shown[0]} does not"
    if shown:
        return f"{shown[0]} shows it; of the other side nothing is known"
    if len(not_shown) == len(names):
        return f"Neither {' nor '.join(not_shown)} shows it"
    return "Whether the two sides differ stays open"


def _line(stands: Standing) -> str:
    word = (stands.replay.verdict or "inconclusive").capitalize()
    if len(stands.targets) > 1:
        return f"{word}. {visible(stands.replay.why or '')}"
    told = [stands.told_of(one).get("symptom_was") for one in stands.trials if one.started_at]
    usable = [one for one in told if one != "inconclusive"]
    if word.lower() not in _SHOWN or not usable:
        return f"{word}."
    return f"{word} in {usable.count('shown')} of {counted(len(usable), 'trial')}."


def _why(stands: Standing) -> str:
    """Without the count, which the line says; of two sides one after the other.

    That a target went away is said whatever was looked for.
    """
    if len(stands.targets) == 1:
        return _with_death(stands, "A", stands.replay.why or "")
    told = {side: str(stands.documents.get(side, {}).get("why") or "") for side in "AB"}
    why = [_with_death(stands, side, one) for side, one in told.items()]
    pairs = zip(stands.names, why, strict=False)
    return " ".join(f"{name}: {says}" for name, says in pairs if says)


def _with_death(stands: Standing, side: str, why: str) -> str:
    died = next((one.died or {} for one in stands.deaths if one.side == side), {})
    says, why = str(died.get("says") or ""), _COUNT.sub("", why)
    return why if says in why else f"{says} {why}".strip()


def _so_far(stands: Standing) -> ReplayVerdict:
    deaths = stands.deaths
    finished = [one for one in stands.trials if one.state == "done" and one.started_at]
    over = "" if stands.replay.state == "running" else " It is judged once all of it was sent."
    if deaths:
        line = _went_away(stands, finished)
        why = visible(str((deaths[-1].died or {}).get("says")))
        return ReplayVerdict("bad", "bad", line, None, why, None, list(_chips(stands)))
    line = "Nothing is known yet."
    if finished:
        line = f"The target stayed up in {counted(len(finished), 'finished trial')}."
    why = f"What is looked for: {stands.replay.symptom}.{over}"
    return ReplayVerdict("unknown", "unknown", line, None, why, None, list(_chips(stands)))


def _went_away(stands: Standing, finished: Sequence[ReplayTrial]) -> str:
    """In how many trials; of two sides each by its name, the one that did it most often first."""
    counts = []
    for side, name in zip("AB", stands.names, strict=False):
        died = sum(one.side == side for one in stands.deaths)
        counts.append((died, sum(one.side == side for one in finished), name))
    (died, of, name), *others = sorted(counts, reverse=True)
    who = name if len(stands.names) > 1 else "The target"
    rest = "".join(f"; {name} in {died} of {of}" for died, of, name in others if of)
    return f"{who} went away in {died} of {counted(of, 'finished trial')}{rest}."


def _status(documents: Mapping[str, Mapping[str, Any]]) -> str | None:
    """The weakest status of the sides: what is said of both holds no further than that."""
    order = ("unknown", "hypothesis", "supported", "established")
    known = [str(one.get("status")) for one in documents.values()]
    return min((one for one in known if one in order), key=order.index, default=None)


def _would_settle(stands: Standing) -> str | None:
    if _status(stands.documents) != "supported" or len(stands.targets) > 1:
        return None
    if stands.replay.verdict == "reproduced sometimes":
        return "Sending the requests in flight alone tells which of them it takes."
    return f"It is established once all of {ESTABLISHED_TRIALS} trials show it."


def _chips(stands: Standing) -> Iterator[EvidenceChip]:
    for trial in stands.deaths[:_MOST_CHIPS]:
        last = (trial.died or {}).get("last_sent")
        query = f"?trial={trial.number}&from={last}"
        yield EvidenceChip(f"{stands.label(trial)} #{last}", "outcomes", query=query)
        if trial.bundle_after_id:
            yield EvidenceChip(f"bundle {trial.bundle_after_id}", "bundle", trial.bundle_after_id)
    if stands.replay.outcomes_artifact_id:
        number = stands.replay.outcomes_artifact_id
        yield EvidenceChip(f"artifact {number} /verdict", "artifact", number)
