"""What must not matter to a comparison, whatever the ranks are doing."""

import random
from collections.abc import Sequence

import orjson
from hypothesis import given, settings
from hypothesis import strategies as st

from app.domain.stacks.compare import Comparison, compare
from app.domain.stacks.reading import read_files
from app.domain.stacks.samples import Missing
from app.domain.stacks.sources import StackFile
from app.domain.titles import read_rank
from tests import stacks
from tests.stacks import Calls, dump_text, files, pid_of

DOINGS = (
    stacks.CHECKS_CACHE,
    stacks.CHECKS_LOADS,
    stacks.EVICTS,
    stacks.AWAITS_GPU,
    stacks.AWAITS_REQUESTS,
    stacks.POLLS,
    stacks.SYNCS_MLP,
    stacks.REDUCES,
    stacks.COMPUTES,
    stacks.AWAITS_LOCK,
)
doing = st.sampled_from(DOINGS)
# Mostly one doing and a few others, as in a hang; and any mixture.
servers = st.one_of(
    st.lists(doing, min_size=1, max_size=8),
    st.builds(
        lambda many, crowd, others: [*others, *[crowd] * many],
        st.integers(2, 6),
        doing,
        st.lists(doing, max_size=2),
    ),
)
steps = st.sampled_from(((0,), (0, 0), (0, 1), (0, 0, 0)))


def scene(server: Sequence[Calls], moves: tuple[int, ...], names: list[str]) -> list[StackFile]:
    """Samples of *server*: in each, every rank does what the one *moves* places on does first."""
    many = len(server)
    return files(
        *(
            {name: server[(number + move) % many] for number, name in enumerate(names)}
            for move in moves
        )
    )


def told(comparison: Comparison) -> tuple[object, ...]:
    frame = comparison.divergence.frame.function if _parted(comparison) else None  # type: ignore[union-attr]
    return (comparison.verdict, comparison.stuck, comparison.majority_count, frame)


def _parted(comparison: Comparison) -> bool:
    return comparison.divergence is not None and comparison.divergence.frame is not None


def compared(read: list[StackFile]) -> Comparison:
    reading = read_files(read)
    return compare(reading.samples, reading.missing)


@given(servers, steps, st.randoms(use_true_random=False))
@settings(deadline=None, max_examples=60)
def test_which_rank_does_what_changes_names_only(
    server: Sequence[Calls], moves: tuple[int, ...], chance: random.Random
) -> None:
    names = [f"TP{number}" for number in range(len(server))]
    shuffled = chance.sample(names, len(names))
    renamed = dict(zip(names, shuffled, strict=True))
    one, other = (compared(scene(server, moves, order)) for order in (names, shuffled))
    assert told(one) == told(other)
    assert {renamed[rank] for rank in one.outliers} == set(other.outliers)


@given(servers, steps, st.lists(st.text(min_size=1, max_size=12), max_size=3))
@settings(deadline=None, max_examples=40)
def test_names_and_number_of_helper_threads_do_not_matter(
    server: Sequence[Calls], moves: tuple[int, ...], threads: list[str]
) -> None:
    names = [f"TP{number}" for number in range(len(server))]
    plain = scene(server, moves, names)
    quiet = ["".join(char for char in one if char.isprintable()) or "t" for one in threads]
    helpers = [(f"w {one}", ("wait (threading.py:359)",)) for one in quiet]
    many = len(server)
    renamed = [
        StackFile(
            f"sample{at}/{name.lower()}.txt",
            dump_text(
                f"sglang::scheduler_{name}",
                pid_of(name),
                server[(number + move) % many],
                helpers=helpers,
            ).encode(),
        )
        for at, move in enumerate(moves, start=1)
        for number, name in enumerate(names)
    ]
    one, other = compared(plain), compared(renamed)
    assert told(one) == told(other)
    assert one.outliers == other.outliers


@given(servers, steps, st.integers(min_value=0, max_value=2**46))
@settings(deadline=None, max_examples=40)
def test_addresses_do_not_matter(
    server: Sequence[Calls], moves: tuple[int, ...], address: int
) -> None:
    names = [f"TP{number}" for number in range(len(server))]
    native = [["0x7f00deadbeef (libc.so.6)", *calls] for calls in server]
    read = scene(native, moves, names)
    shifted = [
        StackFile(path, body.replace(b"0x7f00deadbeef", hex(address + 13 * number).encode()))
        for number, (path, body) in enumerate(read)
    ]
    one, other = compared(read), compared(shifted)
    assert told(one) == told(other)
    assert one.outliers == other.outliers


@given(servers, steps, st.sampled_from(("permission", "process_gone_or_zombie", "timeout")))
@settings(deadline=None, max_examples=60)
def test_a_rank_more_that_is_missing_accuses_nobody(
    server: Sequence[Calls], moves: tuple[int, ...], kind: str
) -> None:
    names = [f"TP{number}" for number in range(len(server))]
    reading = read_files(scene(server, moves, names))
    before = compare(reading.samples, ())
    name = f"TP{len(server)}"
    lost = Missing(name, kind, "Not read.", "Try again.", numbers=read_rank(name))
    after = compare(reading.samples, [lost])
    assert set(after.outliers) <= set(before.outliers)
    assert [one.rank for one in after.missing] == [name]
    assert all(name not in group.ranks for group in after.groups)


@given(st.lists(st.text(max_size=60), max_size=30))
@settings(deadline=None, max_examples=60)
def test_any_text_is_survived(lines: list[str]) -> None:
    body = "\n".join(["Process 7: sglang::scheduler_TP0", "Python v3.12.3 (x)", *lines])
    found = compared([StackFile("tp0.txt", body.encode("utf-8", "replace"))])
    assert found.stuck is not True, "one sample never shows that nothing moves"


@given(
    st.recursive(
        st.none() | st.booleans() | st.integers(-(2**40), 2**40) | st.text(max_size=20),
        lambda inner: (
            st.lists(inner, max_size=3)
            | st.dictionaries(
                st.sampled_from(
                    ("frames", "name", "pid", "line", "thread_name", "done", "refused")
                ),
                inner,
                max_size=4,
            )
        ),
        max_leaves=20,
    )
)
@settings(deadline=None, max_examples=80)
def test_any_json_is_survived(value: object) -> None:
    compared([StackFile("tp0.json", orjson.dumps(value))])
    compared([StackFile("answer.json", orjson.dumps(value))])


@given(
    st.fixed_dictionaries(
        {"file": st.just({"name": "TP0-700-1.pyspy.json"})},
        optional={
            key: st.none()
            | st.integers(-9, 9**9)
            | st.text(max_size=8)
            | st.lists(st.integers(0, 9))
            for key in ("sample", "mode", "exact", "rank", "taken_at", "state_after", "pid")
        },
    )
)
@settings(deadline=None, max_examples=80)
def test_any_answer_beside_stacks_is_survived(note: dict[str, object]) -> None:
    answer = {"done": [note], "refused": [note, {**note, "process_id": "700.1"}]}
    body = orjson.dumps(answer)
    stack = StackFile("TP0-700-1.pyspy.json", stacks.dump_json(700, stacks.EVICTS))
    compared([stack, StackFile("answer.json", body)])
