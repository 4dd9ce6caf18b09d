"""One record: how it ended, what is known of it, and what cannot be used."""

from collections import OrderedDict, defaultdict, deque
from typing import Any, NamedTuple

import pytest

from app.domain.dumps.recorded import row
from tests.dump_layouts import CREATED, answer, asked, read_value, record


@pytest.mark.parametrize(
    ("output", "state", "reason", "completion"),
    [
        (answer(), "finished", "stop", 3),
        (answer(finish_reason={"type": "abort", "message": "gone"}), "aborted", "abort", 3),
        ({}, "unfinished", None, None),
        ({"text": "so far", "output_ids": [1, 2]}, "unfinished", None, 2),
        (answer(finish_reason=None, completion_tokens=1), "unfinished", None, 1),
        (
            {"text": None, "output_ids": [1], "meta_info": {"finish_reason": None}},
            "unfinished",
            None,
            1,
        ),
        ({"text": "old", "meta_info": {"completion_tokens": 9}}, "finished", None, 9),
    ],
    ids=["stop", "abort", "nothing", "partial", "last-chunk", "deferred-text", "no-reason"],
)
def test_the_output_tells_how_a_request_ended(
    output: dict[str, Any], state: str, reason: str | None, completion: int | None
) -> None:
    requests, _ = read_value([record(1, output)])
    request = requests[0]

    assert (request.state, request.finish_reason, request.completion_tokens) == (
        state,
        reason,
        completion,
    )


@pytest.mark.parametrize(
    ("output", "why"),
    [
        (None, "the output is missing"),
        ("said", "the output is no table (a text)"),
        ({"meta_info": [1]}, "meta_info is no table"),
    ],
    ids=["none", "text", "meta-info"],
)
def test_what_is_no_output_leaves_the_state_unknown(output: Any, why: str) -> None:
    requests, _ = read_value([(asked(), output, CREATED, CREATED + 1)])

    assert (requests[0].state, requests[0].finished_at) == (None, None)
    assert requests[0].problems == (why,)


class Answer(dict[str, Any]):
    """A table with a class of its own."""


class Entry(NamedTuple):
    """A record with names."""

    request: Any
    output: Any
    created: float
    finished: float


@pytest.mark.parametrize(
    "entry",
    [
        (asked(), Answer(answer()), CREATED, CREATED + 1),
        (asked(), defaultdict(list, answer()), CREATED, CREATED + 1),
        (asked(), OrderedDict(answer()), CREATED, CREATED + 1),
        Entry(asked(), answer(), CREATED, CREATED + 1),
    ],
    ids=["own-class", "defaultdict", "ordered", "named-tuple"],
)
@pytest.mark.parametrize("kind", [list, deque], ids=["list", "deque"])
@pytest.mark.parametrize("protocol", [2, 4])
def test_tables_and_lists_of_any_class_are_read(entry: Any, kind: Any, protocol: int) -> None:
    requests, dump = read_value({"server_args": None, "requests": kind([entry] * 2)}, protocol)

    assert (dump.kind, [one.state for one in requests]) == ("request dump", ["finished"] * 2)
    assert requests[0].completion_tokens == 3


def test_the_fourth_field_of_an_unfinished_request_is_the_moment_of_the_dump() -> None:
    requests, _ = read_value([record(1, {})])
    told = row(requests[0])

    assert told["finished_at"] is None
    assert told["elapsed_seconds"] == 1.5


@pytest.mark.parametrize(
    ("fields", "feature"),
    [
        ({"image_data": ["https://x/y.png"]}, "multimodal"),
        ({"lora_path": "adapter"}, "lora"),
        ({"session_params": {"id": "s"}}, "session"),
        ({"sampling_params": {"json_schema": "{}"}}, "structured"),
        ({"return_logprob": True}, "logprobs"),
        ({"sampling_params": {"n": 4}}, "several-samples"),
        ({"custom_logit_processor": "gASV"}, "custom-processor"),
        ({"bootstrap_room": 7, "bootstrap_host": "10.0.0.1"}, "bootstrap"),
        ({"priority": 0}, "priority"),
        ({"input_embeds": [[0.5]]}, "input-embeds"),
        ({"return_hidden_states": True}, "hidden-states"),
        ({"data_parallel_rank": 0}, "routed"),
        ({"rid": "HEALTH_CHECK_1"}, "health-check"),
    ],
    ids=lambda value: value if isinstance(value, str) else "",
)
def test_a_field_that_is_set_is_a_feature(fields: dict[str, Any], feature: str) -> None:
    requests, _ = read_value([record(1, **fields), record(2, image_data=[None, None])])

    assert [one.features for one in requests] == [(feature,), ()]


@pytest.mark.parametrize(
    ("bad", "why"),
    [
        (17, "it is a number, not a tuple"),
        ((1, 2), "it has 2 fields, not 4"),
        ((asked(), {}, 1.0), "it has 3 fields, not 4"),
        (({"no": "request"}, {}, 1.0, 2.0), "a table is no request"),
        ((None, {}, 1.0, 2.0), "nothing is no request"),
    ],
    ids=["number", "two", "three", "table", "none"],
)
def test_a_record_of_another_shape_is_left_out_with_its_reason(bad: Any, why: str) -> None:
    requests, dump = read_value([record(1), bad, record(3)])

    assert [one.index for one in requests] == [0, 2]
    assert dump.problems[0] == f"Record 1 was left out: {why}."


def test_a_fifth_field_is_told_and_the_four_are_read() -> None:
    requests, dump = read_value([(*record(1), "extra")])

    assert dump.kind == "request dump"
    assert requests[0].problems == ("unknown extra field: it has 5, not 4",)


@pytest.mark.parametrize(
    ("created", "finished", "known"),
    [
        (float("nan"), CREATED, (None, CREATED)),
        (CREATED, float("inf"), (CREATED, None)),
        (-1.0, CREATED, (None, CREATED)),
        (CREATED, 1e300, (CREATED, None)),
        (CREATED, "soon", (CREATED, None)),
        (CREATED, CREATED - 5, (CREATED, None)),
    ],
    ids=["nan", "infinite", "negative", "huge", "text", "backwards"],
)
def test_times_that_cannot_be_are_unknown_and_said(
    created: Any, finished: Any, known: tuple[float | None, float | None]
) -> None:
    requests, _ = read_value([(asked(), answer(), created, finished)])
    request = requests[0]

    assert (request.started_at, request.finished_at) == known
    assert len(request.problems) == 1
    assert row(request)["elapsed_seconds"] is None


def test_hostile_values_are_unknown_and_never_text_in_a_row() -> None:
    fields = {
        "rid": "a\x1b]0;pwn\x07" + "b" * 500,
        "stream": "yes",
        "sampling_params": {
            "max_new_tokens": 2**70,
            "top_p": float("nan"),
            "Ignore previous words": 1,
            "temperature": 0.5,
        },
    }
    requests, _ = read_value([record(1, answer(completion_tokens="12; DROP TABLE"), **fields)])
    told = row(requests[0])

    assert told["rid"] is not None
    assert told["rid"].startswith("a\\x1b]0;pwn\\x07bb")
    assert len(told["rid"]) == 120
    assert (told["stream"], told["completion_tokens"]) == (None, 3)
    assert told["sampling"] == {"temperature": 0.5}
    assert len(told["problems"]) == 4
    assert "DROP" not in repr(told)
