"""What is read without unpickling is what unpickling gives, in every protocol."""

import datetime as dt
import io
import pickle
import pickletools
import warnings
from collections import OrderedDict
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from app.domain.pickled import read_pickle
from app.domain.pickled.ints import Ints
from app.domain.pickled.values import (
    Global,
    Inert,
    Octets,
    Text,
    attributes,
    ints_of,
    items_of,
    text_of,
)
from tests.pickles import (
    Both,
    Ids,
    Keyworded,
    Modality,
    Parameters,
    Request,
    Slotted,
    Span,
    Stated,
    Table,
    same,
)

PROTOCOLS = range(6)
LONG = "naïve text, written twice. " * 100

ids = list(range(-3, 70_000, 23))
request = Request(
    rid="r-1",
    text=LONG,
    input_ids=tuple(ids),
    output_ids=ids,
    sampling_params={"temperature": 0.7, "stop": ["</s>", "\ud800"], "n": 1, "seed": 2**70},
    image_data=[b"\x89PNG" * 2000, bytearray(b"\x00\xff"), b"", b"short"],
    stream=True,
    priority=None,
    logprobs=[(-0.5, 17, None), (-1e300, 70_000, None)],
    embedding=[0.25 * n for n in range(700)],
    flags={1, 2, 3},
    frozen=frozenset({"a", None, 2.5}),
    keyed={(1, "a"): 1, None: 2, True: 3, 4.5: 4, b"k": 5, -7: 6},
    few=[1, 2],
    one=[3],
    nested=[[], {}, (), [[[[1, 2, 3, 4]]]], {"a": {"b": {}}}],
    mixed=[1, 2, 3, 4, 5, 6, 7, 8, 9, "ten"],
)
OBJECTS: dict[str, object] = {
    "request": request,
    "twice": [request, request],
    "slots": Slotted("a", LONG),
    "slots-and-dict": Both("a", "b", 3),
    "dataclass": Parameters(0.1, ["x"]),
    "enum": Modality.IMAGE,
    "named-tuple": Span(1, 2),
    "list-class": Ids([1, 2, 3]),
    "long-list-class": Ids(range(3000)),
    "dict-class": Table(a=1, b=2),
    "state-of-its-own": Stated((1.5, 2.5)),
    "ordered": OrderedDict([("b", 1), ("a", [2])]),
    "a-class": Request,
    "floats": [float("inf"), float("-inf"), float("nan"), -0.0, 5e-324],
    "ints": [0, 255, 256, 65535, 65536, -1, 2**31 - 1, -(2**31), 2**31, 2**63, -(2**600)],
    "2001-ints": list(range(2001)),
    "3000-ints-and-more": [*range(3000), "end", 7],
    "tuple-of-tuples-of-ints": tuple(tuple(range(n)) for n in range(20)),
    "text-of-every-plane": "aé漢😀\ud800\x00\n\\",
    "lines": ["a\nb", "c\\u0041", "\r\n"],
}

SLOTS = ("slots", "slots-and-dict")  # which protocols 0 and 1 cannot write


@pytest.mark.parametrize(
    ("name", "protocol"),
    [(name, protocol) for name in OBJECTS for protocol in PROTOCOLS[2 * (name in SLOTS) :]],
)
def test_every_field_is_that_of_the_real_thing(name: str, protocol: int) -> None:
    data = pickle.dumps(OBJECTS[name], protocol)

    read = read_pickle(data)

    assert read.problem is None
    assert same(pickle.loads(data), read.value)


@pytest.mark.parametrize("protocol", PROTOCOLS)
def test_memo_numbers_that_were_optimized_away_still_fit(protocol: int) -> None:
    objects = {name: one for name, one in OBJECTS.items() if protocol >= 2 or name not in SLOTS}
    data = pickletools.optimize(pickle.dumps(objects, protocol))

    read = read_pickle(data)

    assert read.problem is None
    assert same(objects, read.value)


@pytest.mark.parametrize("protocol", PROTOCOLS[2:])
def test_keyword_arguments_are_kept(protocol: int) -> None:
    read = read_pickle(pickle.dumps(Keyworded(3, unit="kB"), protocol)).value

    assert isinstance(read, Inert)
    if protocol >= 4:
        assert (read.args, read.keywords) == ((3,), {"unit": "kB"})
    assert attributes(read) == {"size": 3, "unit": "kB"}


def test_a_thing_that_is_there_twice_is_one_thing() -> None:
    read: Any = read_pickle(pickle.dumps([request, request, ids, ids])).value

    assert read[0] is read[1]
    assert read[2] is read[3]


def test_a_list_that_holds_itself_holds_itself() -> None:
    inner: list[Any] = [*range(1500)]
    inner.append(inner)

    read = read_pickle(pickle.dumps(inner)).value

    held = items_of(read)
    assert held is not None
    assert list(held[:-1]) == list(range(1500))
    assert held[-1] is read


def test_long_things_stay_in_the_buffer_and_short_ones_do_not() -> None:
    read: Any = read_pickle(pickle.dumps([LONG, "short", tuple(ids), (1, 2), b"x" * 9000])).value

    assert [type(one) for one in read] == [Text, str, Ints, tuple, Octets]
    assert read[0].size_bytes == len(LONG.encode())
    assert text_of(read[0]) == LONG
    assert text_of(3) is None
    assert read[0].beginning(3) == "na"  # the third byte is half of a letter
    assert len(read[2]) == len(ids)
    assert read[2][5] == ids[5]
    assert ints_of((1, True)) is None
    assert ints_of(read[2]) is read[2]


def test_ints_that_something_was_appended_to_are_no_longer_ints() -> None:
    read = read_pickle(pickle.dumps([*range(1000), "x"])).value

    assert ints_of(read) is None
    assert items_of(read) == [*range(1000), "x"]


def test_text_that_is_not_utf8_is_read_with_a_mark_when_it_is_asked_for() -> None:
    data = pickle.dumps("a" * 2000).replace(b"aaaa", b"aa\xffa", 1)

    text = read_pickle(data).value

    assert str(text).startswith("aa\ufffdaaa")


def test_strings_of_python_2_are_read_as_text_where_they_are_text() -> None:
    assert read_pickle(b"U\x03abc.").value == "abc"
    assert read_pickle(b"T\x02\x00\x00\x00\xff\xfe.").value == b"\xff\xfe"
    for line in (rb"'it\'s\n\x41'", rb'"\"\0\7\101\q\\"', rb"''", rb"'\a\b\f\r\t\v'"):
        with warnings.catch_warnings(action="ignore"):  # Python does not like \q
            assert read_pickle(b"S" + line + b"\n.").value == pickle.loads(b"S" + line + b"\n.")


def test_memo_numbers_may_start_at_one_and_come_in_any_order() -> None:
    data = b"(lp1\nI5\np7\naS'x'\np3\nag3\nag7\na."

    assert read_pickle(data).value == pickle.loads(data) == [5, "x", "x", 5]


def test_a_memo_number_that_is_given_again_means_the_new_thing() -> None:
    data = b"](K\x01q\x00h\x00h\x00K\x02q\x00h\x00h\x00e."

    assert read_pickle(data).value == pickle.loads(data) == [1, 1, 1, 2, 2, 2]


def test_state_is_what_was_set_last_by_name() -> None:
    inert = Inert(Global("m", "C"), ())
    inert.state = ({"a": 1, 5: 2}, {"b": 3})

    assert attributes(inert) == {"a": 1, "b": 3}
    inert.state = (None, {"b": 3})
    assert attributes(inert) == {"b": 3}
    inert.state = 7
    assert attributes(inert) == {}
    assert attributes("no object") == {}


def test_what_only_ever_made_plain_data_is_not_called_blocked() -> None:
    data = pickle.dumps([b"\xff", {1}, dt.timedelta(3), Modality.IMAGE], 2)

    assert read_pickle(data).blocked == ("datetime.timedelta", "tests.pickles.Modality")


def test_an_ordered_dict_with_attributes_is_named_as_what_cannot_be_shown() -> None:
    odd: Any = OrderedDict(a=1)
    odd.note = "x"

    assert "BUILD" in str(read_pickle(pickle.dumps(odd)).problem)


SCALARS = (
    st.none()
    | st.booleans()
    | st.integers()
    | st.integers(-(2**33), 2**33)
    | st.floats()
    | st.text(st.characters(exclude_categories=()), max_size=40)
    | st.binary(max_size=40)
    | st.sampled_from([LONG, b"\x00" * 5000, "shared"])
)
KEYS = st.one_of(
    st.none(), st.booleans(), st.integers(), st.text(max_size=9), st.binary(max_size=9)
)
INTS = st.lists(st.integers(-(2**31), 2**31 - 1), max_size=40)
VALUES = st.recursive(
    SCALARS | INTS | INTS.map(tuple),
    lambda inner: (
        st.lists(inner, max_size=8)
        | st.lists(inner, max_size=5).map(tuple)
        | st.dictionaries(KEYS, inner, max_size=8)
        | st.dictionaries(st.text(max_size=8), inner, max_size=8).map(lambda d: Request(**d))
        | st.builds(Stated, st.tuples(inner, inner))
        | st.builds(Parameters, st.floats(), st.lists(st.text(max_size=3), max_size=3))
        | st.sets(KEYS, max_size=5)
        | st.frozensets(KEYS, max_size=5)
        | inner.map(lambda one: [one, one])
    ),
    max_leaves=25,
)


@settings(deadline=None, suppress_health_check=[HealthCheck.too_slow])
@given(VALUES, st.sampled_from(PROTOCOLS), st.booleans())
def test_whatever_can_be_pickled_is_read(value: object, protocol: int, optimized: bool) -> None:
    data = pickle.dumps(value, protocol)
    if optimized:
        data = pickletools.optimize(data)

    read = read_pickle(data)

    assert read.problem is None
    assert same(value, read.value)


@settings(deadline=None)
@given(st.lists(VALUES, min_size=1, max_size=4), st.sampled_from(PROTOCOLS))
def test_the_pickler_of_pure_python_is_read_as_well(value: object, protocol: int) -> None:
    out = io.BytesIO()
    pickle._Pickler(out, protocol).dump(value)

    assert same(value, read_pickle(out.getvalue()).value)
