"""Puts the page of a replay together: finding, progress, plan, figures, what to do next."""

from collections.abc import Collection, Iterator, Mapping
from typing import Any

from sqlmodel import Session

from app.domain.counting import counted
from app.domain.replay.options import Allowed
from app.web.formats import cut, number, size, span, visible
from app.web.replay_figures import MOST_DRAWN_AT_ONCE, figures, trial_to_draw
from app.web.replay_progress import progress_of
from app.web.replay_standing import Standing, replay_told, sides_told, standing
from app.web.replay_steps import form_query, recipe_told, then_steps
from app.web.replay_trials import error_heads, error_rows, trial_rows
from app.web.replay_words import title_of
from app.web.views import Shell
from app.web.views.dump_requests import Fact
from app.web.views.replays import PlanTold, ReplayPage, Rest, SideTold

MOST_LEFT_OUT = 20
LONGEST_SAID_BYTES = 600

Plan = Mapping[str, Any]


def replay_page(
    session: Session, shell: Shell, replay_id: int, *, trial: int | None, draw: bool
) -> ReplayPage:
    """The page of a replay; raises NotFound. *draw*: its figures, however many rows it takes."""
    stands = standing(session, replay_id)
    told = replay_told(stands, shell.now)
    return ReplayPage(
        shell=shell,
        finding=title_of(stands),
        replay=told,
        progress=progress_of(session, stands, shell.now),
        plans=plans_told(stands),
        change=form_query(stands),
        rest=rest_of(session, stands, trial=trial, draw=draw),
        following="events" if told.unfinished else "",
        may_act=shell.may_act,
        names_tab=False,
    )


def rest_of(session: Session, stands: Standing, *, trial: int | None, draw: bool) -> Rest:
    """What stands below the progress."""
    drawn = trial_to_draw(stands, trial)
    small = drawn is not None and drawn.completed + drawn.failed <= MOST_DRAWN_AT_ONCE
    at_once = drawn is not None and (small or draw)
    running = stands.replay.state == "running"
    return Rest(
        figures=figures(session, stands, drawn) if drawn and at_once else None,
        drawn_apart=drawn is not None and not at_once,
        live=running and (small or not draw),  # else what takes long would be done at each tick
        trial=drawn.number if drawn else None,
        asked=trial,
        trials=trial_rows(stands),
        errors=error_rows(session, stands),
        error_heads=error_heads(stands),
        steps=then_steps(stands),
        recipe=recipe_told(stands),
    )


def plans_told(stands: Standing) -> list[PlanTold]:
    """What is sent, by side; one where both sides get the same."""
    plans = stands.replay.plans or {}
    sides = [one for one in sides_told(stands) if one.name in plans]
    if len(sides) > 1 and plans["A"] == plans["B"]:
        sides = sides[:1]
    return [_plan(stands, side, plans[side.name]) for side in sides]


def _plan(stands: Standing, side: SideTold, plan: Plan) -> PlanTold:
    left_out = [
        {**one, "why": visible(cut(str(one["why"]), LONGEST_SAID_BYTES))}
        for one in (plan.get("left_out") or ())[:MOST_LEFT_OUT]
    ]
    return PlanTold(
        side=side,
        facts=list(_facts(stands, plan)),
        notes=[
            visible(cut(str(one["says"]), LONGEST_SAID_BYTES)) for one in plan.get("notes") or ()
        ],
        stripped=list(_stripped(plan)),
        left_out=left_out,
        left_out_total=int(plan.get("left_out_total") or 0),
    )


def _stripped(plan: Plan) -> Iterator[tuple[str, str, int]]:
    """``rid`` is taken out; ``sampling_params.n: capped at 8`` says what was done to it."""
    for told, count in (plan.get("stripped") or {}).items():
        name, _, how = visible(told).partition(": ")
        yield name, how, count


def _facts(stands: Standing, plan: Plan) -> Iterator[Fact]:
    replay, options = stands.replay, stands.options
    times = f", {counted(replay.trials_wanted, 'time')}" if replay.trials_wanted > 1 else ""
    of = f"{number(plan['to_send'])} of {counted(int(plan['requests_total']), 'request')}"
    yield Fact("Requests", f"{of}{times}, {size(plan.get('body_bytes'))} in all")
    yield Fact("Takes", _takes(stands, plan))
    recorded = plan.get("recorded_in_flight")
    was = f"; {number(recorded)} at most when recorded" if recorded else ""
    yield Fact("In flight", f"at most {number(options.parallel)}{was}")
    eos = "; answers pinned to their recorded length" if options.ignore_eos else ""
    yield Fact("Answers", f"at most {number(options.most_new_tokens)} tokens each{eos}")
    if options.same_setup:
        yield Fact("Recorded on", "a server like the target, by the word of whoever asked")
    yield Fact("Target may", _may(options.allow))


def _may(allowed: Collection[Allowed]) -> str:
    """What the requests may make the target do beside answering."""
    fetch = "fetch media from addresses in"
    run = "run code that is in"
    match "media-addresses" in allowed, "custom-code" in allowed:
        case True, True:
            return f"{fetch} the requests and {run} them"
        case True, False:
            return f"{fetch} the requests, but not {run} them"
        case False, True:
            return f"{run} the requests, but not {fetch} them"
    return f"neither {fetch} the requests nor {run} them"


def _takes(stands: Standing, plan: Plan) -> str:
    most = f"each answer is waited for at most {span(stands.replay.request_seconds)}"
    if stands.options.mode != "open":
        return f"as long as the target does; {most}"
    length = plan.get("span_seconds") or 0
    return f"{span(length)} from the first to the last request; {most}"
