"""NCCL's RAS as text and JSON, whole, cut, foreign and hostile."""

import time
from collections.abc import Callable
from contextlib import suppress
from typing import Any

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from app.domain.ras.look import look_at
from app.domain.ras.reading import is_ras, read_status
from app.domain.ras.status import Whose
from app.domain.ras.told import told
from app.domain.ras.watch import Taken, totals
from app.errors import Malformed
from tests import ras

SEVEN = list(range(7))


def test_json_tells_every_rank_with_its_counts() -> None:
    status = read_status(ras.counts(48_211, 48_211, 48_210))
    [one] = status.communicators
    assert (status.version, status.whole, one.short, one.size) == ("2.29.2", True, ras.SHORT, 3)
    assert totals(one) == {0: 48_211, 1: 48_211, 2: 48_210}
    assert one.members[2].whose == Whose("10.0.0.14", 102, 2, 2)
    assert one.spread["AllReduce"] == {48_211: 2, 48_210: 1}


@pytest.mark.parametrize(
    ("status", "state", "error"),
    [
        ({}, "RUNNING", None),
        ({"init_state": 7}, "INIT", None),
        ({"finalize_called": True}, "FINALIZE", None),
        ({"abort_flag": True}, "ABORT", None),
        ({"async_error": 6}, "RUNNING", "Remote process error"),
        ({"async_error": 99}, "RUNNING", "error 99"),
    ],
    ids=str,
)
def test_json_tells_the_state_and_the_error_of_a_rank(
    status: dict[str, Any], state: str, error: str | None
) -> None:
    body = ras.answer(ras.communicator([ras.rank(0, 1, **status)]))
    [member] = read_status(body).communicators[0].members
    assert (member.state, member.error) == (state, error)


def test_json_tells_ranks_that_are_dead_and_ranks_that_only_left() -> None:
    missing = [ras.lost(1, dead=True), ras.lost(2), ras.lost(3, silent=False)]
    status = read_status(ras.answer(ras.communicator([ras.rank(0)], missing)))
    assert [one.pid for one in status.dead] == [101]
    assert [one.pid for one in status.silent] == [102]
    assert [one.silent for one in status.communicators[0].absent] == [True, True, False]


def test_json_that_is_cut_gives_the_ranks_that_are_whole() -> None:
    body = ras.counts(5, 5, 5, 5)
    cut = body[: body.index(b'"rank": 3') + 20]
    status = read_status(cut)
    assert not status.whole
    assert totals(status.communicators[0]) == {0: 5, 1: 5, 2: 5}


def test_text_names_the_ranks_of_the_one_group_that_is_not_listed() -> None:
    body = ras.text(size=8, problems="MISMATCH", warnings=ras.behind((6650, 7), (6649, [3])))
    status = read_status(body)
    [one] = status.communicators
    assert (status.form, status.version, status.whole, one.size) == ("text", "2.27.5", True, 8)
    assert totals(one) == dict.fromkeys([0, 1, 2, 4, 5, 6, 7], 6650) | {3: 6649}
    assert one.members[3].whose == Whose("10.0.0.14", 103, 3, 3)


def test_text_with_two_groups_that_are_not_listed_names_nobody() -> None:
    body = ras.text(size=4, problems="MISMATCH", warnings=ras.behind((7, 2), (6, 2)))
    [one] = read_status(body).communicators
    assert totals(one) == {}
    assert one.spread == {"AllReduce": {7: 2, 6: 2}}


def test_text_of_before_2_26_counts_all_kinds_together() -> None:
    warnings = ras.behind((12, [0]), (0, [1]), kind="collective")
    [one] = read_status(ras.text(size=2, warnings=warnings)).communicators
    assert totals(one) == {0: 12, 1: 0}
    assert list(one.spread) == ["collective"]


@pytest.mark.parametrize(
    "line", ["  The missing rank: 1\n", f"  Rank 1 -- {ras.where(1)}\n"], ids=["2.24", "2.30"]
)
def test_text_tells_missing_ranks_and_dead_processes(line: str) -> None:
    errors = (
        "DEAD\n  1 job process is considered dead (unreachable via the RAS network)\n"
        "  Process 101 on node 10.0.0.14 managing GPU 1\n\n"
        f"#0-0 ({ras.SHORT}) INCOMPLETE\n  Missing communicator data from 1 rank\n{line}\n"
    )
    status = read_status(ras.text(size=2, problems="INCOMPLETE", errors=errors))
    assert (status.dead_count, status.dead) == (1, (Whose("10.0.0.14", 101, 1),))
    assert [one.rank for one in status.communicators[0].absent] == [1]


def test_text_tells_states_errors_and_the_gpu_as_the_driver_numbers_it() -> None:
    errors = (
        f"#0-0 ({ras.SHORT}) ERROR\n  Asynchronous error on 1 rank\n"
        "  Rank 2 reported Remote process error -- "
        "GPU 0 (NVML 6) managed by process 102 on node fe80::1\n\n"
    )
    warnings = (
        f"#0-0 ({ras.SHORT}) MISMATCH\n  Communicator ranks have different status\n"
        "  3 ranks have status RUNNING\n"
        f"  Rank 3 has status ABORT -- {ras.where(3)}\n"
    )
    [one] = read_status(ras.text(size=4, errors=errors, warnings=warnings)).communicators
    two, three = one.members
    assert (two.error, two.whose) == ("Remote process error", Whose("fe80::1", 102, 0, 6))
    assert (three.rank, three.state) == (3, "ABORT")


def test_text_without_trouble_has_no_name_for_its_communicators() -> None:
    status = read_status(ras.text(size=8))
    assert (status.communicators, status.many, status.rows[0].size) == ((), 1, 8)


def test_text_that_ends_early_says_so() -> None:
    body = ras.text(size=8)
    assert not read_status(body[: body.index(b"Errors\n=")]).whole


@pytest.mark.parametrize(
    "body",
    [b"", b"x" * 100_000, b"{", b"[]", b'{"a": 1}', b'{"communicators": 3}', b"Process 7: x\n"],
    ids=["empty", "noise", "brace", "list", "object", "number", "stack"],
)
def test_what_is_not_from_nccl_is_refused_and_not_recognised(body: bytes) -> None:
    assert not is_ras(body)
    with pytest.raises(Malformed):
        read_status(body)


@pytest.mark.parametrize("body", [ras.counts(1, 2), ras.text(size=2)], ids=["json", "text"])
def test_answers_are_recognised_by_what_is_in_them(body: bytes) -> None:
    assert is_ras(body)


LINES = st.sampled_from(
    [
        *ras.text(size=8, warnings=ras.behind((5, 4), (4, [1, 2]), (3, [0]))).decode().split("\n"),
        "INCOMPLETE",
        "  The missing ranks: 1,2,3",
        "  Process 5 on node h managing GPUs 1,2",
    ]
)


@given(
    st.one_of(st.binary(max_size=300), st.lists(LINES, max_size=40).map("\n".join).map(str.encode))
)
@example(b'{"nccl_version":"1","communicators":[{"hash":"' + b'\\"' * 50)
@settings(deadline=None, max_examples=300)
def test_any_bytes_give_a_status_or_the_one_refusal(body: bytes) -> None:
    try:
        status = read_status(body)
    except Malformed:
        return
    told(look_at([Taken(status, "1"), Taken(status, "2")], [], []))


_VALUES = st.recursive(
    st.one_of(st.none(), st.booleans(), st.integers(), st.floats(), st.text(max_size=5)),
    lambda inner: st.one_of(
        st.lists(inner, max_size=3),
        st.dictionaries(
            st.sampled_from(
                ["ranks", "rank", "status", "hash", "collective_counts", "size", "pid"]
            ),
            inner,
            max_size=4,
        ),
    ),
    max_leaves=20,
)


@given(st.lists(_VALUES, max_size=4), st.integers(min_value=0, max_value=400))
@settings(deadline=None, max_examples=200)
def test_any_json_cut_anywhere_is_survived(communicators: list[object], at: int) -> None:
    body = ras.answer(*communicators)  # type: ignore[arg-type]
    for one in (body, body[:at]):
        try:
            status = read_status(one)
        except Malformed:
            continue
        told(look_at([Taken(status, "1")], [], []))


HOSTILE: dict[str, Callable[[int], bytes]] = {
    "escaped quotes": lambda n: b'{"communicators":["' + b'\\"' * n,
    "open lists": lambda n: b'{"communicators":' + b"[" * n,
    "lines of a mismatch": lambda n: ras.behind((1, 99), (2, [0])).encode() * (n // 100),
    "kinds": lambda n: (
        b"#0-0 (1) MISMATCH\n"
        + b"".join(
            b"  Communicator ranks have different k%d operation counts\n"
            b"  Rank %d has launched up to operation 1 -- x\n" % (i, i)
            for i in range(n // 100)
        )
    ),
    "spaces": lambda n: b"NCCL version 2\n" + b" " * n,
    "huge groups": lambda n: (
        ras.text(size=65_000)
        + b"".join(
            b"#0-0 (%x) MISMATCH\n  Communicator ranks have different A operation counts\n"
            b"  64999 ranks have launched up to operation 1\n"
            b"  Rank 0 has launched up to operation 2 -- x\n" % i
            for i in range(n // 150)
        )
    ),
}


@pytest.mark.parametrize("make", HOSTILE.values(), ids=HOSTILE)
def test_a_hostile_answer_costs_no_more_than_its_length(make: Callable[[int], bytes]) -> None:
    body = make(2_000_000)
    begun = time.thread_time()
    with suppress(Malformed):
        read_status(body)
    assert time.thread_time() - begun < 30  # a second on a quiet machine; quadratic, hours
