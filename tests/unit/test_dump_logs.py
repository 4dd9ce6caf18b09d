"""Requests out of SGLang's request log: text as Python prints it, and JSON."""

import json
from typing import Any

import pytest

from app.domain.dumps.python_text import CUT, Unreadable, read_call, read_value
from tests.captured import SHARED, needs
from tests.dump_layouts import read

RECEIVED = (
    "[2026-01-14 09:00:00] Receive: obj=GenerateReqInput(rid='r1', text='it\\'s', stream=True, "
    "sampling_params={'max_new_tokens': 8, 'stop': None}, lora_path='adapter')\n"
)
FINISHED = (
    "[2026-01-14 09:00:02] Finish: obj=GenerateReqInput(rid='r1', stream=True), "
    "out={'text': 'x', 'meta_info': {'finish_reason': {'type': 'length', 'length': 8}, "
    "'prompt_tokens': 5, 'completion_tokens': 8, 'e2e_latency': 1.25, "
    "'request_received_ts': 1768381200.5, 'request_finished_ts': 1768381201.75}}\n"
)


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ("'a'", "a"),
        ('"it\'s"', "it's"),
        (r"'\x1b\n\u00e9\U0001f680\\'", "\x1b\né🚀\\"),
        ("-1.5e3", -1500.0),
        ("None", None),
        ("[1, (2,), {'a': {'b': True}}]", [1, [2], {"a": {"b": True}}]),
        ("'head' ... 'tail'", CUT),
        ("[1, 2] ... [3]", CUT),
        ("ImageData(url='u', detail=None)", {"url": "u", "detail": None}),
        ("torch.float32", CUT),
        ("{}", {}),
    ],
    ids=lambda value: str(value)[:20],
)
def test_values_are_read_as_python_prints_them(text: str, value: Any) -> None:
    assert read_value(text, 0)[0] == value


@pytest.mark.parametrize(
    "text", ["[" * 1000, "{'a': ", "'open", "", "A(b='c'", "<object>"], ids=str
)
def test_what_is_no_value_is_refused(text: str) -> None:
    with pytest.raises(Unreadable):
        read_call(text, 0) if text.startswith("A") else read_value(text, 0)


def test_receive_and_finish_of_one_request_are_one_request() -> None:
    requests, dump = read((RECEIVED + "an other line\n" + FINISHED).encode())
    request = requests[0]

    assert (len(requests), dump.kind, request.state) == (1, "requests", "finished")
    assert (request.started_at, request.finished_at) == (1768381200.5, 1768381201.75)
    assert (request.prompt_tokens, request.prompt_characters, request.stream) == (5, 4, True)
    assert request.features == ("lora",)


def test_a_request_without_a_finish_line_is_unfinished_and_its_time_of_no_zone() -> None:
    requests, dump = read(RECEIVED.encode())

    assert requests[0].state == "unfinished"
    assert requests[0].started_at == 1768381200.0
    assert "no zone" in dump.problems[0]
    assert "1 request without a Finish line here" in dump.problems[1]


def test_a_text_that_the_server_cut_short_is_not_taken_for_the_whole() -> None:
    line = "[2026-01-14 09:00:00] Receive: obj=GenerateReqInput(rid='r', text='a' ... 'b')\n"
    requests, dump = read(line.encode())

    assert requests[0].prompt_characters is None
    assert "cut these short in its log: text" in dump.problems[1]


def test_a_batch_is_one_request_for_each_of_its_identifiers() -> None:
    line = "x Receive: obj=GenerateReqInput(rid=['a', 'b'], text=['1', '2'], stream=False)\n"
    requests, _ = read(line.encode())

    assert [(one.rid, one.features) for one in requests] == [("a", ("batch",)), ("b", ("batch",))]


def test_a_line_that_breaks_off_is_left_out_with_its_number() -> None:
    requests, dump = read((RECEIVED + RECEIVED.replace("r1", "r2")[:120]).encode())

    assert [one.rid for one in requests] == ["r1"]
    assert dump.problems[0].startswith("Line 2 was left out")


def test_the_json_log_is_read_with_and_without_the_stamp_before_it() -> None:
    obj = {"text": "hello", "stream": False, "sampling_params": {"temperature": 1.0}}
    out = {"meta_info": {"finish_reason": {"type": "abort"}, "prompt_tokens": 2}}
    events = [
        {"timestamp": "2026-01-14T09:00:00", "event": "request.received.openai", "obj": {}},
        {"timestamp": "2026-01-14T09:00:00", "event": "request.received", "rid": "j", "obj": obj},
        {
            "timestamp": "2026-01-14T09:00:02",
            "event": "request.finished",
            "rid": "j",
            "obj": obj,
            "out": out,
        },
    ]
    for stamp in ("", "[2026-01-14 09:00:00] "):
        content = "".join(f"{stamp}{json.dumps(event)}\n" for event in events)
        requests, dump = read(content.encode())

        assert [(one.rid, one.state, one.prompt_characters) for one in requests] == [
            ("j", "aborted", 5)
        ]
        assert dump.format == "request log of SGLang, JSON"
        assert requests[0].started_at == 1768381200.0


@pytest.mark.parametrize(
    ("name", "finished", "aborted", "unfinished"),
    [
        ("server_dp2_sigquit.log", 95, 0, 2),
        ("server_tp2_keys_sigkill_tp1.log", 70, 0, 58),
        ("server_tp1_run1_sigstop_sigterm.log", 98, 3, 32),
    ],
)
def test_the_log_of_a_real_server_has_its_requests(
    name: str, finished: int, aborted: int, unfinished: int
) -> None:
    content = (needs(SHARED / "captures" / "logs") / name).read_bytes()
    requests, _ = read(content, name)
    states = [one.state for one in requests]

    assert [states.count(one) for one in ("finished", "aborted", "unfinished")] == [
        finished, aborted, unfinished,
    ]  # fmt: skip
    assert all(one.started_at for one in requests)
