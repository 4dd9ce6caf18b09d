"""What makes a recorded request unfit to be sent again, and what only has to be known."""

from typing import Any

import pytest

from app.domain.dumps.traps import traps_of
from tests.captured import CASES, needs
from tests.dump_layouts import (
    EmbeddingReqInput,
    ImageData,
    answer,
    read,
    read_value,
    record,
)
from tests.replays import recorded_request


def traps(*records: Any) -> list[list[str]]:
    requests, _ = read_value(list(records))
    return [list(traps_of(request)) for request in requests]


@pytest.mark.parametrize(
    ("fields", "kind"),
    [
        ({"image_data": [ImageData(url="https://x/y")]}, "media-object"),
        ({"image_data": ImageData(url="/tmp/a.png")}, "media-file"),
        ({"video_data": ["file:///v.mp4"]}, "media-file"),
        ({"audio_data": "a.wav"}, "media-file"),
        ({"image_data": "http://169.254.169.254/latest"}, "media-address"),
        ({"image_data": [{"url": "https://x/y.png"}]}, "media-address"),
        ({"session_params": {"id": "sess-7"}}, "session"),
        ({"session_id": "sess-7"}, "session"),
        ({"lora_path": "cust-a"}, "adapter"),
        ({"custom_logit_processor": "gASV"}, "serialized-code"),
        ({"bootstrap_room": 4242}, "bootstrap-room"),
        ({"bootstrap_room": 0}, "bootstrap-room"),
        ({"bootstrap_host": "10.0.0.1"}, "bootstrap-room"),
        ({"text": ["a", "b"]}, "batch"),
        ({"sampling_params": {"max_new_tokens": 32768}}, "cap-tokens"),
    ],
    ids=lambda value: value if isinstance(value, str) else "",
)
def test_a_trap_is_told_by_what_the_request_has(fields: dict[str, Any], kind: str) -> None:
    assert traps(record(1, **fields), record(2)) == [[kind], []]


def test_an_image_that_goes_along_is_no_trap() -> None:
    assert traps(record(1, image_data=["data:image/png;base64,iVBOR"])) == [[]]


@pytest.mark.parametrize(
    ("part", "kinds"),
    [
        ({"type": "image_url", "image_url": {"url": "http://10.0.0.1/a.png"}}, ["media-address"]),
        ({"type": "image_url", "image_url": "HTTPS://h/a.png"}, ["media-address"]),
        ({"type": "video_url", "video_url": {"url": "https://h/v.mp4"}}, ["media-address"]),
        ({"type": "input_audio", "input_audio": {"data": "http://h/a", "format": "wav"}},
         ["media-address"]),
        ({"type": "input_image", "input_image": "file:///etc/passwd"}, ["media-file"]),
        ({"type": "audio", "audio": "/srv/a.wav"}, ["media-file"]),
        ({"type": "input_audio", "input_audio": {"data": "//uQxAAAAA==", "format": "mp3"}}, []),
        ({"type": "image_url", "image_url": {"url": "data:image/png;base64,iVBOR"}}, []),
        ({"type": "image_url", "image_url": None}, []),
        ({"type": "text", "text": "http://10.0.0.1/a.png"}, []),
        ("http://10.0.0.1/a.png", []),
    ],
    ids=["image", "bare address", "video", "sound", "file", "path", "mp3", "data", "null", "text",
         "no part"],
)  # fmt: skip
def test_media_in_the_messages_of_a_chat_are_looked_at_too(part: Any, kinds: list[str]) -> None:
    asked = {"role": "user", "content": [{"type": "text", "text": "what is it?"}, part, part]}
    payload = {"messages": [{"role": "system", "content": "http://h/a.png"}, "odd", asked]}
    chat = recorded_request(payload=payload, endpoint="/v1/chat/completions")

    assert list(traps_of(chat)) == kinds


def test_an_embedding_is_not_for_generate() -> None:
    embedding = (EmbeddingReqInput(rid="e", text="t"), answer(), 1.0, 2.0)

    assert traps(embedding) == [["embedding"]]


def test_the_case_of_a_dump_that_must_not_be_replayed_blindly() -> None:
    content = (needs(CASES / "22-replay-traps") / "request_dump.pkl").read_bytes()
    requests, _ = read(content)
    kinds = [list(traps_of(request)) for request in requests]

    assert kinds == [
        ["media-object"], ["media-file"], ["session"], ["bootstrap-room"], ["bootstrap-room"],
        ["adapter"], ["batch"], ["serialized-code"], ["embedding"], ["cap-tokens"], [], [],
    ]  # fmt: skip
    assert requests[9].state == "unfinished"
