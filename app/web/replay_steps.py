"""What to do after a replay: send less, or elsewhere, shrink it, find the commit, keep evidence."""

import shlex
from collections.abc import Iterable, Iterator, Sequence
from itertools import pairwise
from typing import Any
from urllib.parse import urlencode

from app.domain.counting import counted
from app.domain.replay.agreed import MOST_TRIALS
from app.domain.replay.verdict import ESTABLISHED_TRIALS
from app.web.formats import visible
from app.web.replay_standing import Standing
from app.web.views.replays import RecipeTold, ThenStep

MOST_ALONE = 300  # requests that a link can name
_SHOWN = ("reproduced", "reproduced sometimes")


def form_query(stands: Standing, **changes: object) -> str:
    """The query of the form that asks for the same replay, but for *changes*."""
    replay, options = stands.replay, stands.options
    asked: dict[str, Any] = {
        "dump": replay.dump_id,
        "artifact": None if replay.dump_id else replay.artifact_id,
        "select": replay.selection,
        "target": replay.target_id,
        "other": replay.other_target_id,
        "symptom": replay.symptom if replay.symptom_by != "rules" else None,
        "reference": replay.reference,
        "mode": options.mode,
        "speed": f"{options.speed:g}",
        "parallel": options.parallel,
        "trials": replay.trials_wanted,
        "most_new_tokens": options.most_new_tokens,
        "request_seconds": f"{replay.request_seconds:g}",
        "ignore_eos": "1" if options.ignore_eos else None,
        "from_seconds": f"{options.window.from_seconds:g}" if options.window.from_seconds else None,
        "until_seconds": options.window.until_seconds,
        "sample": f"{options.sample:g}" if options.sample < 1 else None,
        "cut_gaps": options.cut_gaps_to_seconds,
        "allow": sorted(options.allow),
    }
    told = {**asked, **changes}
    given = {name: value for name, value in told.items() if value not in (None, "", [])}
    return f"?{urlencode(given, doseq=True)}"


def then_steps(stands: Standing) -> list[ThenStep]:
    """The steps that follow from how far it is, the nearest first."""
    replay = stands.replay
    found = list(_alone(stands))
    if replay.state != "done":
        return found
    if replay.verdict in _SHOWN:
        found += _shown(stands)
    else:
        found += _open_still(stands)
    return found


def recipe_told(stands: Standing) -> RecipeTold | None:
    """How to start the build that died so that it leaves a coredump; None: none died."""
    trial = next((one for one in reversed(stands.deaths) if one.recipe), None)
    if trial is None or trial.recipe is None:
        return None
    recipe = trial.recipe
    return RecipeTold(
        trial=stands.label(trial),
        says=visible(str(recipe["says"])),
        script=visible(_script(recipe)),
        appears_at=visible(str(recipe["appears_at"])),
        warnings=[visible(str(one)) for one in recipe.get("warnings") or ()],
    )


def expression(indexes: Iterable[int]) -> str:
    """The requests as a selection says them: ``3,7:10``."""
    ordered = sorted(set(indexes))
    starts = [one for before, one in pairwise([-2, *ordered]) if one != before + 1]
    ends = [one for one, after in pairwise([*ordered, -2]) if after != one + 1]
    return ",".join(
        str(start) if start == end else f"{start}:{end + 1}"
        for start, end in zip(starts, ends, strict=True)
    )


def _alone(stands: Standing) -> Iterator[ThenStep]:
    indexes = _suspected(stands)
    planned = stands.replay.planned or 0
    if not indexes or len(indexes) >= planned or len(indexes) > MOST_ALONE:
        return
    what = f"Send request {indexes[0]} alone"
    why = "the only one in flight when the target went away"
    if len(indexes) > 1:
        what = f"Send {counted(len(indexes), 'request')} alone"
        why = "those in flight when the target went away: one of them may be enough"
    if not stands.deaths:
        why = "what showed it: alone they tell whether the load around them matters"
    if stands.replay.state == "running":
        why = f"{why}; once this replay has ended"
    query = form_query(stands, select=expression(indexes))
    yield ThenStep(what, why, query, "Fill in the form", None)


def _suspected(stands: Standing) -> Sequence[int]:
    """Who was in flight, else the requests that showed the symptom."""
    for trial in stands.deaths:
        died = trial.died or {}
        return list(died.get("in_flight") or (died["last_sent"],))
    for one in stands.trials:
        told = stands.told_of(one)
        if told.get("symptom_was") == "shown" and told.get("indexes"):
            return list(told["indexes"])
    return ()


def _shown(stands: Standing) -> Iterator[ThenStep]:
    few = len(stands.trials) < ESTABLISHED_TRIALS
    if few and len(stands.targets) == 1:
        yield ThenStep(
            f"Send it {ESTABLISHED_TRIALS} times",
            f"{ESTABLISHED_TRIALS} of {ESTABLISHED_TRIALS} make it established. "
            "Somebody starts the target again between the trials.",
            form_query(stands, trials=ESTABLISHED_TRIALS),
            "Fill in the form",
            None,
        )
    yield ThenStep(
        "Shrink it",
        "to the smallest set of requests, then to the shortest prompt that still does it, against a"
        " target that is brought down again and again; with a copy of the file at hand",
        None,
        "",
        _reduce(stands),
    )
    if len(stands.targets) == 1:
        yield ThenStep(
            "Compare with another build",
            "the same requests to both, trials alternating",
            f"{form_query(stands)}#other",
            "Choose side B",
            None,
        )
    yield ThenStep(
        "Find the commit",
        "a harness for git bisect run: start, wait, send, look, stop. Run it in a checkout of the"
        " server, with what is left after shrinking.",
        None,
        "",
        _bisect(stands),
    )


def _open_still(stands: Standing) -> Iterator[ThenStep]:
    wanted = stands.replay.trials_wanted
    if wanted < MOST_TRIALS:
        trials = max(ESTABLISHED_TRIALS, min(MOST_TRIALS, 2 * wanted))
        yield ThenStep(
            f"Send it {trials} times",
            "what comes once in a while needs more than one look",
            form_query(stands, trials=trials),
            "Fill in the form",
            None,
        )
    if stands.replay.selection:
        yield ThenStep(
            "Send all requests of the file",
            "the load around the chosen ones may be part of it",
            form_query(stands, select=None),
            "Fill in the form",
            None,
        )


def _reduce(stands: Standing) -> str:
    shown = [
        target
        for side, target in zip("AB", stands.targets, strict=False)
        if (stands.documents.get(side) or {}).get("verdict") in _SHOWN
    ]
    url = (shown or stands.targets)[0].base_url
    check = f"curl -fsS -o /dev/null --max-time 30 {url}/health"
    select = f" --select {shlex.quote(stands.replay.selection)}" if stands.replay.selection else ""
    return (
        f"incident-console reduce {shlex.quote(stands.file)}{select} --base-url {shlex.quote(url)}"
        f" --check {shlex.quote(check)} --restart './serve.sh' --out smallest.jsonl"
    )


def _bisect(stands: Standing) -> str:
    symptom = stands.replay.symptom
    more = {"crash": "", "latency": " --latency-seconds 5", "output": " --right-output 'PATTERN'"}
    looked_for = "" if symptom == "crash" else f" --symptom {symptom}{more.get(symptom, '')}"
    return (
        f"incident-console bisect init smallest.jsonl --good REV --bad REV{looked_for}"
        " --launch './serve.sh --port {port}' --out bisect"
    )


def _script(recipe: dict[str, Any]) -> str:
    """Lines for a shell: folders, environment, and the flags to add."""
    folders = [f"mkdir -p {one}" for one in recipe.get("folders") or ()]
    exports = [
        f"export {name}={shlex.quote(str(value))}"
        for name, value in (recipe.get("exports") or {}).items()
    ]
    flags = [str(one) for one in recipe.get("flags") or ()]
    added = [f"# and to the command line: {' '.join(flags)}"] if flags else []
    return "\n".join([*folders, *exports, *added])
