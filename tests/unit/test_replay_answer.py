"""Answers to replayed requests as they come: events cut out of bytes, and what they add up to."""

import time
from typing import Any

import orjson
import pytest

from app.domain.replay.answer import Answer, pace_ms
from app.domain.replay.frames import Frames
from tests.captured import HTTP, needs


def cut(*pieces: bytes, most_bytes: int = 1000) -> list[bytes]:
    frames = Frames(most_bytes)
    return [data for piece in pieces for data in frames.feed(piece)]


@pytest.mark.parametrize(
    "pieces",
    [
        [b'data: {"a":1}\n\ndata: [DONE]\n\n'],
        [b'data: {"a":1}\n\n', b"data: [DONE]\n\n"],
        [b"da", b'ta: {"a"', b":1}\n", b"\ndata: [DO", b"NE]\n\n"],
        [bytes([one]) for one in b'data: {"a":1}\n\ndata: [DONE]\n\n'],
        [b'data: {"a":1}\r\n\r\ndata: [DONE]\r', b"\n\r\n"],
        [b': hello\n\ndata:{"a":1}\n\nevent: x\nid: 7\ndata: [DONE]\n\n'],
    ],
    ids=["one piece", "two", "anywhere", "byte by byte", "carriage returns", "comments"],
)
def test_events_are_the_same_however_the_bytes_come(pieces: list[bytes]) -> None:
    assert cut(*pieces) == [b'{"a":1}', b"[DONE]"]


def test_data_over_several_lines_is_one() -> None:
    assert cut(b"data: {\ndata: }\n\n") == [b"{\n}"]


def test_an_event_that_is_not_whole_is_none() -> None:
    assert cut(b"data: 1\n\ndata: 2") == [b"1"]


@pytest.mark.parametrize(
    "pieces",
    [[b"data: " + b"x" * 2000], [b"x" * 600] * 2, [b"data: " + b"x" * 2000 + b"\n\n"]],
    ids=["begun", "growing", "whole"],
)
def test_an_event_beyond_the_limit_is_refused(pieces: list[bytes]) -> None:
    with pytest.raises(OverflowError):
        cut(*pieces)


def test_a_long_event_of_many_small_pieces_costs_no_more_than_their_length() -> None:
    frames = Frames(4_000_000)
    began = time.process_time()
    for _ in range(200_000):
        assert frames.feed(b"data: 1\n") == []
    assert frames.feed(b"\n") == [b"\n".join([b"1"] * 200_000)]
    assert time.process_time() - began < 30  # under a second on a quiet machine; quadratic, minutes


def test_answers_of_many_parts_are_added_up_as_they_come_and_bounded() -> None:
    answer = Answer()
    frame_of = b'{"index":%d,"text":"a","meta_info":{"completion_tokens":1}}'
    began = time.process_time()
    for place in range(65_536):
        answer.frame(frame_of % place, 1.0)
    assert time.process_time() - began < 30
    assert answer.completion_tokens == sum(answer.counts) == 65_536
    with pytest.raises(ValueError, match="65536"):
        answer.frame(frame_of % 65_536, 1.0)


def test_token_ids_that_are_none_are_not_taken_for_any() -> None:
    answer = Answer()
    answer.whole(b'{"output_ids":' + b"[" * 1000 + b"1" + b"]" * 1000 + b',"text":""}')
    assert (answer.ids, answer.output_hash()) == ((), None)


def test_many_events_in_one_piece_are_not_too_long_together() -> None:
    assert len(cut(b"data: 1\n\n" * 500)) == 500


WORDS = [" a", " b", " a b", " c"]


def frame(count: int, *, words: list[str], done: bool, **more: Any) -> bytes:
    finish = {"type": "stop", "matched": 2} if done else None
    meta = {"prompt_tokens": 5, "completion_tokens": count, "cached_tokens": 1}
    value = {
        "text": "".join(words),
        "output_ids": [len(one) for one in words],
        "meta_info": {**meta, "finish_reason": finish},
        **more,
    }
    return orjson.dumps({name: one for name, one in value.items() if one is not None})


def cumulative(**more: Any) -> list[bytes]:
    return [frame(n, words=WORDS[:n], done=n == 4, **more) for n in range(1, 5)]


def incremental(**more: Any) -> list[bytes]:
    return [frame(n, words=[WORDS[n - 1]], done=n == 4, **more) for n in range(1, 5)]


def answered(*frames: bytes) -> Answer:
    answer = Answer()
    for at, data in enumerate((*frames, b"[DONE]")):
        answer.frame(data, float(at))
    answer.ended()
    return answer


@pytest.mark.parametrize(
    "frames",
    [
        cumulative(),
        incremental(),
        cumulative(output_ids=None),
        incremental(output_ids=None),
    ],
    ids=["cumulative", "incremental", "cumulative text alone", "incremental text alone"],
)
def test_cumulative_and_incremental_streams_say_the_same(frames: list[bytes]) -> None:
    one = answered(*frames)
    assert one.text == " a b a b c"
    assert (one.prompt_tokens, one.completion_tokens, one.cached_tokens) == (5, 4, 1)
    assert (one.finish_reason, one.done, one.error) == ("stop", True, None)
    assert one.moments == [0.0, 1.0, 2.0, 3.0]
    assert one.counts == [1, 1, 1, 1]
    assert one.output_hash() == answered(*cumulative()).output_hash()


def test_what_was_said_before_a_stream_broke_off_is_known() -> None:
    answer = Answer()
    for at, data in enumerate(cumulative()[:3]):
        answer.frame(data, float(at))
    answer.ended()
    assert (answer.text, answer.completion_tokens) == (" a b a b", 3)
    assert (answer.finish_reason, answer.done) == (None, False)


def test_several_tokens_in_a_frame_share_its_time() -> None:
    one = answered(
        frame(1, words=WORDS[:1], done=False),
        frame(3, words=WORDS[:3], done=False),
        frame(4, words=WORDS, done=True),
    )
    assert one.counts == [1, 2, 1]
    assert pace_ms(one.moments, one.counts) == (500.0, 1000.0)


def test_a_text_that_looks_like_figures_is_no_figure() -> None:
    text = '"completion_tokens":999,"finish_reason":null'
    frames = [frame(n, words=[text] * n, done=n == 3) for n in range(1, 4)]
    assert answered(*frames).completion_tokens == 3


def test_answers_of_a_batch_are_kept_apart_and_added_up() -> None:
    one = answered(
        frame(1, words=["x"], done=False, index=0),
        frame(1, words=["y"], done=False, index=1),
        frame(2, words=["x", "x"], done=True, index=0),
        frame(2, words=["y", "y"], done=False, index=1),
    )
    assert one.text == "xx\nyy"
    assert one.completion_tokens == 4
    assert one.finish_reason is None
    assert one.counts == [1, 1, 1, 1]


def chunk(**fields: Any) -> bytes:
    return orjson.dumps({"choices": [{"index": 0, "finish_reason": None, **fields}]})


def test_a_chat_is_read_with_its_usage_and_a_role_is_no_token() -> None:
    one = answered(
        chunk(delta={"role": "assistant", "content": ""}),
        chunk(delta={"content": "Hel"}),
        chunk(delta={"content": "lo"}),
        chunk(delta={}, finish_reason="stop"),
        orjson.dumps({"choices": [], "usage": {"prompt_tokens": 3, "completion_tokens": 2}}),
    )
    assert (one.text, one.finish_reason) == ("Hello", "stop")
    assert (one.prompt_tokens, one.completion_tokens) == (3, 2)
    assert one.moments == [1.0, 2.0]


@pytest.mark.parametrize(
    ("data", "error", "says"),
    [
        ({"error": {"message": "too long", "code": 400}}, "bad-request", "too long"),
        ({"error": {"message": "no code"}}, "aborted", "no code"),
        ({"error": "plain words"}, "aborted", "plain words"),
        ({"meta_info": {"finish_reason": {"type": "abort"}}}, "aborted", None),
        (
            {"meta_info": {"finish_reason": {"type": "abort", "status_code": 503,
                                             "message": "full"}}},
            "overloaded",
            "full",
        ),
        ({"choices": [{"text": "", "finish_reason": "abort"}]}, "aborted", None),
    ],
    ids=["error 400", "error", "error in words", "abort", "abort with 503", "OpenAI abort"],
)  # fmt: skip
def test_an_abort_in_a_stream_is_told_by_its_class(
    data: dict[str, Any], error: str, says: str | None
) -> None:
    one = answered(cumulative()[0], orjson.dumps(data))
    assert (one.error, one.says) == (error, says)
    assert one.text == " a"


@pytest.mark.parametrize(
    "body",
    [b"null", b"7", b"[]", b'{"meta_info": 5}', b'{"choices": [7]}', b'[{"text": 9}, 8]',
     b'{"text": ["x"], "output_ids": "y", "meta_info": {"completion_tokens": -1}}'],
    ids=lambda body: body.decode()[:30],
)  # fmt: skip
def test_nonsense_is_no_figure_and_no_error(body: bytes) -> None:
    answer = Answer()
    answer.whole(body)
    assert (answer.completion_tokens, answer.text, answer.error) == (None, "", None)


@pytest.mark.parametrize(
    "value",
    [
        {}, {"status": "ok"}, {"model_path": "<script>alert(1)</script>"}, [{"status": "ok"}],
        {"text": 5}, {"meta_info": None}, {"detail": "sign in"}, {"choices": "none"},
        {"output_ids": None, "embedding": None}, {"object": "list", "data": []},
    ],
    ids=str,
)  # fmt: skip
def test_json_of_somebody_else_is_no_answer_whole_or_in_a_stream(value: Any) -> None:
    answer = Answer()
    answer.whole(orjson.dumps(value))

    assert not answer.said_anything
    assert not answered(orjson.dumps(value)).said_anything


@pytest.mark.parametrize(
    "value",
    [
        {"text": "", "meta_info": {"finish_reason": {"type": "stop"}}},
        {"output_ids": [1], "meta_info": {}},
        {"meta_info": {"finish_reason": {"type": "abort"}}},
        {"text": "of the oldest"},
        [{"text": "a", "meta_info": {}}, {"text": "b", "meta_info": {}}],
        {"embedding": [0.5], "meta_info": {"prompt_tokens": 3}},
        [{"embedding": [0.5], "meta_info": {}}, {"embedding": [0.5], "meta_info": {}}],
        {"embedding": 0.5},
        {"object": "list", "data": [{"embedding": [0.5]}], "usage": {"prompt_tokens": 3}},
        {"choices": [{"index": 0, "text": "a", "finish_reason": "stop"}]},
        {"choices": [{"index": 0, "message": {"role": "assistant", "content": None}}]},
        {"choices": [{"index": 0, "delta": {"role": "assistant", "content": ""}}]},
        {"choices": [], "usage": {"prompt_tokens": 3, "completion_tokens": 0}},
        {"error": {"message": "too long", "code": 400}},
    ],
    ids=["empty text", "ids alone", "abort", "text alone", "batch", "embedding", "embeddings",
         "reward", "embeddings of OpenAI", "completion", "chat", "chat stream", "usage", "error"],
)  # fmt: skip
def test_every_form_of_an_answer_is_one_whole_or_in_a_stream(value: Any) -> None:
    answer = Answer()
    answer.whole(orjson.dumps(value))

    assert answer.said_anything
    assert answered(orjson.dumps(value)).said_anything


def test_the_answers_of_real_servers_are_answers() -> None:
    bodies = sorted(needs(HTTP).glob("*/generate.body"))
    told = []
    for body in bodies:
        answer = Answer()
        answer.whole(body.read_bytes())
        told.append(answer)

    assert all(one.said_anything for one in told)
    assert {one.completion_tokens for one in told if one.error is None} == {8}


def test_no_json_is_told_to_whoever_reads() -> None:
    with pytest.raises(ValueError, match="unexpected"):
        Answer().frame(b"{nonsense", 0.0)


@pytest.mark.parametrize(
    ("moments", "counts", "told"),
    [([], [], None), ([1.0], [1], None), ([1.0, 1.5], [1, 1], (500.0, 500.0))],
    ids=["nothing", "one", "two"],
)
def test_the_pace_begins_with_the_second_token(
    moments: list[float], counts: list[int], told: tuple[float, float] | None
) -> None:
    assert pace_ms(moments, counts) == told
