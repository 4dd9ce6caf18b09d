"""The truth table of the health verdict, line by line."""

from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from app.domain.health import verdict
from app.domain.health_table import TABLE, HealthFacts, Reach, Verdict, decide

STUCK = HealthFacts(work=True, moved=False, fresh=False, quiet_seconds=75.0, ranks=1)

# The row that must give the verdict, the facts, the verdict.
LINES: list[tuple[str, HealthFacts, str]] = [
    ("nothing-asked", HealthFacts(reach=Reach.NOT_ASKED), "unknown"),
    ("refused", HealthFacts(reach=Reach.REFUSED), "gone"),
    ("went-away", HealthFacts(went_away=True, ready=True), "gone"),
    ("proxy", HealthFacts(reach=Reach.PROXY), "unknown"),
    ("broken", HealthFacts(reach=Reach.BROKEN), "unknown"),
    ("silent", HealthFacts(reach=Reach.SILENT), "unknown"),
    ("wedged", STUCK, "wedged"),
    ("wedged", replace(STUCK, ready=True), "wedged"),
    ("wedged", replace(STUCK, moved=None), "wedged"),
    (
        "partly-wedged-green",
        HealthFacts(work=True, stuck_ranks=(5,), ranks=8, ready=True),
        "false green",
    ),
    ("partly-wedged", HealthFacts(work=True, stuck_ranks=(5,), ranks=8, ready=False), "wedged"),
    (
        "silent-scheduler-green",
        HealthFacts(work=False, quiet_seconds=90.0, ready=True),
        "false green",
    ),
    ("silent-scheduler", HealthFacts(work=False, quiet_seconds=90.0), "unknown"),
    ("busy-not-stuck", HealthFacts(moved=True, work=True, health_green=False), "false red"),
    ("busy-not-stuck", HealthFacts(moved=True, work=True, generates=False), "false red"),
    ("busy-not-stuck", HealthFacts(moved=True, ready=False), "false red"),
    ("came-back", HealthFacts(generates=True, scheduler_silent=True, ready=True), "busy"),
    ("came-back", replace(STUCK, quiet_seconds=13.0, generates=True), "busy"),
    ("scheduler-silent", HealthFacts(generates=True, scheduler_silent=True, ranks=8), "unknown"),
    ("red-but-generates", HealthFacts(ready=False, generates=True), "false red"),
    ("starting", HealthFacts(refuses_at_once=True, served_before=False, ready=False), "starting"),
    ("starting", HealthFacts(refuses_at_once=True), "starting"),
    ("shutting-down", HealthFacts(refuses_at_once=True, served_before=True), "unknown"),
    ("blocked", HealthFacts(blocked=True, ready=True), "unknown"),
    ("short-window", replace(STUCK, quiet_seconds=11.0, ready=True), "unknown"),
    ("stale", HealthFacts(fresh=False, quiet_seconds=29.5, work=True), "unknown"),
    ("late-ranks", HealthFacts(late_ranks=(1,), ranks=2, moved=True, work=True), "unknown"),
    ("green-cannot-generate", HealthFacts(generates=False, ready=True), "false green"),
    ("cannot-generate", HealthFacts(generates=False), "unknown"),
    ("scheduler-silent", HealthFacts(scheduler_silent=True, ready=True), "unknown"),
    ("no-progress", HealthFacts(work=True, moved=False), "unknown"),
    ("several-servers", HealthFacts(several_servers=True, work=True, moved=True), "unknown"),
    ("busy", HealthFacts(work=True, moved=True, waiting=4), "busy"),
    ("moves", HealthFacts(work=True, moved=True, waiting=0), "healthy"),
    ("generates", HealthFacts(generates=True, work=False), "healthy"),
    ("generates-with-work", HealthFacts(generates=True, work=True, waiting=3), "busy"),
    ("answers-probe", HealthFacts(generates=True, work=True, waiting=0), "healthy"),
    ("idle", HealthFacts(work=False, fresh=True, ready=True), "healthy"),
    ("closed", HealthFacts(reach=Reach.CLOSED, ready=True), "unknown"),
    ("undecided", HealthFacts(ready=True), "unknown"),
    ("undecided", HealthFacts(), "unknown"),
]


@pytest.mark.parametrize(
    ("row", "facts", "word"), LINES, ids=[f"{i}-{line[0]}" for i, line in enumerate(LINES)]
)
def test_each_line_of_the_table_gives_its_verdict(row: str, facts: HealthFacts, word: str) -> None:
    found = verdict(facts)

    assert (found.row, found.verdict) == (row, word)
    assert found.says.endswith(".")


def test_every_row_of_the_table_is_reached_by_a_line() -> None:
    assert {row.name for row in TABLE} == {line[0] for line in LINES}


def test_row_names_are_unique() -> None:
    assert len({row.name for row in TABLE}) == len(TABLE)


def test_one_short_window_says_how_long_and_what_it_may_be() -> None:
    says = verdict(replace(STUCK, quiet_seconds=11.0)).says

    assert says == "No progress for 11 s: long prefill, compile, GC or hang; stacks decide."


SOME = st.sampled_from((None, True, False))
FACTS = st.builds(
    HealthFacts,
    reach=st.sampled_from(Reach),
    went_away=st.booleans(),
    ready=SOME,
    health_green=SOME,
    generates=SOME,
    refuses_at_once=st.booleans(),
    served_before=SOME,
    work=SOME,
    moved=SOME,
    fresh=SOME,
    quiet_seconds=st.sampled_from((None, 0.0, 11.0, 59.9, 60.0, 3600.0)),
    waiting=st.sampled_from((None, 0, 7)),
    stuck_ranks=st.sampled_from(((), (1,), (0, 1))),
    late_ranks=st.sampled_from(((), (1,))),
    ranks=st.sampled_from((0, 1, 2, 8)),
    scheduler_silent=SOME,
    several_servers=st.booleans(),
    blocked=st.booleans(),
)


@given(FACTS)
def test_every_combination_gives_a_word_of_the_interface(facts: HealthFacts) -> None:
    assert verdict(facts).verdict in set(Verdict)


@given(FACTS)
def test_wedged_is_said_only_with_work_and_a_minute_without_movement(facts: HealthFacts) -> None:
    if decide(facts).verdict is Verdict.WEDGED:
        whole = facts.work and not facts.moved and (facts.quiet_seconds or 0) >= 60
        assert whole or facts.stuck_ranks


@given(FACTS)
def test_healthy_is_never_said_over_a_red_light_or_a_silent_rank(facts: HealthFacts) -> None:
    if decide(facts).verdict in (Verdict.HEALTHY, Verdict.BUSY):
        assert not facts.red
        assert not facts.late_ranks
        assert not facts.stuck_ranks
        assert not facts.several_servers
        one_rank_came_back = facts.generates and facts.ranks <= 1
        assert one_rank_came_back or not facts.scheduler_silent


@pytest.mark.slow
@given(FACTS)
def test_healthy_rests_on_movement_a_token_or_an_answer_of_every_scheduler(
    facts: HealthFacts,
) -> None:
    if decide(facts).verdict is Verdict.HEALTHY:
        assert facts.moved or facts.generates or (facts.work is False and facts.fresh)
