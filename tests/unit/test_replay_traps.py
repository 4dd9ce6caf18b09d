"""Variants of what makes a recorded request dangerous to send: what goes out, and what is told.

Nothing is stripped without a word, and nothing goes along that acts on the target or belonged to
the old server.
"""

from typing import Any

import orjson
import pytest

from app.domain.dumps.building import built
from app.domain.dumps.json_lines import parts_of
from app.domain.dumps.recorded import RecordedRequest
from app.domain.replay.accepted import NOTHING_SAID
from app.domain.replay.options import Options, TargetFacts
from app.domain.replay.plan import Plan, plan
from app.domain.replay.questions import question_of, untested
from app.domain.replay.symptoms import Sameness
from app.errors import Malformed
from tests.replays import recorded_request

TODAY = TargetFacts(version="0.5.23", frontend="python", is_generation=True)
EMBEDDER = TargetFacts(version="0.5.23", frontend="python", is_generation=False)
IDS = [1, 2, 3]
PNG = "data:image/png;base64,AAAA"
NAN = float("nan")


def planned(
    *requests: RecordedRequest, options: Options | None = None, to: TargetFacts = TODAY
) -> tuple[list[dict[str, Any]], Plan]:
    """The bodies that go out, and the plan."""
    made = plan(requests, options or Options(), to)
    by_index = {one.index: one for one in requests}
    return [orjson.loads(one.body) for one in made.sendings(by_index.__getitem__)], made


def of(**payload: Any) -> tuple[dict[str, Any], Plan]:
    """The only body of a request of ``/generate``."""
    bodies, made = planned(recorded_request(0, {"input_ids": IDS, **payload}))
    return bodies[0], made


def line(payload: dict[str, Any], endpoint: str, **more: Any) -> RecordedRequest:
    parts = parts_of({"payload": payload, "endpoint": endpoint, **more})
    assert parts is not None
    return built(0, parts)


def notes(made: Plan) -> str:
    return " ".join(one.says for one in made.notes)


@pytest.mark.parametrize(
    ("payload", "told"),
    [
        ({"rid": ["a", "b"]}, {"rid"}),
        ({"bootstrap_room": [7, 7], "bootstrap_host": ["h", "h"], "bootstrap_port": [8998, None]},
         {"bootstrap_room", "bootstrap_host", "bootstrap_port"}),
        ({"bootstrap_room": 0, "data_parallel_rank": 0, "routed_dp_rank": 0},
         {"bootstrap_room", "data_parallel_rank", "routed_dp_rank"}),
        ({"bootstrap_pair_key": "k", "decode_tp_size": 2, "disagg_prefill_dp_rank": 1},
         {"bootstrap_pair_key", "decode_tp_size", "disagg_prefill_dp_rank"}),
        ({"session_params": [{"id": "s1", "offset": -1}]}, {"session_params"}),
        ({"session_id": "s1", "conversation_id": "c"}, {"session_id", "conversation_id"}),
        ({"lora_id": ["f00", None]}, {"lora_id"}),
        ({"custom_logit_processor": [None, "gASV"]}, {"custom_logit_processor"}),
        ({"received_time": 1.5, "validation_time": 0.1, "external_trace_header": {"t": "1"}},
         {"received_time", "validation_time", "external_trace_header"}),
        ({"http_worker_ipc": "ipc:///tmp/w", "label": "x", "custom_labels": {"a": "b"}},
         {"http_worker_ipc", "label", "custom_labels"}),
        ({"kv_hints": {"a": 1}, "mm_hashes": ["x"], "token_indices_to_pool": [1]},
         {"kv_hints", "mm_hashes", "token_indices_to_pool"}),
        ({"watermark": {"key": "k"}, "background": True, "return_bytes": True},
         {"watermark", "background", "return_bytes"}),
        ({"a_field_of_tomorrow": 1}, {"a_field_of_tomorrow"}),
    ],
    ids=["rids", "bootstrap lists", "room and ranks 0", "split server", "sessions of a batch",
         "session id", "adapter ids", "code in a list", "times", "labels", "hints", "watermark",
         "unknown"],
)  # fmt: skip
def test_what_was_the_old_servers_is_told_and_goes_nowhere(
    payload: dict[str, Any], told: set[str]
) -> None:
    body, made = of(**payload)

    assert body == {"input_ids": IDS, "sampling_params": {}}
    assert set(made.stripped) == told


@pytest.mark.parametrize(
    "payload",
    [
        dict.fromkeys(("rid", "lora_id", "session_params", "priority", "custom_logit_processor")),
        {"session_params": [None, None], "lora_id": [], "custom_logit_processor": ""},
        {"background": False, "log_metrics": True, "no_logs": False, "is_single": True},
    ],
    ids=["nulls", "lists of nothing", "switched off"],
)
def test_what_says_nothing_is_counted_in_one_line(payload: dict[str, Any]) -> None:
    several = [recorded_request(index, {"input_ids": IDS, **payload}) for index in range(3)]
    _, made = planned(recorded_request(3, {"input_ids": IDS}), *several)

    assert dict(made.stripped) == {NOTHING_SAID: 3}
    assert made.notes == ()


@pytest.mark.parametrize(
    ("sampling", "sent", "told"),
    [
        ({"temperature": NAN, "top_p": float("inf")}, {}, ["temperature: it is no number",
                                                            "top_p: it is no number"]),
        ({"max_new_tokens": 1e9}, {"max_new_tokens": 8192}, ["max_new_tokens: capped at 8192"]),
        ({"max_new_tokens": True}, {}, ["max_new_tokens: it is no number"]),
        ({"max_new_tokens": 2**70}, {}, ["max_new_tokens: it is no number"]),
        ({"n": "2", "stop": ["x"]}, {"stop": ["x"]}, ["n: it is no number"]),
        ({"logit_bias": {"7": NAN}}, {}, ["logit_bias: JSON cannot say it"]),
        ({"custom_params": {"a": 1}, "watermark": {}}, {}, ["custom_params", "watermark"]),
        ({"temperature": None, "regex": None}, {}, None),
    ],
    ids=["not finite", "a float", "a switch", "huge", "a text", "nested", "code", "nulls"],
)  # fmt: skip
def test_sampling_is_what_the_target_takes_and_the_rest_is_told(
    sampling: dict[str, Any], sent: dict[str, Any], told: list[str] | None
) -> None:
    body, made = of(sampling_params=sampling)

    assert body["sampling_params"] == sent
    named = [NOTHING_SAID] if told is None else [f"sampling_params.{one}" for one in told]
    assert list(made.stripped) == named


def test_each_prompt_of_a_batch_is_capped_and_pruned_by_itself() -> None:
    several = [{"max_new_tokens": 9000}, {"max_new_tokens": 5, "x": 1}, None]
    body, made = of(input_ids=[[1], [2], [3]], sampling_params=several)

    assert body["sampling_params"] == [{"max_new_tokens": 8192}, {"max_new_tokens": 5}, {}]
    assert set(made.stripped) == {
        "sampling_params.max_new_tokens: capped at 8192", "sampling_params.x",
    }  # fmt: skip


@pytest.mark.parametrize(
    "medium",
    [
        "file:///etc/passwd", "FILE:///etc/passwd", "/etc/passwd", "//srv/share/private/img",
        "../../etc/passwd", "~/a.png", "C:\\a.png", "models/cache/images/secretpng",
        "HTTP://169.254.169.254/x.png", "s3://bucket/key", "ftp://h/a", "gopher://h/_x",
        {"url": "file:///etc/passwd", "detail": "high"}, {"format": "processor_output", "x": [1]},
        {"image_url": "http://h/a"}, b"raw", 7,
    ],
    ids=str,
)  # fmt: skip
@pytest.mark.parametrize("wrap", [lambda x: x, lambda x: [x], lambda x: [[x]]], ids=["1", "2", "3"])
def test_no_medium_is_fetched_or_opened_however_it_is_wrapped(medium: object, wrap: Any) -> None:
    body, made = of(image_data=wrap(medium))

    sent = body["image_data"]
    while isinstance(sent, list):
        [sent] = sent
    assert sent.startswith("data:image/png;base64,")
    assert any("gave way to a placeholder" in one for one in made.stripped)


@pytest.mark.parametrize(
    "medium",
    [PNG, "DATA:image/png;base64,AAAA", "iVBORw0KGgoAAAANSUhEUg==", "/9j/4AAQSkZJRgABAQAAAQABAAD"],
    ids=["url", "upper case", "png", "jpeg"],
)
def test_what_is_the_medium_itself_goes_along(medium: str) -> None:
    body, made = of(image_data=[medium])

    assert body["image_data"] == [medium]
    assert not any("image_data" in one for one in made.stripped)


def test_media_stand_in_the_parts_of_a_chat_under_many_names() -> None:
    parts = [
        {"type": "text", "text": "what is it?"},
        {"type": "image_url", "image_url": {"url": "http://10.0.0.1/a.png", "detail": "low"}},
        {"type": "image_url", "image_url": "file:///etc/passwd"},
        {"type": "input_audio", "input_audio": {"data": "/srv/a.wav", "format": "wav"}},
        {"type": "audio", "audio": "models/cache/audio/private"},
        {"type": "image_url", "image_url": {"url": PNG}},
    ]
    chat = {"messages": [{"role": "user", "content": parts}], "max_tokens": 5}
    [body], made = planned(line(chat, "/v1/chat/completions"))

    text = orjson.dumps(body).decode()
    assert all(one not in text for one in ("10.0.0.1", "passwd", "/srv/", "models/cache"))
    assert body["messages"][0]["content"][-1] == parts[-1]
    assert sum("placeholder" in one for one in made.stripped) == 3


def test_a_chat_keeps_what_it_asks_and_loses_what_acts() -> None:
    kept = {
        "model": "m", "messages": [{"role": "user", "content": "hi"}], "seed": 1, "stream": True,
        "stream_options": {"include_usage": True}, "logprobs": True, "top_logprobs": 3,
        "response_format": {"type": "json_object"}, "lora_path": "cust-a",
        "chat_template_kwargs": {"thinking": True}, "max_completion_tokens": 9,
    }  # fmt: skip
    lost = {
        "rid": "r", "user": "bob", "bootstrap_room": 3, "custom_params": {"a": 1}, "store": True,
        "session_params": {"id": "s"}, "custom_logit_processor": "gASV",
    }  # fmt: skip
    [body], made = planned(line({**kept, **lost}, "/v1/chat/completions"))

    assert body == kept
    assert set(made.stripped) == set(lost)
    assert "adapter cust-a must be loaded" in notes(made)
    assert "needs session s opened first" in notes(made)


@pytest.mark.parametrize(
    ("payload", "field"),
    [
        ({"text": b"raw"}, "text"),
        ({"input_embeds": [[0.1, NAN]]}, "input_embeds"),
        ({"input_embeds": [[NAN, 0.1]]}, "input_embeds"),
        ({"text": ""}, None),
        ({"input_ids": []}, None),
        ({"text": None, "input_ids": None}, None),
    ],
    ids=["bytes", "not finite", "not finite first", "empty", "no ids", "nothing"],
)
def test_a_prompt_that_json_cannot_say_is_not_made_into_another(
    payload: dict[str, Any], field: str | None
) -> None:
    bodies, made = planned(recorded_request(0, payload))

    assert bodies == []
    assert [one.index for one in made.left_out] == [0]
    assert "prompt" in made.left_out[0].why


def test_embeddings_that_are_numbers_go_along() -> None:
    bodies, _ = planned(recorded_request(0, {"input_embeds": [[0.1, 2], [3.5, -4.0]]}))

    assert bodies[0]["input_embeds"] == [[0.1, 2], [3.5, -4.0]]


@pytest.mark.parametrize(
    ("payload", "sent", "gone"),
    [
        ({"text": "abc", "input_ids": IDS}, "input_ids", "text"),
        ({"text": "abc", "input_ids": IDS, "image_data": PNG}, "text", "input_ids"),
        ({"text": ["a", "b"]}, "text", None),
        ({"input_ids": [[1], [2, 3]]}, "input_ids", None),
    ],
    ids=["ids", "text with an image", "texts", "lists of ids"],
)
def test_a_prompt_goes_out_once(payload: dict[str, Any], sent: str, gone: str | None) -> None:
    [body], made = planned(recorded_request(0, payload))

    assert body[sent] == payload[sent]
    assert [one for one in ("text", "input_ids") if one in body] == [sent]
    assert list(made.stripped) == ([f"{gone}: the prompt is there twice"] if gone else [])


def test_what_is_asked_of_the_answer_is_kept() -> None:
    asked = {
        "return_logprob": True, "logprob_start_len": -1, "top_logprobs_num": 5,
        "token_ids_logprob": [1], "return_hidden_states": "last_token", "stream": True,
        "return_routed_experts": True, "lora_path": "a", "priority": 0, "extra_key": "k",
    }  # fmt: skip
    body, made = of(**asked)

    assert body == {"input_ids": IDS, "sampling_params": {}, **asked}
    assert dict(made.stripped) == {}


def test_adapters_and_sessions_of_a_batch_are_named() -> None:
    body, made = of(
        input_ids=[[1], [2]], lora_path=["a", None], session_params=[{"id": "s1"}, {"id": "s2"}]
    )

    assert body["lora_path"] == ["a", None]
    assert "adapter a must be loaded" in notes(made)
    assert "needs session s1 opened first" in notes(made)
    assert "a batch" in notes(made)


@pytest.mark.parametrize(
    "endpoint",
    ["/v1/score", "/v1/rerank", "/v1/classify", "/v1/responses", "/v1/messages", "/v2/anything"],
)
def test_a_request_of_another_route_is_not_sent_to_ours(endpoint: str) -> None:
    with pytest.raises(Malformed, match="whose requests are not known"):
        parts_of({"payload": {"text": "a", "input": "a"}, "endpoint": endpoint})
    with pytest.raises(Malformed, match="whose requests are not known"):
        parts_of({"body": {"input": "a"}, "url": endpoint, "custom_id": "1"})


def test_embeddings_of_openai_go_to_encode_in_its_words() -> None:
    asked = {"model": "m", "input": ["a", "b"], "dimensions": 8, "encoding_format": "base64"}
    [body], made = planned(line(asked, "/v1/embeddings"), to=EMBEDDER)

    assert body == {"text": ["a", "b"], "dimensions": 8}
    assert set(made.stripped) == {"encoding_format", "input: sent as text to /encode", "model"}


SHAPE = {
    "prompt_tokens": None, "prompt_characters": 512, "prefix": ["m1"], "return_logprob": True,
    "features": ["multimodal", "lora", "session", "structured", "batch", "custom-processor"],
    "image_data_count": 1, "bootstrap_room": 7,
}  # fmt: skip


@pytest.mark.parametrize("unknown", ["prompt_tokens", "none"])
def test_of_a_shape_all_that_it_went_without_is_told(unknown: str) -> None:
    """What is null is left out of a shape that is exported once more."""
    payload = {name: value for name, value in SHAPE.items() if name != unknown}
    [body], made = planned(line(payload, "/generate", recorded={"state": "unfinished"}))

    assert len(body["input_ids"]) == 128
    assert body["return_logprob"] is True
    assert set(made.stripped) == {
        "a batch: sent as one prompt", "bootstrap_room", "image_data: not kept, sent without",
        "custom_logit_processor: not kept, sent without", "lora_path: not kept, sent without",
        "input_ids: as long as its characters let guess",
        "input_ids: made up, as only the shape was kept", "session_params: not kept, sent without",
        "sampling_params: its schema or grammar was not kept, sent without",
    }  # fmt: skip


def test_what_was_not_sent_as_recorded_is_not_said_to_be_tested() -> None:
    _, made = planned(
        recorded_request(0, {"input_ids": IDS, "image_data": "http://h/a"}),
        recorded_request(1, {"input_ids": IDS, "session_params": {"id": "s"}}),
        recorded_request(2, {"video_data": "/a.mp4", "text": "a"}),
        recorded_request(3, {"input_ids": IDS}),
    )

    assert untested(made) == (
        "Not tested: 1 request was left out; some went without their media, their session."
    )
    assert untested(planned(recorded_request(0, {"input_ids": IDS}))[1]) is None


def test_only_where_no_suspect_can_be_sent_they_are_missed() -> None:
    _, made = planned(
        recorded_request(0, {"input_ids": IDS}), recorded_request(1, {"video_data": "/a.mp4"})
    )
    asked = [
        question_of(made, "crash", suspects=frozenset(those), sameness=Sameness())
        for those in ((0, 1), (1,), (9,))
    ]

    assert [(set(one.suspects), set(one.left_out)) for one in asked] == [
        ({0}, set()), (set(), {1}), (set(), set()),
    ]  # fmt: skip
    assert question_of(made, "output", suspects=frozenset((0,)), sameness=Sameness()).suspects == (
        frozenset()
    )


def test_what_is_wrong_with_the_file_is_known_before_it_is_sent() -> None:
    says = "Truncated: the file is cut off."
    made = plan([recorded_request(0)], Options(), TODAY, problems=[says])

    assert [(one.kind, one.says) for one in made.notes] == [("file", says)]


def test_one_payload_is_no_load_and_many_without_a_time_are_none_either() -> None:
    alone = planned(recorded_request(0, at=None))[1]
    several = planned(*(recorded_request(index, at=None) for index in range(3)))[1]

    assert "no-time" not in [one.kind for one in alone.notes]
    assert "No time of arrival was recorded: all go out at once" in notes(several)


def test_the_word_that_it_was_recorded_on_such_a_server_reaches_the_question() -> None:
    requests = [recorded_request(0, {"input_ids": IDS})]
    known = Sameness(model=True, topology=True)
    asked = [
        question_of(
            plan(requests, Options(same_setup=said), TargetFacts()),
            "latency", suspects=frozenset(), sameness=known,
        )
        for said in (False, True)
    ]  # fmt: skip

    assert [one.sameness.missing() for one in asked] == [("accelerator",), ()]
