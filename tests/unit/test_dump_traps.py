"""What makes a recorded request unfit to be sent again, and what only has to be known."""

from typing import Any

import pytest

from app.domain.dumps.traps import by_arrival, replay_traps
from tests.captured import CASES, needs
from tests.dump_layouts import (
    EmbeddingReqInput,
    ImageData,
    answer,
    read,
    read_value,
    record,
)


def traps_of(*records: Any) -> list[dict[str, bool]]:
    requests, _ = read_value(list(records))
    return [{trap.kind: trap.blocks for trap in own} for own in replay_traps(requests).values()]


@pytest.mark.parametrize(
    ("fields", "kind", "blocks"),
    [
        ({"image_data": [ImageData(url="https://x/y")]}, "media-object", True),
        ({"image_data": ImageData(url="/tmp/a.png")}, "media-file", True),
        ({"video_data": ["file:///v.mp4"]}, "media-file", True),
        ({"audio_data": "a.wav"}, "media-file", True),
        ({"image_data": "http://169.254.169.254/latest"}, "media-address", True),
        ({"image_data": [{"url": "https://x/y.png"}]}, "media-address", True),
        ({"session_params": {"id": "sess-7"}}, "session", True),
        ({"lora_path": "cust-a"}, "adapter", True),
        ({"custom_logit_processor": "gASV"}, "serialized-code", True),
        ({"bootstrap_room": 4242}, "bootstrap-room", True),
        ({"bootstrap_host": "10.0.0.1"}, "bootstrap-room", True),
        ({"text": ["a", "b"]}, "batch", False),
        ({"sampling_params": {"max_new_tokens": 32768}}, "cap-tokens", False),
    ],
    ids=lambda value: value if isinstance(value, str) else "",
)
def test_a_trap_is_told_by_what_the_request_has(
    fields: dict[str, Any], kind: str, *, blocks: bool
) -> None:
    assert traps_of(record(1, **fields), record(2)) == [{kind: blocks}, {}]


def test_an_image_that_goes_along_is_no_trap() -> None:
    assert traps_of(record(1, image_data=["data:image/png;base64,iVBOR"])) == [{}]


def test_requests_are_told_of_each_other() -> None:
    requests, _ = read_value(
        [
            record(1, rid="same", bootstrap_room=7),
            record(2, rid="same", bootstrap_room=7),
            record(5000),
        ]
    )
    traps = replay_traps(requests)

    assert [trap.kind for trap in traps[0]] == ["bootstrap-room", "duplicate-rid"]
    assert "2 requests name it, which can crash both schedulers" in traps[1][0].says
    assert traps[2][0].says.startswith("It came 4998 s after")
    assert [any(trap.blocks for trap in own) for own in traps.values()] == [True, True, False]


def test_arrivals_are_put_in_order_and_the_undated_come_last() -> None:
    undated = (*record(1)[:2], None, None)
    requests, _ = read_value([record(9), undated, record(3)])

    assert [one.index for one in by_arrival(requests)] == [2, 0, 1]


def test_an_embedding_is_not_for_generate() -> None:
    embedding = (EmbeddingReqInput(rid="e", text="t"), answer(), 1.0, 2.0)

    assert traps_of(embedding) == [{"embedding": True}]


def test_the_case_of_a_dump_that_must_not_be_replayed_blindly() -> None:
    content = (needs(CASES / "22-replay-traps") / "request_dump.pkl").read_bytes()
    requests, _ = read(content)
    traps = replay_traps(requests)
    kinds = {index: {trap.kind for trap in own} for index, own in traps.items()}
    as_is = [one for one in requests if not any(trap.blocks for trap in traps[one.index])]

    assert [one.rid for one in as_is] == ["rid-0017", "rid-0020", "rid-0012", "rid-0021"]
    assert as_is[2].index == 10
    assert [kinds[n] for n in range(10)] == [
        {"media-object"}, {"media-file", "duplicate-rid", "idle-gap"}, {"session"},
        {"bootstrap-room"}, {"bootstrap-room"}, {"adapter"}, {"batch"}, {"serialized-code"},
        {"embedding"}, {"cap-tokens"},
    ]  # fmt: skip
    assert next(one.rid for one in by_arrival(requests)) == "rid-0021"
    assert requests[9].state == "unfinished"
