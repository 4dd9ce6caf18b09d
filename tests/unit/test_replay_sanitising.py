"""What is taken out of a request before it is sent again, and that nothing forbidden stays."""

from collections.abc import Iterator, Mapping
from typing import Any

import orjson
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from app.domain.replay.accepted import FORBIDDEN, GENERATE, NOTHING_SAID, SAMPLING, USUALLY_ON
from app.domain.replay.media import GREY_IMAGE, SILENCE, goes_along
from app.domain.replay.options import Options, TargetFacts, release
from app.domain.replay.sanitising import Sanitised, Unfit, sanitised
from tests.dump_layouts import ImageData, read_value, record
from tests.replays import recorded_request

USUAL = Options()
NEWEST = TargetFacts(version="0.5.23", frontend="python", is_generation=True)
WEB = "http://169.254.169.254/latest"
IMAGE = "data:image/png;base64,iVBORw0KGgo="


def sent(
    payload: Mapping[str, Any],
    options: Options = USUAL,
    target: TargetFacts = NEWEST,
    **parts: Any,
) -> Sanitised:
    """What becomes of *payload*."""
    made = sanitised(recorded_request(payload=payload, **parts), options, target)
    assert isinstance(made, Sanitised)
    return made


def why_not(payload: Mapping[str, Any], target: TargetFacts = NEWEST, **parts: Any) -> str:
    """Why *payload* cannot be sent."""
    made = sanitised(recorded_request(payload=payload, **parts), Options(), target)
    assert isinstance(made, Unfit)
    return made.why


@pytest.mark.parametrize("name", sorted(FORBIDDEN))
@pytest.mark.parametrize(
    ("endpoint", "prompt"),
    [
        ("/generate", {"text": "a"}),
        ("/encode", {"text": "a"}),
        ("/v1/chat/completions", {"messages": [{"role": "user", "content": "a"}]}),
        ("/v1/completions", {"prompt": "a"}),
    ],
    ids=lambda value: value if isinstance(value, str) else "",
)
def test_what_belongs_to_the_old_server_is_sent_nowhere(
    name: str, endpoint: Any, prompt: dict[str, Any]
) -> None:
    target = TargetFacts(version="0.5.23")
    made = sent({**prompt, name: "x"}, target=target, endpoint=endpoint)

    assert name not in made.body
    assert (name in made.stripped) == (name not in USUALLY_ON)
    assert made.path == endpoint


def test_unknown_sampling_parameters_are_not_sent_as_the_target_answers_400_to_them() -> None:
    given_ = {"temperature": 0.5, "top_p": None, "max_new_tokens": 16, "made_up": 1, "n": "many"}
    made = sent({"text": "a", "sampling_params": given_})

    assert made.body["sampling_params"] == {"temperature": 0.5, "max_new_tokens": 16}
    assert made.stripped == (
        NOTHING_SAID,
        "sampling_params.made_up",
        "sampling_params.n: it is no number",
    )


@pytest.mark.parametrize(
    ("version", "kept"),
    [
        ("0.4.6.post5", {"top_p"}),
        ("0.4.9", {"top_p", "logit_bias"}),
        ("0.5.2", {"top_p", "logit_bias"}),
        ("v0.5.5", {"top_p", "logit_bias", "stop_regex"}),
        ("0.5.21.post1", {"top_p", "logit_bias", "stop_regex", "beam_width"}),
        (None, {"top_p", "logit_bias", "stop_regex", "beam_width"}),
        ("0.0.0", {"top_p", "logit_bias", "stop_regex", "beam_width"}),
    ],
)
def test_a_target_is_sent_what_its_release_knows(version: str | None, kept: set[str]) -> None:
    given_ = {"top_p": 0.5, "logit_bias": {"5": 1.0}, "stop_regex": "a+", "beam_width": 2}
    made = sent({"text": "a", "sampling_params": given_}, target=TargetFacts(version=version))

    assert set(made.body["sampling_params"]) == kept


def test_a_field_that_an_old_target_would_ignore_is_told_and_not_sent() -> None:
    made = sent({"text": "a", "cache_salt": "s", "extra_key": "k"}, target=TargetFacts("0.5.5"))

    assert made.body == {"text": "a", "extra_key": "k", "sampling_params": {}}
    assert made.stripped == ("cache_salt: 0.5.5 does not know it",)


def test_no_table_names_what_is_forbidden() -> None:
    assert not FORBIDDEN & (GENERATE.keys() | SAMPLING.keys())


@pytest.mark.parametrize(
    ("name", "value", "becomes"),
    [
        ("image_data", WEB, GREY_IMAGE),
        ("image_data", [WEB, IMAGE], [GREY_IMAGE, IMAGE]),
        ("image_data", [[{"url": WEB}], [IMAGE]], [[GREY_IMAGE], [IMAGE]]),
        ("image_data", {"url": IMAGE, "detail": "auto"}, IMAGE),
        ("image_data", "/etc/passwd", GREY_IMAGE),
        ("image_data", "file:///etc/passwd", GREY_IMAGE),
        ("image_data", "s3://bucket/a.png", GREY_IMAGE),
        ("image_data", "secrets/a.png", GREY_IMAGE),
        ("image_data", {"class": "PIL.Image.Image"}, GREY_IMAGE),
        ("image_data", "(123 bytes)", GREY_IMAGE),
        ("image_data", "/9j/4AAQSkZJRgABAQAAAQ", "/9j/4AAQSkZJRgABAQAAAQ"),
        ("audio_data", [WEB, None], [SILENCE, None]),
    ],
)
def test_the_target_is_not_made_to_fetch_or_open_anything(
    name: str, value: object, becomes: object
) -> None:
    made = sent({"text": "a", name: value})

    assert made.body[name] == becomes


def test_an_address_is_fetched_where_that_was_allowed_and_a_file_never() -> None:
    allowed = Options(allow=frozenset(("media-addresses",)))
    made = sent({"text": "a", "image_data": [{"url": WEB}, "/etc/passwd"]}, allowed)

    assert made.body["image_data"] == [WEB, GREY_IMAGE]


def test_the_media_of_a_chat_stand_in_its_messages() -> None:
    parts = [
        {"type": "text", "text": WEB},
        {"type": "image_url", "image_url": {"url": WEB, "detail": "low"}},
        {"type": "image_url", "image_url": {"url": IMAGE}},
    ]
    made = sent({"messages": [{"role": "user", "content": parts}]}, endpoint="/v1/chat/completions")

    content = made.body["messages"][0]["content"]
    assert content[0] == parts[0]
    assert content[1]["image_url"] == {"url": GREY_IMAGE, "detail": "low"}
    assert content[2] == parts[2]


def test_a_video_that_would_be_fetched_keeps_the_request_out() -> None:
    assert "video" in why_not({"text": "a", "video_data": [WEB]})


def test_the_placeholders_are_an_image_and_a_sound_of_their_own() -> None:
    assert goes_along(GREY_IMAGE)
    assert goes_along(SILENCE)


def test_pickled_images_become_plain_urls() -> None:
    [request], _ = read_value([record(1, image_data=[ImageData(url=WEB, detail="auto")])])
    allowed = Options(allow=frozenset(("media-addresses",)))
    made = sanitised(request, allowed, NEWEST)

    assert isinstance(made, Sanitised)
    assert made.body["image_data"] == [WEB]
    assert "image_data: an object became a plain URL" in made.stripped


def test_code_goes_along_only_where_that_was_allowed() -> None:
    payload = {
        "text": "a", "custom_logit_processor": "gASV", "sampling_params": {"custom_params": {}},
    }  # fmt: skip
    allowed = Options(allow=frozenset(("custom-code",)))

    assert sent(payload).body == {"text": "a", "sampling_params": {}}
    assert sent(payload, allowed).body == payload


def test_lengths_are_capped() -> None:
    made = sent({"text": "a", "sampling_params": {"max_new_tokens": 32768}})
    chat = sent({"messages": [{"role": "user", "content": "a"}]}, endpoint="/v1/chat/completions")

    assert made.body["sampling_params"] == {"max_new_tokens": 8192}
    assert made.stripped == ("sampling_params.max_new_tokens: capped at 8192",)
    assert chat.body["max_tokens"] == 8192


def test_the_recorded_length_is_pinned_where_it_is_known() -> None:
    pinned = Options(ignore_eos=True)
    payload = {"text": "a", "sampling_params": {"max_new_tokens": 500, "stop": ["x"]}}
    made = sent(payload, pinned)

    assert made.body["sampling_params"] == {"max_new_tokens": 3, "ignore_eos": True}
    assert sent(payload, pinned, output={}).body["sampling_params"] == payload["sampling_params"]


def test_the_prompt_is_sent_once_and_as_ids_where_they_are_known() -> None:
    both = {"text": "a", "input_ids": [1, 2]}

    assert "text" not in sent(both).body
    assert "input_ids" not in sent({**both, "image_data": IMAGE}).body


def test_an_embedding_goes_to_encode_in_sglangs_own_words() -> None:
    made = sent({"input": [1, 2], "model": "m"}, target=TargetFacts(), endpoint="/encode")

    assert (made.path, made.body) == ("/encode", {"input_ids": [1, 2]})


@pytest.mark.parametrize(
    ("payload", "target", "parts", "why"),
    [
        ({"text": ""}, NEWEST, {}, "its prompt is not in the file"),
        ({"input_ids": {"class": "torch.Tensor"}}, NEWEST, {}, "is an object"),
        ({"text": "a"}, NEWEST, {"endpoint": "/encode"}, "the target generates"),
        ({"text": "a"}, TargetFacts(is_generation=False), {}, "the target makes embeddings"),
        ({"text": "a", "lora_path": "x"}, TargetFacts(frontend="rust"), {}, "no adapters"),
        ({"rid": "HEALTH_CHECK_1", "input_ids": [0]}, NEWEST, {}, "a health probe"),
        ({"prefix": [], "prompt_tokens": None}, NEWEST, {}, "how long its prompt was"),
    ],
    ids=lambda value: value if isinstance(value, str) else "",
)
def test_what_cannot_be_sent_is_left_out_and_said_why(
    payload: dict[str, Any], target: TargetFacts, parts: dict[str, Any], why: str
) -> None:
    assert why in why_not(payload, target, **parts)


def test_of_a_shape_the_prompt_is_made_up_with_the_same_beginning() -> None:
    one = sent({"prompt_tokens": 200, "prefix": ["aa", "bb"], "features": []})
    other = recorded_request(1, {"prompt_tokens": 150, "prefix": ["aa", "cc"]})
    made = sanitised(other, Options(), NEWEST)

    assert isinstance(made, Sanitised)
    first, second = one.body["input_ids"], made.body["input_ids"]
    assert (len(first), len(second)) == (200, 150)
    assert first[:64] == second[:64]
    assert first[64:128] != second[64:128]
    assert set(one.body) == {"input_ids", "sampling_params"}


def test_of_an_unfinished_shape_the_length_is_guessed_and_said() -> None:
    shape: dict[str, Any] = {
        "prompt_tokens": None, "prompt_characters": 1000, "prefix": [], "image_data_count": 1,
    }  # fmt: skip
    made = sent(shape, output={})

    assert len(made.body["input_ids"]) == 250
    assert made.stripped == (
        "input_ids: made up, as only the shape was kept",
        "input_ids: as long as its characters let guess",
        "image_data: not kept, sent without",
    )


def test_all_that_only_says_that_it_is_off_is_told_of_in_one_line() -> None:
    off = {"no_logs": False, "background": False, "session_id": None, "log_metrics": True}
    made = sent({"text": "a", **off, "routed_dp_rank": 0, "return_bytes": True})

    assert made.stripped == (NOTHING_SAID, "routed_dp_rank", "return_bytes")


@pytest.mark.parametrize(
    ("payload", "endpoint"),
    [
        ({"text": "a", "image_data": None}, "/generate"),
        ({"text": "a", "sampling_params": {"regex": None}}, "/generate"),
        ({"text": "a", "no_logs": False}, "/generate"),
        ({"text": "a", "dimensions": None}, "/encode"),
        ({"prompt": "a", "suffix": None, "max_tokens": 5}, "/v1/completions"),
    ],
    ids=["field", "parameter", "off", "embedding", "beside the prompt"],
)
def test_a_null_is_told_and_the_question_stays_the_same(
    payload: dict[str, Any], endpoint: Any
) -> None:
    made = sent(payload, target=TargetFacts(version="0.5.23"), endpoint=endpoint)

    assert made.stripped == (NOTHING_SAID,)
    assert made.asks_the_same


def test_made_up_ids_are_in_a_small_vocabulary() -> None:
    small = TargetFacts(vocab_size=300)
    made = sent({"prompt_tokens": 5000, "prefix": []}, target=small)

    assert min(made.body["input_ids"]) >= 10
    assert max(made.body["input_ids"]) < 300


def test_the_release_is_read_off_a_version() -> None:
    assert release("0.5.9.post1") == (0, 5, 9)
    assert release("0.5") == (0, 5, 0)
    assert release("main") is None
    assert release(None) is None


scalars = st.one_of(
    st.none(), st.booleans(), st.integers(-5, 100_000), st.floats(allow_nan=False), st.text()
)
values = st.recursive(
    st.one_of(scalars, st.sampled_from([WEB, IMAGE, "/etc/passwd", "file:///x"])),
    lambda inner: st.one_of(
        st.lists(inner, max_size=3),
        st.dictionaries(
            st.one_of(
                st.text(max_size=5), st.sampled_from(["url", "image_url", "content", "role"])
            ),
            inner,
            max_size=3,
        ),
    ),
    max_leaves=6,
)
names = st.sampled_from(
    [*sorted(FORBIDDEN), *sorted(GENERATE), *sorted(SAMPLING), "messages", "prompt", "max_tokens"]
)
payloads = st.dictionaries(names, values, max_size=8).flatmap(
    lambda payload: st.one_of(
        st.just(payload),
        st.dictionaries(names, values, max_size=6).map(
            lambda sampling: {**payload, "text": "a", "sampling_params": sampling}
        ),
    )
)
endpoints = st.sampled_from(["/generate", "/encode", "/v1/chat/completions", "/v1/completions"])


@given(payloads, endpoints, st.booleans(), st.sampled_from(["0.4.6", "0.5.9", "0.5.23", None]))
@settings(deadline=None, max_examples=150)
def test_sanitising_is_safe_told_and_done_once_for_all(
    payload: dict[str, Any], endpoint: Any, pinned: bool, version: str | None
) -> None:
    options, target = Options(ignore_eos=pinned), TargetFacts(version=version)
    made = sanitised(recorded_request(payload=payload, endpoint=endpoint), options, target)
    if isinstance(made, Unfit):
        return

    assert not FORBIDDEN & made.body.keys()
    for sampling in _sampling_of(made.body):
        assert sampling.keys() <= SAMPLING.keys()
        assert None not in sampling.values()
    assert [url for url in _media_of(made.body) if url is not None and not goes_along(url)] == []
    again = sanitised(recorded_request(payload=made.body, endpoint=endpoint), options, target)
    assert again == Sanitised(made.path, made.body, ())
    orjson.dumps(made.body)


def _sampling_of(body: Mapping[str, Any]) -> Iterator[Mapping[str, Any]]:
    value = body.get("sampling_params")
    yield from value if isinstance(value, list) else [value] if value is not None else []


def _media_of(body: Mapping[str, Any]) -> Iterator[Any]:
    """Every medium that the body has anywhere that a server looks for one."""
    for name in ("image_data", "video_data", "audio_data"):
        yield from _flat(body.get(name))
    messages = body.get("messages")
    for message in messages if isinstance(messages, list) else []:
        parts = message.get("content") if isinstance(message, Mapping) else None
        for part in parts if isinstance(parts, list) else []:
            for name in ("image_url", "video_url", "audio_url"):
                if isinstance(part, Mapping) and name in part:
                    value = part[name]
                    yield value.get("url") if isinstance(value, Mapping) else value


def _flat(value: object) -> Iterator[Any]:
    if isinstance(value, list):
        for one in value:
            yield from _flat(one)
    else:
        yield value
