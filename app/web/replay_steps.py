"""What to do after a replay: send less, or elsewhere, reduce it, find the commit, keep evidence."""

import shlex
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from typing import Any, get_args
from urllib.parse import urlencode

from app.domain.counting import counted
from app.domain.replay.agreed import MOST_TRIALS
from app.domain.replay.command_lines import CommandLine, Known, bisect_line, reduce_line
from app.domain.replay.readings import name_of
from app.domain.replay.steps import ranges
from app.domain.replay.symptoms import MOST_BLIND_SHARE, Symptom
from app.domain.replay.verdict import ESTABLISHED_TRIALS
from app.web.formats import visible
from app.web.replay_standing import Standing
from app.web.views.replays import RecipeTold, ThenStep

MOST_ALONE = 300  # requests that a link can name
_SMALLEST = "smallest.jsonl"
_FILL_IN = "Fill in the form"
_SYMPTOMS: dict[str, Symptom] = {one: one for one in get_args(Symptom)}
_SHOWN = ("reproduced", "reproduced sometimes")
# What a trial says of times that it does not compare, and what to change then.
_NOT_COMPARED: Sequence[tuple[str, str, str, Mapping[str, object]]] = (
    (
        "not known to be the same",
        "Say that it was recorded on such a server",
        "if it was: no recording tells the accelerator, and a file of payloads nothing of it",
        {"same_setup": "1"},
    ),
    (
        "not known to be the same",
        "Send it to a target like the recorded one",
        "times say something only on the same model, topology and accelerator",
        {"target": None, "other": None},
    ),
    (
        "did not come as they were recorded",
        "Send it at the recorded times",
        "under another load other times are no surprise",
        {"mode": "open", "speed": "1"},
    ),
    (
        "Pin the lengths",
        "Pin the lengths of the answers",
        "an answer twice as long takes twice the time: only equal ones are compared",
        {"ignore_eos": "1"},
    ),
)
_RECIPE = ThenStep(
    "Have the next death leave a coredump",
    "started with this environment, the target writes down the kernel that faulted",
    "Show the recipe",
    place="#recipe",
)


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
        "same_setup": "1" if options.same_setup else None,
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
    if replay.state == "done":
        found += _shown(stands) if replay.verdict in _SHOWN else _open_still(stands)
    if recipe_told(stands):
        found.append(_RECIPE)
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
    query = form_query(stands, select=ranges(sorted(set(indexes))))
    yield ThenStep(what, why, _FILL_IN, form=query)


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
    again = "Somebody starts the target again between the trials." if stands.deaths else ""
    if few and len(stands.targets) == 1:
        yield ThenStep(
            f"Send it {ESTABLISHED_TRIALS} times",
            f"{ESTABLISHED_TRIALS} of {ESTABLISHED_TRIALS} make it established. {again}".strip(),
            _FILL_IN,
            form=form_query(stands, trials=ESTABLISHED_TRIALS),
        )
    known = replace(_known(stands, stands.file), selection=stands.replay.selection or None)
    yield _to_run(
        "Reduce it",
        "to the smallest set of requests, then to the shortest prompt that still does it, against a"
        " target that is brought down again and again; with a copy of the file at hand.",
        reduce_line(known, out=_SMALLEST),
    )
    if len(stands.targets) == 1:
        yield ThenStep(
            "Compare with another build",
            "the same requests to both, trials alternating",
            "Choose side B",
            form=f"{form_query(stands)}#other",
        )
    yield _to_run(
        "Find the commit",
        "a harness for git bisect run: start, wait, send, look, stop. Run it in a checkout of the"
        " server, with what is left after reducing.",
        bisect_line(_known(stands, _SMALLEST)),
    )


def _open_still(stands: Standing) -> Iterator[ThenStep]:
    """More of the same only where more of the same can tell more."""
    spoilt = list(_spoilt(stands)) if stands.replay.verdict == "inconclusive" else []
    yield from spoilt or _more_looks(stands)
    if stands.replay.selection:
        yield ThenStep(
            "Send all requests of the file",
            "the load around the chosen ones may be part of it",
            _FILL_IN,
            form=form_query(stands, select=None),
        )


def _spoilt(stands: Standing) -> Iterator[ThenStep]:
    """What to set right first: failures of our own making, requests that went out late, and what
    keeps times from being compared."""
    told = [stands.told_of(one) for one in stands.trials if one.started_at]
    unclear = [one for one in told if one.get("symptom_was") == "inconclusive"]
    whys = " ".join(str(one.get("why")) for one in unclear)
    for mark, what, why, changes in _NOT_COMPARED:
        done = "same_setup" in changes and stands.options.same_setup
        if stands.replay.symptom == "latency" and mark in whys and not done:
            yield ThenStep(what, why, _FILL_IN, form=form_query(stands, **changes))
    if any(one["fidelity"]["valid"] is False for one in unclear):
        yield ThenStep(
            "Send it at half the speed",
            "this machine could not keep the times. Or have a quieter machine send it.",
            _FILL_IN,
            form=form_query(stands, speed=f"{stands.options.speed / 2:g}"),
        )
    own = [error for one in unclear for error in one["errors"] if error["own_making"]]
    if sum(error["count"] for error in own) > MOST_BLIND_SHARE * sum(
        one["sent"] for one in unclear
    ):
        most = max(own, key=lambda error: int(error["count"]))
        yield ThenStep(
            "Read why requests failed",
            f"{name_of(most['class'])}: of our own making, so the fault had no chance to show",
            "Show them",
            outcomes=f"?error={most['class']}",
        )
        yield ThenStep(
            "Choose another target, or other requests",
            "it has to offer what is sent",
            _FILL_IN,
            form=form_query(stands, target=None),
        )


def _more_looks(stands: Standing) -> Iterator[ThenStep]:
    wanted = stands.replay.trials_wanted
    if wanted < MOST_TRIALS:
        trials = max(ESTABLISHED_TRIALS, min(MOST_TRIALS, 2 * wanted))
        yield ThenStep(
            f"Send it {trials} times",
            "what comes once in a while needs more than one look",
            _FILL_IN,
            form=form_query(stands, trials=trials),
        )


def _known(stands: Standing, file: str) -> Known:
    """What this replay tells of the commands that go on from it, with *file*."""
    shown = [
        target
        for side, target in zip("AB", stands.targets, strict=False)
        if (stands.documents.get(side) or {}).get("verdict") in _SHOWN
    ]
    target = (shown or stands.targets)[0]
    symptom = _SYMPTOMS.get(stands.replay.symptom)
    return Known(file, target.base_url, symptom, with_token=target.token_sealed is not None)


def _to_run(what: str, why: str, line: CommandLine) -> ThenStep:
    words = " and ".join(filter(None, [", ".join(line.fill_in[:-1]), *line.fill_in[-1:]]))
    return ThenStep(what, f"{why} Fill in {words}." if words else why, command=line.text)


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
