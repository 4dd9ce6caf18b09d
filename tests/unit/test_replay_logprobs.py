"""How far apart two tokens were, where an answer leaves the recorded one."""

from collections.abc import Iterator, Mapping, Sequence
from math import log
from typing import Any

import orjson
import pytest
from hypothesis import given
from hypothesis import strategies as st

from app.domain.dumps.export import entry
from app.domain.dumps.logprobs import logprobs_of
from app.domain.replay.answer import Answer
from app.domain.replay.logprobs import NOISE_LOGPROB_GAP, Logprobs, logprob_gap
from app.domain.replay.reading import recorded_of, request_of_line
from app.store.replay_tables import ReplayOutcome
from app.web.views.replay_outcomes import OutcomeRow
from tests.replays import recorded_request

IDS = [273, 895, 274, 895]
ROWS = [[-0.5, 273, None], [-0.1, 895, None], [-1.2, 274, " a"], [-0.1, 895, None]]
# Of each place the two likeliest, as SGLang 0.5.23 tells them for top_logprobs_num 2.
LIKELIEST = [
    [[-0.5, 273, None], [-0.95, 5, None]],
    [[-0.1, 895, None], [-2.5, 5, None]],
    [[-1.2, 274, " a"], [-1.21, 6, " b"]],
    [[-0.1, 895, None], [-2.5, 5, None]],
]


def frame(start: int, end: int, *, told_from: int | None = None, **meta: Any) -> bytes:
    """Tokens from *start* to *end*, with the log probabilities of those from *told_from* on."""
    told = slice(start if told_from is None else told_from, end)
    finish = {"type": "length", "length": 4} if end == 4 else None
    usual = {"output_token_logprobs": ROWS[told], "output_top_logprobs": LIKELIEST[told]}
    about = {"completion_tokens": end, "finish_reason": finish, **usual, **meta}
    return orjson.dumps({"text": "a" * end, "output_ids": IDS[start:end], "meta_info": about})


def answered(*frames: bytes) -> Answer:
    answer = Answer()
    for at, data in enumerate((*frames, b"[DONE]")):
        answer.frame(data, float(at))
    answer.ended()
    return answer


def gap(answer: Answer, place: int, token: int, was: float | None = None) -> float | None:
    return logprob_gap((token, was), answer.ids[place], answer.logprobs_at(place))


CUMULATIVE = [frame(0, end) for end in range(1, 5)]
INCREMENTAL = [frame(end - 1, end) for end in range(1, 5)]
# Incremental text and ids, and all log probabilities so far beside them.
MIXED = [frame(end - 1, end, told_from=0) for end in range(1, 5)]


@pytest.mark.parametrize(
    "frames",
    [CUMULATIVE, INCREMENTAL, MIXED, [frame(0, 4)], [frame(0, 2), frame(2, 4)]],
    ids=["cumulative", "incremental", "mixed", "one", "two at once"],
)
def test_it_is_known_whichever_way_a_stream_tells_them(frames: list[bytes]) -> None:
    answer = answered(*frames)

    assert list(answer.ids) == IDS
    assert [gap(answer, 0, 5), gap(answer, 2, 6), gap(answer, 3, 5)] == [0.45, 0.01, 2.4]


def test_a_body_that_is_no_stream_tells_them_too() -> None:
    answer = Answer()
    answer.whole(frame(0, 4))

    assert gap(answer, 0, 5) == 0.45


@pytest.mark.parametrize(
    ("told", "recorded", "expected"),
    [
        ({1: -0.5, 2: -0.55}, (2, None), 0.05),
        ({1: -0.5, 2: -2.5}, (2, None), 2.0),
        ({1: -0.7, 2: -0.7}, (2, None), 0.0),
        ({1: -0.5, 3: -2.5}, (2, None), 2.0),
        ({1: log(0.9)}, (2, None), 2.1972),
        ({1: log(0.5)}, (2, None), None),
        ({1: 0.0}, (2, None), 9.2103),
        ({}, (2, None), None),
        ({}, (2, log(0.9)), 2.1972),
        ({}, (2, log(0.5)), None),
        ({1: -0.7, 2: -0.75}, (2, log(0.9)), 2.1972),
        ({1: -2.5, 2: -0.5}, (2, log(0.9)), None),
        ({1: 0.0, 3: 0.0}, (2, None), None),
    ],
    ids=[
        "about as likely", "less likely", "as likely", "not among the likeliest",
        "alone, and likely", "alone, and not likelier than another may be", "alone, and certain",
        "nothing told", "recorded, and likely", "recorded, and not likelier than another",
        "the recording tells more", "what came was less likely", "more than certain together",
    ],
)  # fmt: skip
def test_the_gap_is_told_or_the_least_that_it_can_be(
    told: Mapping[int, float], recorded: tuple[int, float | None], expected: float | None
) -> None:
    assert logprob_gap(recorded, 1, told) == expected


def distributions() -> st.SearchStrategy[list[float]]:
    weights = st.lists(st.floats(0.01, 1.0), min_size=3, max_size=12)
    return weights.map(lambda given: sorted((one / sum(given) for one in given), reverse=True))


@given(distributions(), st.data())
def test_it_is_never_more_than_it_was_nor_called_noise_by_a_guess(
    likely: Sequence[float], data: st.DataObject
) -> None:
    place = data.draw(st.integers(1, len(likely) - 1))
    told = data.draw(st.integers(1, len(likely)))
    found = logprob_gap((place, None), 0, {n: log(likely[n]) for n in range(told)})
    real = log(likely[0]) - log(likely[place])

    assert found is None or found <= real + 1e-4
    assert found is None or found > NOISE_LOGPROB_GAP or place < told


HOSTILE: list[Any] = [
    {"output_token_logprobs": ROWS[:2]},
    {"output_token_logprobs": "none", "output_top_logprobs": 7},
    {"output_token_logprobs": [None, {}, 3, []], "output_top_logprobs": LIKELIEST},
    {"output_token_logprobs": [[1e308, 273]] * 4, "output_top_logprobs": {}},
    {"output_token_logprobs": [["-0.5", "273", None]] * 4},
    {"output_token_logprobs": [[None, 273, None]] * 4},
    {"output_token_logprobs": [[-0.5, 1, None]] * 4},
    {"output_token_logprobs": [[True, 273, None]] * 4},
    {"output_token_logprobs": [[-0.5, True, None]] * 4},
    {"output_token_logprobs": ROWS * 1000},
]


@pytest.mark.parametrize("meta", HOSTILE, ids=lambda meta: str(meta)[:40])
def test_of_nonsense_nothing_is_known(meta: dict[str, Any]) -> None:
    assert gap(answered(frame(0, 4, **meta)), 0, 5) is None
    assert gap(answered(frame(0, 3), frame(3, 4, **meta)), 3, 5) is None


def test_likeliest_that_are_not_of_each_place_are_left_out() -> None:
    shorter = frame(0, 4, output_top_logprobs=LIKELIEST[:3])
    empty = frame(0, 4, output_top_logprobs=[None, [None], [[]], [[-0.1, 895, None], None]])

    assert gap(answered(shorter), 0, 5) == gap(answered(empty), 0, 5)
    assert gap(answered(empty), 3, 5) == pytest.approx(log(0.9048 / 0.0952), abs=0.01)


def test_rows_that_are_nested_too_deep_are_none() -> None:
    deep: Any = []
    for _ in range(600):
        deep = [deep]
    told = Logprobs()
    told.take([deep], None, 1)

    assert told.at(0, 1) == {}


json = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=3),
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.text(max_size=2), inner),
    max_leaves=12,
)


@given(st.lists(json, max_size=4), json, st.integers(0, 5))
def test_whatever_a_server_says_nothing_breaks(rows: list[Any], top: Any, tokens: int) -> None:
    told = Logprobs()
    told.take(rows, top, tokens)

    found = logprob_gap((7, None), 1, told.at(0, 1))
    assert found is None or found >= 0
    of_line = logprobs_of({"output_ids": [1] * len(rows), "output_logprobs": rows})
    assert of_line is None or [*map(type, of_line)] == [float] * len(rows)


def pieces(count: int) -> Iterator[tuple[list[Any], list[Any], int]]:
    for number in range(1, count + 1):
        yield [[-0.1, number, None]], [[[-0.1, number, None]] * 20], number


def test_what_is_kept_is_no_larger_than_what_came() -> None:
    told, came = Logprobs(), 0
    for rows, likeliest, number in pieces(500):
        told.take(rows, likeliest, number)
        came += len(orjson.dumps([rows, likeliest]))

    kept = sum(len(piece) for _, piece in told._pieces)
    assert kept <= came
    assert told.at(499, 500) == {500: -0.1}


def recorded(rows: Any, **output: Any) -> dict[str, Any]:
    meta = {"finish_reason": {"type": "stop"}, "output_token_logprobs": rows}
    return {"text": "said", "output_ids": [5, 6, 7], "meta_info": meta, **output}


GOOD = [(-0.5, 5, None), [-0.25, 6, "b"], (-1e-9, 7)]


def test_those_of_a_dump_survive_its_export() -> None:
    request = recorded_request(output=recorded(GOOD))
    line = orjson.dumps(entry(request, "T2", str))
    again = recorded_of(request_of_line(line, 0)).output_logprobs

    assert recorded_of(request).output_logprobs == again == [-0.5, -0.25, -0.0]
    assert b"logprobs" not in orjson.dumps(entry(request, "T0", str))


@pytest.mark.parametrize(
    "rows",
    [
        GOOD[:2], [*GOOD, GOOD[0]], "rows", 5, {}, [(-0.5, 5, None)] * 3,
        [(float("nan"), 5), *GOOD[1:]], [(float("-inf"), 5), *GOOD[1:]], [(2.0, 5), *GOOD[1:]],
        [("-0.5", 5), *GOOD[1:]], [None, *GOOD[1:]], [(-(10**400), 5), *GOOD[1:]],
    ],
    ids=[
        "fewer", "more", "text", "number", "table", "of others", "no number", "infinite",
        "above 0", "as text", "none", "huge",
    ],
)  # fmt: skip
def test_those_of_a_dump_are_taken_only_whole(rows: Any) -> None:
    assert logprobs_of(recorded(rows)) is None


@pytest.mark.parametrize("told", [[-0.5, -0.25], "x", [-0.5, None, -0.1], [-0.5, float("nan"), 0]])
def test_those_of_a_line_are_taken_only_whole(told: Any) -> None:
    assert logprobs_of(recorded(None, output_logprobs=told)) is None


@pytest.mark.parametrize(
    ("place", "apart", "says"),
    [
        (None, None, ""),
        (
            1200,
            None,
            "differs from token 1\N{NARROW NO-BREAK SPACE}200 on, by how much is not known",
        ),
        (3, 0.05, "differs from token 3 on, log probability 0.05 apart"),
        (3, 2.2, "differs from token 3 on, log probability at least 2.20 apart"),
    ],
    ids=["alike", "not known", "near", "far"],
)
def test_the_page_says_where_an_answer_differs_and_by_how_much(
    place: int | None, apart: float | None, says: str
) -> None:
    told: dict[str, Any] = {
        "first_divergent_token": place,
        "logprob_gap": apart,
        "rid": None,
        "status": 200,
    }
    row = ReplayOutcome(replay_id=1, trial=1, position=0, state="completed", due_seconds=0, **told)

    assert OutcomeRow.of(row).says == says
