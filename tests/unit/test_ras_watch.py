"""Two answers of NCCL beside each other: who is behind, what moves, and whose ranks they are."""

from collections.abc import Sequence
from datetime import UTC, datetime, timedelta

import pytest
from hypothesis import given
from hypothesis import strategies as st

from app.domain.claims import Level, ProblemClass, Status
from app.domain.ras.look import RasLook, counted, look_at
from app.domain.ras.ranks import Known
from app.domain.ras.reading import read_status
from app.domain.ras.told import told
from app.domain.ras.watch import Taken
from app.domain.ras_findings import ras_findings
from app.domain.titles import RankNumbers
from tests import ras

BEGAN = datetime(2026, 1, 1, 3, tzinfo=UTC)


def looked(*bodies: bytes, known: Sequence[Known] = ()) -> RasLook:
    """*bodies* as answers 10 s apart."""
    taken = [
        Taken(read_status(body), str(number), BEGAN + timedelta(seconds=10 * (number - 1)))
        for number, body in enumerate(bodies, start=1)
    ]
    return look_at(taken, [], known)


def tensor(many: int, **given_: object) -> list[Known]:
    return [
        Known(f"TP{n}", "gpu-14", 100 + n, numbers=RankNumbers(f"TP{n}", tp=n), **given_)  # type: ignore[arg-type]
        for n in range(many)
    ]


def claims(*bodies: bytes, known: Sequence[Known] = ()) -> list[tuple[str, Status, Level]]:
    conclusion = ras_findings(told(looked(*bodies, known=known)))
    return [(one.id, one.status, one.level) for one in conclusion.claims]


HANG = ras.counts(48_211, 48_211, 48_211, 48_210)


def test_a_rank_that_stays_behind_while_no_count_grows_is_a_hang() -> None:
    document = told(looked(HANG, HANG, known=tensor(4)))
    conclusion = ras_findings(document)
    assert document["says"] == (
        "TP3 launched 48,210 AllReduce, others up to 48,211, "
        f"in communicator {ras.SHORT} (4 ranks). No count grew in 10 s: stuck."
    )
    [claim] = conclusion.claims
    assert (claim.id, claim.status, claim.level) == (
        "nccl-rank-behind",
        Status.ESTABLISHED,
        Level.BAD,
    )
    assert (conclusion.problem_class, conclusion.wedged) == (ProblemClass.HANG, True)
    assert [one.artifact for one in claim.evidence] == ["artifact 1", "artifact 2"]
    assert claim.evidence[1].value == "TP3: 48210, lowest 48210, highest 48211"


@pytest.mark.parametrize(
    ("bodies", "expected"),
    [
        ([HANG], ("nccl-rank-behind", Status.UNKNOWN, Level.WARN)),
        (
            [HANG, ras.counts(48_300, 48_300, 48_300, 48_299)],
            ("nccl-rank-behind", Status.ESTABLISHED, Level.NOTE),
        ),
        ([ras.counts(5, 5), ras.counts(9, 9)], ("nccl-moves", Status.ESTABLISHED, Level.NOTE)),
        ([ras.counts(5, 5), ras.counts(5, 5)], ("nccl-nothing-seen", Status.UNKNOWN, Level.NOTE)),
        ([ras.counts(5, 5)], ("nccl-nothing-seen", Status.UNKNOWN, Level.NOTE)),
        (
            [ras.counts(5, 5, 5, 6)] * 2,
            ("nccl-counts-differ", Status.SUPPORTED, Level.BAD),
        ),
        (
            [ras.text(size=4, warnings=ras.behind((6, 3), (5, [2])))] * 2,
            ("nccl-rank-behind", Status.SUPPORTED, Level.BAD),
        ),
        ([ras.text(size=4)] * 2, ("nccl-nothing-seen", Status.UNKNOWN, Level.NOTE)),
    ],
    ids=["once", "grows", "moves", "even", "even once", "ahead", "text", "text without trouble"],
)
def test_what_is_claimed_is_what_the_answers_show(
    bodies: list[bytes], expected: tuple[str, Status, Level]
) -> None:
    assert claims(*bodies) == [expected]


def test_ranks_that_launched_other_kinds_are_different_and_not_behind() -> None:
    odd = ras.rank(2, 4, counts={"AllGather": 1})
    body = ras.answer(ras.communicator([ras.rank(0, 5), ras.rank(1, 5), odd]))
    document = told(looked(body, body))
    assert document["shown"][0]["standing"] == "different collectives"
    assert "rank 2 differs" in document["says"]


def test_a_dead_process_is_told_with_its_rank() -> None:
    body = ras.answer(ras.communicator([ras.rank(0, 5)], [ras.lost(1, dead=True)]))
    document = told(looked(body, known=tensor(2)))
    assert document["says"].startswith("NCCL gave up 1 process: TP1 (pid 101 on 10.0.0.14).")
    assert ("nccl-rank-dead", Status.ESTABLISHED, Level.BAD) in claims(body)


def test_a_count_that_falls_is_another_communicator_and_shows_no_movement() -> None:
    document = told(looked(ras.counts(9, 9), ras.counts(5, 5)))
    assert (document["shown"][0]["growth"], document["stuck"]) == (None, None)


def test_a_standstill_is_ruled_out_only_if_every_process_launched_more() -> None:
    other = [ras.communicator([ras.rank(9, 5)], name="0x2")]
    moves = [ras.communicator([ras.rank(0, n), ras.rank(1, n)]) for n in (5, 9)]
    alone = ras_findings(told(looked(ras.answer(moves[0]), ras.answer(moves[1]))))
    beside = looked(ras.answer(moves[0], *other), ras.answer(moves[1], *other))
    assert [one.id for one in alone.ruled_out] == ["stacks-standstill"]
    assert ras_findings(told(beside)).ruled_out == ()


# Whose ranks they are ----------------------------------------------------------------------------


def labels(look: RasLook) -> dict[int, str]:
    [one] = look.names.values()
    return dict(one.labels)


def test_a_pipeline_group_is_mapped_by_its_processes_not_by_its_numbers() -> None:
    known = [
        Known(f"TP{tp}_PP{pp}", "gpu-14", 100 + 2 * pp + tp, numbers=RankNumbers("", tp=tp, pp=pp))
        for pp in range(2)
        for tp in range(2)
    ]
    stage = ras.answer(ras.communicator([ras.rank(0, 5, pid=102), ras.rank(1, 4, pid=103)]))
    assert labels(looked(stage, known=known)) == {0: "TP0_PP1", 1: "TP1_PP1"}


def test_pids_of_another_job_map_to_nobody() -> None:
    body = ras.answer(ras.communicator([ras.rank(n, 5, pid=900 + n) for n in range(2)]))
    look = looked(body, known=tensor(2))
    assert labels(look) == {}
    assert "none of this server" in str(look.names[look.watched[0].last.id].why)


def test_pids_that_repeat_on_two_hosts_are_mapped_by_number_where_the_group_is_the_server() -> None:
    ranks = [ras.rank(n, 5, pid=100 + n % 2, host=f"10.0.0.{n // 2}") for n in range(4)]
    known = [
        Known(f"TP{n}", f"gpu-{n // 2}", 100 + n % 2, numbers=RankNumbers("", tp=n))
        for n in range(4)
    ]
    look = looked(ras.answer(ras.communicator(ranks)), known=known)
    assert labels(look) == {n: f"TP{n}" for n in range(4)}


def test_numbers_of_a_smaller_communicator_are_not_taken_for_those_of_the_server() -> None:
    body = ras.answer(ras.communicator([ras.rank(n, 5, pid=-1) for n in range(2)]))
    look = looked(body, known=tensor(4))
    assert labels(look) == {}
    assert "2 ranks and the server 4" in str(look.names[look.watched[0].last.id].why)


def test_two_containers_with_one_pid_are_told_apart_by_their_gpu() -> None:
    known = [Known(f"TP{n}", "gpu-14", 7, devices=(n,)) for n in range(2)]
    body = ras.answer(ras.communicator([ras.rank(n, 5, pid=7) for n in range(2)]))
    assert labels(looked(body, known=known)) == {0: "TP0", 1: "TP1"}


@given(st.permutations(range(4)), st.permutations(range(4)))
def test_the_order_of_ranks_and_of_processes_changes_nothing(
    ranks: Sequence[int], processes: Sequence[int]
) -> None:
    tp = tensor(4)
    members = [ras.rank(n, 48_210 if n == 3 else 48_211) for n in ranks]
    look = looked(ras.answer(ras.communicator(members)), known=[tp[n] for n in processes])
    [one] = counted(look)
    assert one.behind(list(one.of)) == {"TP3"}
