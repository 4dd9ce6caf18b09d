"""Pickles that lie, grow or attack: nothing runs, nothing raises, and the answer says where."""

import pickle
import time
import tracemalloc
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from app.domain.pickled import Limits, Pickled, read_pickle
from app.domain.pickled.opcodes import CODES, NAMES
from app.domain.pickled.values import Global, Inert
from tests.pickles import Modality, Request

pytestmark = pytest.mark.slow

MANY = 200_000
SMALL = Limits(made_bytes=1_000_000, made_per_byte=2)
SOUND = pickle.dumps(
    {
        "requests": [
            (Request(rid=f"r-{n}", ids=tuple(range(n, n + 20)), text="x" * 600, n=[1.5, n]), {}, n)
            for n in range(20)
        ],
        "modality": Modality.IMAGE,
        "long": 2**80,
        "set": {1, 2},
    }
)


class Runs:
    """Unpickled for real, it leaves a file behind."""

    def __init__(self, canary: Path) -> None:
        self.canary = canary

    def __reduce__(self) -> tuple[Any, ...]:
        return Path.touch, (self.canary,)


def long(number: int) -> bytes:
    return b"\x8a\x0a" + number.to_bytes(10, "little", signed=True)


@pytest.mark.parametrize("protocol", range(2, 6))
def test_what_would_run_is_named_and_does_not_run(tmp_path: Path, protocol: int) -> None:
    data = pickle.dumps([Runs(tmp_path / "canary")], protocol)

    read = read_pickle(data)

    assert isinstance(read.value, list)
    assert isinstance(read.value[0], Inert)
    assert {*read.blocked} & {"pathlib.Path.touch", "builtins.getattr", "__builtin__.getattr"}
    assert not (tmp_path / "canary").exists()
    pickle.loads(data)
    assert (tmp_path / "canary").exists(), "the payload was not live, so this test proves nothing"


@pytest.mark.parametrize(
    ("data", "blocked"),
    [
        pytest.param(b"cos\nsystem\n(S'true'\ntR.", "os.system", id="global-and-reduce"),
        pytest.param(b"(S'true'\nios\nsystem\n.", "os.system", id="inst"),
        pytest.param(b"(cos\nsystem\nS'true'\no.", "os.system", id="obj"),
        pytest.param(
            b"\x80\x04\x8c\x06system\x94\x8c\x02os\x940h\x01h\x00\x93\x8c\x04true\x85R.",
            "os.system",
            id="name-out-of-the-memo",
        ),
        pytest.param(
            b"\x80\x04\x8c\x02os\x8c\x06nobody0\x8c\x06system\x93\x8c\x04true\x85R.",
            "os.system",
            id="another-name-was-popped",
        ),
        pytest.param(b"\x80\x02csubprocess\nPopen\n)\x81.", "subprocess.Popen", id="newobj"),
        pytest.param(
            b"\x80\x04\x8c\x0asubprocess\x8c\x05Popen\x93)}\x92.",
            "subprocess.Popen",
            id="newobj-ex",
        ),
        pytest.param(
            b"\x80\x04\x8c\x0bcollections\x8c\x10_sys.modules.get\x93.",
            "collections._sys.modules.get",
            id="dotted-name",
        ),
        pytest.param(
            b"cbuiltins\nbytearray\n(\x8a\x05\x00\x00\x00\x00\x01tR.",
            "builtins.bytearray",
            id="gigabytes-of-nothing",
        ),
        pytest.param(b"cos\nsystem\n(S'true'\ntR", "os.system", id="truncated-after-the-call"),
    ],
)
def test_a_callable_is_named_however_it_is_called(data: bytes, blocked: str) -> None:
    assert read_pickle(data).blocked == (blocked,)


@pytest.mark.parametrize(
    ("data", "kind", "position", "says"),
    [
        pytest.param(b"", "empty", 0, "The file is empty.", id="empty"),
        pytest.param(b"\x1f\x8b\x08\x00", "wrapped", 0, "This is gzip", id="gzip"),
        pytest.param(b"PK\x03\x04...", "wrapped", 0, "This is zip", id="zip"),
        pytest.param(b"\x28\xb5\x2f\xfd", "wrapped", 0, "This is zstd", id="zstd"),
        pytest.param(b'\n {"a": 1}', "wrapped", 0, "This is json", id="json"),
        pytest.param(b"\n<!DOCTYPE HTML>", "wrapped", 0, "This is html", id="html"),
        pytest.param(b"Not Found", "not-a-pickle", 1, "no pickle: OBJ", id="words"),
        pytest.param(b"Internal Server Error\n", "not-a-pickle", 0, "is no number", id="line"),
        pytest.param(b"\x80\x04", "truncated", 2, "ends without STOP", id="nothing-in-it"),
        pytest.param(b"\x80\x04]\x94", "truncated", 2, "is cut off", id="no-stop"),
        pytest.param(b"\x80\x04.", "bad-opcode", 2, "STOP at byte 2 needs more", id="no-value"),
        pytest.param(b"\x80\x04]K", "truncated", 3, "BININT1 at byte 3", id="cut-argument"),
        pytest.param(b"\x80\x04N.N.", "data-after-stop", 4, "2 bytes follow", id="two-pickles"),
        pytest.param(b"\x80\xff.", "bad-value", 0, "protocol 255", id="protocol-255"),
        pytest.param(b"\x80\x04N\xff.", "bad-opcode", 3, "byte 0xff at byte 3", id="no-opcode"),
        pytest.param(b"\x80\x04Nt.", "bad-opcode", 3, "needs a MARK", id="no-mark"),
        pytest.param(b"\x80\x04\x86.", "bad-opcode", 2, "TUPLE2 at byte 2 needs", id="underflow"),
        pytest.param(b"\x80\x04h\x07.", "bad-value", 2, "memo entry 7", id="no-memo"),
        pytest.param(
            b"\x80\x04N\x94\x94h\x01h\x02.", "bad-value", 5, "memo entry 2", id="second-of-a-run"
        ),
        pytest.param(b"\x80\x02Nr\xff\xff\xff\x7f.", "limit", 3, "2147483647", id="memo-bomb"),
        pytest.param(
            b"\x80\x04\x8e\xff\xff\xff\xff\xff\xff\xff\x7f.", "truncated", 2, "claims", id="bytes"
        ),
        pytest.param(b"\x80\x04\x8c\xffab.", "truncated", 2, "claims 255 bytes", id="text"),
        pytest.param(b"\x80\x04X\x00\x00\x00\x80.", "truncated", 2, "claims", id="long-text"),
        pytest.param(b"\x80\x02T\xff\xff\xff\xff.", "bad-value", 2, "claims -1", id="negative"),
        pytest.param(b"\x80\x02\x8b\xff\xff\xff\xff.", "bad-value", 2, "-1 bytes", id="long4"),
        pytest.param(b"\x80\x02\x8b\x00\x08\x00\x00" + b"1" * 3000, "limit", 2, "2048", id="big"),
        pytest.param(b"L" + b"1" * 9000 + b"\n.", "limit", 0, "more than 1024", id="digits"),
        pytest.param(b"\x80\x02I1_x\n.", "bad-value", 2, "is no number", id="no-number"),
        pytest.param(b"\x80\x02F1,5\n.", "bad-value", 2, "is no number", id="no-float"),
        pytest.param(b"\x80\x02S'a\"\n.", "bad-value", 2, "not in quotes", id="quotes"),
        pytest.param(b"\x80\x02S'\\xg'\n.", "bad-value", 2, "broken escape", id="escape"),
        pytest.param(b"\x80\x02V\\u12\n.", "bad-value", 2, "broken escape", id="unicode-escape"),
        pytest.param(b"\x80\x02g-1\n.", "bad-value", 2, "no memo number", id="negative-memo"),
        pytest.param(
            b"\x80\x04\x95\xff\xff\xff\xff\xff\xff\xff\x7fN.", "truncated", 2, "FRAME", id="frame"
        ),
        pytest.param(b"\x80\x04\x8c\x02\xff\xfe\x94.", "bad-value", 2, "not UTF-8", id="utf-8"),
        pytest.param(b"\x80\x04K\x01K\x02\x93.", "bad-value", 6, "names a class", id="no-names"),
        pytest.param(b"\x80\x02c\xff\nb\n.", "bad-value", 2, "not UTF-8", id="name-not-utf-8"),
        pytest.param(b"\x80\x02c" + b"m" * 600 + b"\nb\n.", "limit", 2, "512", id="long-name"),
        pytest.param(b"\x80\x04\x82\x01.", "outside", 2, "EXT1", id="ext"),
        pytest.param(b"Pstorage\n.", "outside", 0, "PERSID", id="persid"),
        pytest.param(b"\x80\x02NQ.", "outside", 3, "BINPERSID", id="binpersid"),
        pytest.param(b"\x80\x05\x97.", "outside", 2, "NEXT_BUFFER", id="buffer"),
        pytest.param(b"\x80\x05N\x98.", "bad-opcode", 3, "no buffer", id="readonly"),
        pytest.param(b"\x80\x02}]Ns.", "bad-value", 5, "uses a list as a key", id="list-key"),
        pytest.param(b"\x80\x02}N\x85\x85Ns.", "bad-value", 7, "nested tuple", id="tuple-key"),
        pytest.param(b"\x80\x02}(" + b"N" * 17 + b"tNs.", "limit", 23, "tuple of 17", id="wide"),
        pytest.param(b"\x80\x04\x8f(]\x90.", "bad-value", 5, "uses a list", id="list-in-set"),
        pytest.param(b"\x80\x04(}\x91.", "bad-value", 4, "uses a dict", id="dict-in-frozenset"),
        pytest.param(b"\x80\x04}(Nu.", "bad-opcode", 5, "without a value", id="odd"),
        pytest.param(b"\x80\x04NNa.", "bad-opcode", 4, "appends to a NoneType", id="append"),
        pytest.param(b"\x80\x04NNNs.", "bad-opcode", 5, "sets keys in a NoneType", id="set"),
        pytest.param(b"\x80\x04N(N\x90.", "bad-opcode", 5, "adds to a NoneType", id="add"),
        pytest.param(b"\x80\x02cm\nC\n}b.", "bad-opcode", 8, "state of a Global", id="class-state"),
        pytest.param(
            b"\x80\x02c_codecs\nencode\nX\x03\x00\x00\x00\xe2\x82\xacX\x06\x00\x00\x00latin1\x86R.",
            "bad-value",
            38,
            "not Latin-1",
            id="no-bytes",
        ),
        pytest.param(b"(" * 20_000 + b".", "limit", 10_000, "nests deeper", id="marks"),
    ],
)
def test_what_is_wrong_is_said_with_its_place(
    data: bytes, kind: str, position: int, says: str
) -> None:
    problem = read_pickle(data).problem

    assert problem is not None
    assert (problem.kind, problem.position) == (kind, position)
    assert says in problem.says


@pytest.mark.parametrize("code", range(256))
def test_no_opcode_raises_whatever_stands_around_it(code: int) -> None:
    for before in (b"", b"N", b"NN", b"(", b"(N", b"]", b"}", b"cm\nC\n", b"cm\nC\n)R", b"N\x94"):
        for after in (b"", b".", b"\x00.", b"\xff" * 9, b"1\n.", b"a\nb\n."):
            read_pickle(b"\x80\x04" + before + bytes([code]) + after)


def test_every_opcode_of_python_is_known() -> None:
    theirs = {name: ord(value) for name, value in vars(pickle).items() if name in CODES}

    assert theirs == CODES
    assert len(NAMES) == 68


@pytest.mark.parametrize(
    "deep",
    [
        pytest.param(b")" + b"\x85" * MANY, id="tuples"),
        pytest.param(b"]" * MANY + b"a" * (MANY - 1), id="lists"),
        pytest.param(b"cm\nC\n" + b")R" * MANY, id="calls"),
        pytest.param(b"cm\nC\n" + b")\x81" * MANY, id="objects"),
        pytest.param(b"cm\nC\n)R" * MANY + b"b" * (MANY - 1), id="states"),
    ],
)
def test_what_is_deeper_than_any_stack_is_read_and_freed(deep: bytes) -> None:
    limits = Limits(made_bytes=10**10)

    assert read_pickle(b"\x80\x04" + deep + b".", limits).problem is None
    as_key = read_pickle(b"\x80\x04}" + deep + b"Ns.", limits)
    assert as_key.problem is None or as_key.problem.kind == "bad-value"


def test_sharing_is_no_growth() -> None:
    laughs = b"\x80\x04)" + b"2\x86" * 5_000 + b"."

    assert read_pickle(laughs).problem is None


@pytest.mark.parametrize(
    "piece",
    [
        pytest.param(b"}", id="dicts"),
        pytest.param(b"]", id="lists"),
        pytest.param(b"\x8f", id="sets"),
        pytest.param(b"N", id="nones"),
        pytest.param(b"2", id="copies-of-a-place"),
        pytest.param(b"N\x94", id="memo"),
        pytest.param(b"N\x85", id="tuples"),
        pytest.param(b"M\xff\x01\x94", id="ints"),
        pytest.param(b"\x8c\x02ab", id="strings"),
        pytest.param(b"cm\nC\n)R", id="calls"),
        pytest.param(b"(NNNd", id="odd-dicts"),
        pytest.param(b"(N\x91", id="frozensets"),
        pytest.param(b"c_codecs\nencode\nh\x00h\x01\x86R", id="copies-of-a-text"),
        pytest.param(b"cbuiltins\nset\nh\x02\x85R", id="copies-of-a-set"),
    ],
)
def test_a_file_makes_no_more_than_it_may(piece: bytes) -> None:
    begin = (
        b"\x80\x04X\x00\x02\x00\x00" + b"x" * 512 + b"\x94\x8c\x06latin1\x94](K\x01K\x02K\x03e\x94"
    )
    data = begin + b"N" + piece * (3 * MANY // len(piece) + 100_000) + b"."

    tracemalloc.start()
    read = read_pickle(data, SMALL)
    most_bytes = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()

    assert read.problem is not None
    assert read.problem.kind in ("limit", "bad-opcode")
    between_checks = 16 * 1024**2
    assert most_bytes < between_checks + 3 * (1_000_000 + 2 * len(data))


@pytest.mark.parametrize(
    "keys",
    [
        pytest.param([n * (2**61 - 1) for n in range(20_000)], id="equal-hashes"),
        pytest.param([n << 40 for n in range(1, 20_000)], id="equal-low-bits"),
    ],
)
@pytest.mark.parametrize("into", ["dict", "set"])
def test_keys_that_were_chosen_to_collide_cost_no_time(keys: list[int], into: str) -> None:
    body = b"".join(long(key) + b"N" * (into == "dict") for key in keys)
    made = b"}(" + body + b"u." if into == "dict" else b"\x8f(" + body + b"\x90."

    started = time.process_time()
    problem = read_pickle(b"\x80\x04" + made).problem

    assert problem is not None
    assert "may share their hash" in problem.says
    assert time.process_time() - started < 1


def test_keys_one_at_a_time_are_counted_as_well() -> None:
    body = b"".join(long(n * (2**61 - 1)) + b"Ns" for n in range(20_000))

    problem = read_pickle(b"\x80\x04}" + body + b".").problem

    assert problem is not None
    assert "may share their hash" in problem.says


def test_appending_to_a_list_of_ints_one_at_a_time_takes_its_time_once() -> None:
    data = pickle.dumps([*range(1000)])[:-1] + b"Na" * 300_000 + b"."

    started = time.process_time()
    read = read_pickle(data)

    assert read.problem is None
    assert (
        time.process_time() - started < 30
    )  # under a second on a quiet machine; quadratic, minutes


def test_more_opcodes_than_allowed_end_it() -> None:
    problem = read_pickle(b"\x80\x04" + b"N0" * 10_000 + b"N.", Limits(opcodes=5_000)).problem

    assert problem is not None
    assert problem.kind == "limit"


def test_more_names_than_allowed_end_it() -> None:
    data = b"".join(b"cm\nC%d\n0" % number for number in range(2000))

    problem = read_pickle(data + b"N.").problem

    assert problem is not None
    assert problem.kind == "limit"


def test_what_is_whole_before_the_end_is_there_to_be_salvaged() -> None:
    data = pickle.dumps({"requests": [(n, "x" * 700) for n in range(2500)]})

    read = read_pickle(data[: len(data) * 3 // 4])

    assert read.problem is not None
    assert read.problem.kind == "truncated"
    table, key, requests, *others = read.rest
    assert (table, key) == ({}, "requests")
    assert isinstance(requests, list)
    assert len(requests) == 1000
    whole = [one for one in others if isinstance(one, tuple)]
    assert [one[0] for one in requests + whole] == list(range(len(requests) + len(whole)))
    assert len(whole) > 500


def test_however_it_is_cut_it_is_called_truncated() -> None:
    for length in range(3, len(SOUND)):
        problem = read_pickle(SOUND[:length]).problem
        assert problem is not None
        assert problem.kind == "truncated", (length, problem)


def is_bounded(data: bytes, read: Pickled) -> bool:
    return len(read.rest) <= 2 * len(data) and len(read.blocked) <= 1000


@settings(deadline=None)
@given(st.data())
def test_changed_bytes_never_raise(data: st.DataObject) -> None:
    changed = bytearray(SOUND)
    for _ in range(data.draw(st.integers(1, 8))):
        at = data.draw(st.integers(0, len(changed) - 1))
        new = data.draw(st.sampled_from(sorted(NAMES)) | st.integers(0, 255))
        if data.draw(st.booleans()):
            changed[at] = new
        else:
            del changed[at : at + data.draw(st.integers(1, 20))]
            changed.insert(at, new)

    assert is_bounded(bytes(changed), read_pickle(bytes(changed)))


OPCODE = st.sampled_from(sorted(NAMES)).map(lambda code: bytes([code]))
SOUP = st.lists(OPCODE | OPCODE | st.binary(max_size=9) | st.just(b"m\nC\n"), max_size=60)


@settings(deadline=None, max_examples=300)
@given(SOUP.map(b"".join))
def test_opcodes_in_any_order_never_raise(soup: bytes) -> None:
    assert is_bounded(soup, read_pickle(b"\x80\x05" + soup))


def test_an_object_is_found_by_what_it_is_not_by_what_it_says() -> None:
    key = read_pickle(b"\x80\x02}cm\nC\n)RNs.").value

    assert isinstance(key, dict)
    assert [type(one) for one in key] == [Inert]
    assert Global("m", "C") == Global("m", "C")
    assert repr(*key) == "<Inert m.C>"
