"""From a comparison of stacks to claims: never more than its ground."""

import re
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest

from app.domain.claims import ProblemClass
from app.domain.diagnosis import diagnose
from app.domain.findings import TELLING, Conclusion
from app.domain.stack_findings import stack_findings
from app.domain.stacks.reading import read_files
from app.domain.stacks.told import told
from app.domain.urgency import Rank, judge
from tests import captured, stacks
from tests.stacks import compared, files, ranks

DOCUMENT = Path(__file__).parents[2] / "docs" / "signals.md"
ONE_APART = ranks(8, stacks.CHECKS_CACHE, TP3=stacks.EVICTS)
ONE_APART_MOVED = ranks(8, stacks.CHECKS_CACHE, TP3=stacks.EVICTS_ON)
ALL_WAIT = ranks(8, stacks.CHECKS_CACHE)
TWO_COLLECTIVES = ranks(8, stacks.CHECKS_CACHE, TP3=stacks.CHECKS_LOADS)
IDLE = ranks(2, stacks.AWAITS_REQUESTS, TP0=stacks.POLLS)
WORKS = {"health": {"verdict": "healthy", "says": "It serves."}, "collected_at": "2026-11-30"}


def document(
    *samples: Mapping[str, stacks.Calls], states: Mapping[str, str] | None = None
) -> dict[str, Any]:
    reading = read_files(files(*samples))
    found = told(compared(reading, states=states), reading)
    return {**found, "states": dict(states or {})}


def concluded(of: dict[str, Any], seconds: float | None = 10.0) -> Conclusion:
    groups = of["groups"]
    artifacts = {rank: 40 + at for at, group in enumerate(groups) for rank in group["ranks"]}
    return stack_findings(of, artifacts, seconds)


def kept(
    *samples: Mapping[str, stacks.Calls],
    states: Mapping[str, str] | None = None,
    seconds: float | None = 10.0,
) -> dict[str, Any]:
    return concluded(document(*samples, states=states), seconds).as_json()


@pytest.mark.parametrize(
    ("samples", "states", "rule", "status", "level"),
    [
        ([IDLE], {"TP1": "T"}, "rank-stopped", "established", "bad"),
        ([IDLE], {"TP1": "X"}, "rank-ended", "established", "bad"),
        ([IDLE], {"TP0": "T", "TP1": "Z"}, "rank-stopped", "established", "bad"),
        ([ONE_APART], {}, "rank-divergence", "hypothesis", "note"),
        ([ONE_APART, ONE_APART], {}, "rank-divergence", "supported", "bad"),
        ([ONE_APART, ONE_APART_MOVED], {}, "rank-divergence", "supported", "note"),
        ([TWO_COLLECTIVES], {}, "different-collectives", "hypothesis", "note"),
        ([TWO_COLLECTIVES] * 2, {}, "different-collectives", "supported", "bad"),
        ([ALL_WAIT], {}, "ranks-symmetric", "hypothesis", "note"),
        ([ALL_WAIT] * 2, {}, "ranks-symmetric", "supported", "bad"),
        ([IDLE, IDLE], {}, "stacks-idle", "established", "note"),
    ],
    ids=[
        "a stopped rank in one sample",
        "a rank that has ended",
        "one stopped and one ended",
        "one apart in one sample",
        "one apart and still",
        "one apart that moves",
        "two collectives in one sample",
        "two collectives and still",
        "all wait in one sample",
        "all wait and stand still",
        "idle",
    ],
)
def test_a_claim_is_as_strong_as_its_ground(
    samples: list[Mapping[str, stacks.Calls]],
    states: Mapping[str, str],
    rule: str,
    status: str,
    level: str,
) -> None:
    [claim] = kept(*samples, states=states)["claims"]
    assert (claim["id"], claim["status"], claim["level"]) == (rule, status, level)


def test_evidence_names_the_file_of_the_rank_apart_first_and_the_call_in_it() -> None:
    [claim] = kept(ONE_APART, ONE_APART)["claims"]
    [apart, others] = claim["evidence"]
    assert apart["artifact"] == "artifact 41"
    assert apart["at"] == "TP3: _delete_leaf (sglang/srt/mem_cache/radix_cache.py:611)"
    assert others["at"].startswith("TP0: all_reduce")


def test_a_stopped_rank_is_shown_with_the_state_of_its_process() -> None:
    [claim] = kept(IDLE, states={"TP1": "T"})["claims"]
    assert claim["says"].startswith("TP1 is stopped (state T): nothing of it runs.")
    assert claim["evidence"][0]["value"] == "state T"


def test_only_what_is_stuck_is_a_hang() -> None:
    assert concluded(document(ONE_APART)).problem_class is None
    assert concluded(document(ONE_APART, ONE_APART_MOVED)).problem_class is None
    assert concluded(document(ONE_APART, ONE_APART)).problem_class is ProblemClass.HANG


@pytest.mark.parametrize(
    ("seconds", "wedged"),
    [(None, False), (4.6, False), (4.98, True), (10.0, True)],
    ids=["times unknown", "too soon", "five seconds", "ten seconds"],
)
def test_wedged_needs_five_seconds(seconds: float | None, wedged: bool) -> None:
    assert concluded(document(ONE_APART, ONE_APART), seconds).wedged is wedged


def test_a_stopped_rank_of_an_idle_server_is_bad_and_not_wedged() -> None:
    found = concluded(document(IDLE, IDLE, states={"TP1": "T"}))
    assert (found.wedged, found.claims[0].level) == (False, "bad")


@pytest.mark.parametrize(
    "case",
    [
        "01-tp8-seven-in-allreduce-one-elsewhere",
        "03-gpu-collective-hidden-behind-event-sync",
        "04-sixteen-ranks-symmetric-wedge",
        "06-partial-capture",
        "07-odd-dump-shapes",
        "34-watchdog-fired-but-captured-nothing",
    ],
)
def test_a_case_from_a_public_report_claims_only_what_is_documented(case: str) -> None:
    reading = read_files(stacks.files_in(stacks.CASES / case))
    found = concluded(told(compared(reading), reading))
    [claim] = found.claims
    assert claim.id in documented()
    assert claim.says
    assert (claim.status, claim.evidence) != ("established", ())
    assert not found.wedged or found.problem_class is ProblemClass.HANG


@pytest.mark.parametrize(
    ("scene", "rule"),
    [
        ("idle_tp1", "stacks-idle"),
        ("idle_tp2", "stacks-idle"),
        ("busy_tp1", "no-rank-apart"),
        ("busy_tp2", "different-collectives"),
        ("hang_tp2_tp1_stopped", "rank-stopped"),
        ("sigstop_tp1", "rank-stopped"),
    ],
)
def test_what_was_captured_of_real_ranks_is_claimed_as_it_was(scene: str, rule: str) -> None:
    folder = captured.needs(captured.SHARED / "captures" / "pyspy" / scene)
    reading = read_files(stacks.files_in(folder))
    [claim] = concluded(told(compared(reading), reading)).claims
    assert (claim.id, claim.level) == (rule, "bad" if rule == "rank-stopped" else "note")


def documented() -> set[str]:
    text = DOCUMENT.read_text().partition("## On the hosts")[2].partition("## The health")[0]
    return set(re.findall(r"^\| `([a-z-]+)` \|", text, re.MULTILINE))


def test_what_is_most_telling_is_documented() -> None:
    assert set(TELLING) <= documented()


# What follows for the incident and its report


def test_stacks_that_stand_still_make_the_incident_fail_whatever_a_bundle_said() -> None:
    judged = judge([WORKS], findings=[kept(ONE_APART, ONE_APART)])
    assert (judged.verdict, judged.rank) == ("wedged", Rank.FAILING)
    assert judged.problem_class == "hang/timeout"
    assert judged.strongest is not None
    assert judged.strongest["id"] == "rank-divergence"
    assert judged.about is WORKS


def test_one_sample_leaves_verdict_and_rank_to_the_bundle() -> None:
    judged = judge([WORKS], findings=[kept(ONE_APART)])
    assert (judged.verdict, judged.rank, judged.problem_class) == ("healthy", Rank.QUIET, None)


def test_an_idle_server_is_said_to_be_so_where_no_bundle_is() -> None:
    judged = judge([], findings=[kept(IDLE, IDLE)])
    assert judged.rank is Rank.UNKNOWN
    assert judged.strongest is not None
    assert judged.strongest["id"] == "stacks-idle"


def test_a_report_tells_what_was_checked_guessed_and_is_open() -> None:
    found = diagnose([WORKS], [kept(ONE_APART, ONE_APART)])
    assert [row["what"] for row in found["checked"]] == ["health", "rank-divergence"]
    assert found["strongest_signal"]["id"] == "rank-divergence"
    assert found["best_guess"]["says"].startswith("One part of the ranks holds up the others")
    assert found["best_guess"]["status"] == "supported"
    [ras, *_] = [step for step in found["next_steps"] if step["rung"] == "nccl ras"]
    assert ras["text"].startswith("NCCL RAS, twice")
    assert found["production_risk"].startswith("High")


def test_ranks_that_all_move_rule_out_a_standstill() -> None:
    moves = kept(ranks(4, stacks.COMPUTES), ranks(4, stacks.REDUCES))
    [out] = diagnose([], [moves])["ruled_out"]
    assert (out["id"], out["status"]) == ("stacks-standstill", "established")


def test_nothing_rules_out_a_standstill_beside_one() -> None:
    moves = kept(ranks(4, stacks.COMPUTES), ranks(4, stacks.REDUCES))
    found = diagnose([], [kept(ALL_WAIT, ALL_WAIT), moves])
    assert (found["ruled_out"], found["problem_class"]) == ([], "hang/timeout")


def test_what_is_open_comes_first_only_where_it_is_bad() -> None:
    gone = {"health": {"verdict": "gone", "row": "refused", "says": "Gone."}}
    noted = diagnose([gone], [kept(ONE_APART)])["next_steps"]
    proven = diagnose([gone], [kept(ONE_APART, ONE_APART)])["next_steps"]
    assert noted[0]["text"].startswith("Look at the process, its log")
    assert proven[0]["text"].startswith("NCCL RAS, twice")
    assert len({step["text"] for step in proven}) == len(proven)
