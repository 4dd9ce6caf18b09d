"""Requests as lines of JSON, at each tier, and read again."""

import json
from typing import Any

import pytest

from app.domain.dumps.export import entry, shown
from app.domain.dumps.redacted import Tier
from app.domain.redaction import keyed_fingerprint
from tests.dump_layouts import CREATED, ImageData, answer, read, read_value, record

SECRET = "sk-FAKE1234567890"
PROMPT = f"please use {SECRET} and be nice to Ada\x1b[31m"
KEPT = (
    "rid", "state", "started_at", "finished_at", "prompt_tokens", "completion_tokens",
    "prompt_characters", "features", "finish_reason", "sampling",
)  # fmt: skip
mark = keyed_fingerprint(b"k" * 32)


def exported(tier: Tier, *records: Any) -> list[dict[str, Any]]:
    requests, _ = read_value(list(records))
    return [json.loads(json.dumps(entry(one, tier, mark))) for one in requests]


def test_the_shape_of_a_request_has_nobodys_words_and_no_ids() -> None:
    told = exported(
        "T0",
        record(
            1,
            text=PROMPT,
            input_ids=list(range(1000, 1200)),
            image_data=["https://x/private.png"],
            lora_path="cust-a",
            custom_logit_processor="gASVprivate",
        ),
    )[0]

    everything = json.dumps(told)
    for word in ("Ada", SECRET, "private", "cust-a", "1001, ", "said"):
        assert word not in everything
    assert told["payload"]["prompt_tokens"] == 12
    assert told["payload"]["prompt_characters"] == len(PROMPT)
    assert told["payload"]["sampling_params"] == {"temperature": 0.5, "max_new_tokens": 16}
    assert told["payload"]["image_data_count"] == 1
    assert told["recorded"] == {
        "state": "finished",
        "prompt_tokens": 12,
        "completion_tokens": 3,
        "cached_tokens": 4,
        "ttft_seconds": None,
        "e2e_seconds": 1.5,
        "finish_reason": "stop",
    }


@pytest.mark.parametrize("field", ["input_ids", "text"])
def test_marks_tell_shared_beginnings_and_nothing_without_the_key(field: str) -> None:
    def prompt(*parts: int) -> Any:
        blocks = [n for part in parts for n in [part] * 64]
        return blocks if field == "input_ids" else "".join(f"{n:04}" for n in blocks)

    kept: dict[str, Any] = {"text": None, "input_ids": None}
    records = [
        record(n, **{**kept, field: prompt(*parts)})
        for n, parts in enumerate([(1, 2, 3), (1, 2, 4), (9, 2, 3)])
    ]
    first, second, third = (one["payload"]["prefix"] for one in exported("T0", *records))

    assert len(first) == 3
    assert first[:2] == second[:2]
    assert first[2] != second[2]
    assert set(first).isdisjoint(third)
    requests, _ = read_value(records)
    other = entry(requests[0], "T0", keyed_fingerprint(b"o" * 32))
    assert set(other["payload"]["prefix"]).isdisjoint(first)


def test_the_text_without_secrets_keeps_the_rest() -> None:
    told = exported("T1", record(1, text=PROMPT))[0]

    assert "Ada" in told["payload"]["text"]
    assert SECRET not in json.dumps(told)
    assert told["recorded"]["output"] == {"text": "said", "output_ids": [5, 6, 7]}


def test_the_raw_payload_is_what_the_client_asked_for() -> None:
    told = exported("T2", record(1, text=PROMPT, input_ids=(1, 2), priority=None))[0]

    assert told["payload"] == {
        "text": PROMPT,
        "input_ids": [1, 2],
        "sampling_params": {"temperature": 0.5, "max_new_tokens": 16, "stop": ["private"]},
        "stream": False,
    }


def test_objects_that_only_pickle_knows_are_named_and_not_rebuilt() -> None:
    loop: list[Any] = []
    loop.append(loop)
    deep: list[Any] = []
    for _ in range(100):
        deep = [deep]
    fields = {"image_data": ImageData(url="https://x"), "a": loop, "b": deep, "c": b"\x00" * 9}
    payload = exported("T2", record(1, **fields))[0]["payload"]

    assert payload["image_data"] == {
        "class": "sglang.srt.utils.common.ImageData",
        "url": "https://x",
    }
    assert "too deep" in json.dumps(payload["a"])
    assert "too deep" in json.dumps(payload["b"])
    assert payload["c"] == "(9 bytes)"


def test_a_preview_is_short_and_safe_to_print() -> None:
    requests, _ = read_value([record(1, text=PROMPT + "x" * 1000)])

    assert "preview" not in shown(requests[0], "T0", mark)
    preview = shown(requests[0], "T1", mark)["preview"]
    assert "Ada\\x1b[31m" in preview
    assert SECRET not in preview
    assert len(preview) == 200


@pytest.mark.parametrize("tier", ["T0", "T1", "T2"])
def test_what_was_exported_reads_as_the_same_requests(tier: Tier) -> None:
    before, _ = read_value(
        [
            record(1, image_data=["https://x/y.png"]),
            record(2, {}, text="long prompt " * 50, stream=True),
            record(3, answer(finish_reason={"type": "abort"})),
        ]
    )
    lines = b"\n".join(json.dumps(entry(one, tier, mark)).encode() for one in before)
    after, dump = read(lines)

    assert dump.kind == "requests"
    for old, new in zip(before, after, strict=True):
        for name in KEPT:
            assert getattr(old, name) == getattr(new, name), name


@pytest.mark.parametrize("tier", ["T0", "T1", "T2"])
def test_how_long_an_unfinished_request_had_run_is_kept(tier: Tier) -> None:
    [before], _ = read_value([record(1, {})])
    [after], _ = read(json.dumps(entry(before, tier, mark)).encode())

    assert before.seen_at is not None
    assert (after.state, after.finished_at) == ("unfinished", None)
    assert after.seen_at == pytest.approx(before.seen_at)


def test_times_are_said_in_utc() -> None:
    told = exported("T0", (*record(1)[:2], CREATED + 0.25, CREATED + 1))[0]

    assert told["started_at"] == "2025-11-30T10:53:20.250000Z"


def test_numbers_too_wide_for_json_are_named_and_the_others_kept() -> None:
    payload = exported("T2", record(1, input_ids=[1, 2**70, -5]))[0]["payload"]

    assert payload["input_ids"] == [1, "(a number)", -5]
