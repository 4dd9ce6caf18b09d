"""A plan says in words what is stripped, what is left out and why, and makes bodies when due."""

from collections.abc import Iterator
from random import Random
from typing import Any

import orjson
import pytest

from app.domain.dumps.export import entry
from app.domain.dumps.recorded import RecordedRequest
from app.domain.replay.options import Options, TargetFacts
from app.domain.replay.plan import Plan, as_json, plan
from app.domain.replay.planned import Sending
from app.domain.replay.reading import recorded_of, request_of_line
from app.domain.replay.selection import read_selection
from app.errors import Malformed
from tests.captured import CASES, SHARED, needs
from tests.dump_layouts import read
from tests.replays import recorded_request

USUAL = Options()
INFINITE = float("inf")
TARGET = TargetFacts(version="0.5.23", frontend="python")


@pytest.fixture(scope="module")
def case() -> list[RecordedRequest]:
    content = (needs(CASES / "22-replay-traps") / "request_dump.pkl").read_bytes()
    return read(content)[0]


def says(made: Plan, kind: str) -> list[str]:
    """What the notes of that kind say."""
    return [note.says for note in made.notes if note.kind == kind]


def bodies(made: Plan, requests: list[RecordedRequest]) -> dict[int, dict[str, Any]]:
    """What is sent of each request."""
    by_index = {one.index: one for one in requests}
    return {one.index: orjson.loads(one.body) for one in made.sendings(by_index.__getitem__)}


def test_the_case_is_sent_in_the_order_of_arrival(case: list[RecordedRequest]) -> None:
    made = plan(case, USUAL, TARGET)
    order = [slot.index for slot in made.schedule.slots]

    assert order == [11, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 0]
    assert made.schedule.span_seconds == pytest.approx(5009.0)
    assert says(made, "order") == [
        "The file is not in the order of arrival: the requests go out as they arrived."
    ]


@pytest.mark.parametrize(
    ("kind", "told"),
    [
        ("media-object", ["rid-0011: ", "a plain URL takes its place"]),
        ("media-file", ["rid-0012: ", "a file of the old server", "the target will not have"]),
        ("session", ["rid-0013: needs session sess-7 opened first"]),
        (
            "bootstrap-room",
            ["rid-0014, rid-0015: ", "bootstrap_room 4242", "can crash both schedulers",
             "never sent to prefill or decode engines as it is"],
        ),
        ("adapter", ["rid-0016: adapter cust-a must be loaded"]),
        ("batch", ["rid-0017: a batch"]),
        ("serialized-code", ["rid-0018: carries serialized code", "taken out"]),
        ("embedding", ["rid-0019: ", "/encode and not to /generate"]),
        ("cap-tokens", ["rid-0020: ", "up to 32768 tokens, capped at 8192"]),
        ("duplicate-rid", ["rid-0012 is there twice"]),
        ("idle-gap", ["a silence of 5,001 s"]),
    ],
)  # fmt: skip
def test_the_case_says_what_must_be_said(
    case: list[RecordedRequest], kind: str, told: list[str]
) -> None:
    [sentence] = says(plan(case, USUAL, TARGET), kind)

    assert [part for part in told if part not in sentence] == []


def test_the_case_sends_nothing_of_the_old_server(case: list[RecordedRequest]) -> None:
    made = plan(case, Options(name="replay-58"), TARGET)
    sent = bodies(made, case)
    paths = {one.index: one.path for one in made.sendings(case.__getitem__)}

    assert {path for index, path in paths.items() if index != 8} == {"/generate"}
    assert paths[8] == "/encode"
    assert sent[0]["image_data"][0].startswith("data:image/png")
    assert "custom_logit_processor" not in sent[7]
    assert "session_params" not in sent[2]
    assert not {"bootstrap_room", "bootstrap_host"} & {*sent[3], *sent[4]}
    assert sent[5]["lora_path"] == "cust-a"
    assert sent[9]["sampling_params"]["max_new_tokens"] == 8192
    assert sent[9]["rid"] == "replay-58-0000009"
    assert "rid" not in sent[6]
    assert made.stripped["custom_logit_processor"] == 1
    assert made.stripped["bootstrap_room"] == 2


def test_the_silence_of_the_case_is_cut_when_asked(case: list[RecordedRequest]) -> None:
    made = plan(case, Options(cut_gaps_to_seconds=10.0), TARGET)

    assert made.schedule.span_seconds == pytest.approx(18.0)
    assert says(made, "idle-gap") == [
        "The recording has a silence of 5,001 s, which is cut to 10 s."
    ]


@pytest.mark.parametrize(
    ("payload", "options", "greedy"),
    [
        ({}, Options(), True),
        ({"rid": "a", "bootstrap_room": 7, "user": "u", "lora_id": "x"}, Options(), True),
        ({"text": "hi"}, Options(), True),
        ({}, Options(most_new_tokens=4, ignore_eos=True), True),
        ({"image_data": "http://a/b.png"}, Options(), None),
        ({"session_params": {"id": "s"}}, Options(), None),
        ({"custom_logit_processor": "code"}, Options(), None),
        ({"cache_salt": "new"}, Options(), None),
        ({"sampling_params": {"temperature": 0, "custom_params": {"a": 1}}}, Options(), None),
        ({"sampling_params": {"temperature": 0, "logit_bias": {"1": INFINITE}}}, Options(), None),
        ({"sampling_params": {"temperature": 1.0}}, Options(), False),
    ],
    ids=[
        "as it is", "names and rooms", "prompt twice", "another length", "placeholder", "session",
        "code", "field of a newer release", "custom parameters", "not sayable", "by chance",
    ],
)  # fmt: skip
def test_the_same_answer_is_expected_only_where_the_same_is_asked(
    payload: dict[str, Any], options: Options, greedy: bool | None
) -> None:
    usual = {"input_ids": [1, 2, 3], "sampling_params": {"temperature": 0, "max_new_tokens": 9}}
    request = recorded_request(payload={**usual, **payload})
    [sending] = plan([request], options, TargetFacts(version="0.5.5")).sendings(lambda _: request)

    assert sending.recorded.greedy is greedy


def test_a_rust_target_gets_neither_embeddings_nor_adapters(case: list[RecordedRequest]) -> None:
    made = plan(case, USUAL, TargetFacts(frontend="rust"))

    assert [(one.rid, one.why) for one in made.left_out] == [
        ("rid-0016", "the Rust frontend takes no adapters"),
        ("rid-0019", "the Rust frontend has no /encode"),
    ]
    assert says(made, "adapter") == []


def test_a_dump_and_its_export_are_replayed_alike(case: list[RecordedRequest]) -> None:
    lines = [orjson.dumps(entry(one, "T2", str)) for one in case]
    exported = [request_of_line(line, 0) for line in lines]

    def sendings(requests: list[RecordedRequest]) -> Iterator[Sending]:
        return plan(requests, USUAL, TARGET).sendings(requests.__getitem__)

    pairs = list(zip(sendings(case), sendings(exported), strict=True))
    assert [one.index for one, _ in pairs] == [other.index for _, other in pairs]
    for dumped, read_again in pairs:
        assert orjson.loads(dumped.body) == orjson.loads(read_again.body)
        assert dumped.due_seconds == pytest.approx(read_again.due_seconds)
        assert dumped.recorded.output_ids == read_again.recorded.output_ids
        assert dumped.recorded.e2e_seconds == pytest.approx(read_again.recorded.e2e_seconds)


@pytest.mark.parametrize(
    "name", ["crash_sigkill_tp1_rank.pkl", "crash_sigterm_unhealthy_sigstop.pkl"]
)
def test_every_request_of_a_real_crash_dump_can_be_sent(name: str) -> None:
    content = (needs(SHARED / "captures" / "dumps" / "real") / name).read_bytes()
    requests, _ = read(content)
    made = plan(requests, USUAL, TARGET)

    assert made.left_out == ()
    assert len(bodies(made, requests)) == len(requests)
    assert made.recorded_in_flight is not None
    assert made.recorded_in_flight > 1


def test_the_order_of_the_file_changes_nothing() -> None:
    requests = [recorded_request(index, at=float(index % 7)) for index in range(40)]
    shuffled = list(requests)
    Random(1).shuffle(shuffled)

    first, second = plan(requests, USUAL, TARGET), plan(shuffled, USUAL, TARGET)
    assert first.schedule == second.schedule
    assert first.stripped == second.stripped


def test_only_what_is_selected_is_sent_and_told() -> None:
    payloads = [{"text": "a", "lora_path": f"adapter-{index}"} for index in range(5)]
    requests = [recorded_request(index, payload) for index, payload in enumerate(payloads)]
    made = plan(requests, USUAL, TARGET, selection=read_selection("suspect,0"), suspects={3})

    assert {slot.index for slot in made.schedule.slots} == {0, 3}
    assert [note.indexes for note in made.notes] == [(0,), (3,)]
    assert as_json(made)["not_chosen"] == 3


def test_an_interrupted_replay_goes_on_at_once_with_the_rest() -> None:
    requests = [recorded_request(index, at=10.0 * index) for index in range(5)]
    made = plan(requests, USUAL, TARGET)
    rest = list(made.sendings(requests.__getitem__, done={0, 1, 3}))

    assert [(one.index, one.due_seconds) for one in rest] == [(2, 0.0), (4, 20.0)]


def test_a_body_is_made_only_when_it_is_due() -> None:
    requests = {index: recorded_request(index, at=float(index)) for index in range(100)}
    asked: list[int] = []

    def request_at(index: int) -> RecordedRequest:
        asked.append(index)
        return requests[index]

    sendings = plan(requests.values(), USUAL, TARGET).sendings(request_at)
    assert asked == []
    next(sendings)
    assert asked == [0]


@pytest.mark.parametrize(
    ("payload", "why"),
    [
        ({"input_ids": [1, 1 << 70]}, "JSON cannot say it"),
        ({"text": ""}, "its prompt is not in the file"),
    ],
    ids=["beyond 64 bits", "empty"],
)
def test_what_cannot_be_said_in_json_is_left_out(payload: dict[str, Any], why: str) -> None:
    made = plan([recorded_request(0, payload)], USUAL, TARGET)

    assert made.schedule.slots == ()
    assert why in made.left_out[0].why


def test_two_requests_with_one_index_are_not_mistaken_for_each_other() -> None:
    made = plan([recorded_request(3), recorded_request(3)], USUAL, TARGET)

    assert len(made.schedule.slots) == 1
    assert made.left_out[0].why == "another request of the file has the same index"


def test_a_session_names_its_requests_and_many_are_counted() -> None:
    payload = {"text": "a", "session_params": {"id": "s"}}
    made = plan([recorded_request(index, payload) for index in range(9)], USUAL, TARGET)

    assert says(made, "session")[0].startswith("request 0, request 1, request 2 and 6 more: needs")


def test_of_very_many_sessions_some_are_named_and_the_rest_counted() -> None:
    requests = [
        recorded_request(index, {"text": "a", "session_params": {"id": f"s{index}"}})
        for index in range(5000)
    ]
    told = says(plan(requests, USUAL, TARGET), "session")

    assert len(told) == 11
    assert told[-1] == "4,990 more requests: the same, each with its own name."


def test_times_that_the_server_told_are_kept_and_others_are_worked_out() -> None:
    meta = {"finish_reason": {"type": "stop"}, "first_token_latency": 0.25, "e2e_latency": 2.0}
    told = recorded_of(recorded_request(output={"meta_info": meta}, took=9.0))
    worked_out = recorded_of(recorded_request(took=9.0))
    unfinished = recorded_of(recorded_request(output={}, took=9.0))

    assert (told.ttft_seconds, told.e2e_seconds) == (0.25, 2.0)
    assert (worked_out.ttft_seconds, worked_out.e2e_seconds) == (None, 9.0)
    assert (unfinished.state, unfinished.e2e_seconds) == ("unfinished", None)


def test_a_line_that_is_no_request_is_refused() -> None:
    with pytest.raises(Malformed):
        request_of_line(b"{}", 0)


def test_a_bare_payload_is_a_request_of_its_own() -> None:
    request = request_of_line(b'{"text": "a"}', 7)

    assert (request.index, request.endpoint, request.state) == (7, "/generate", None)


def test_a_sample_keeps_a_conversation_whole() -> None:
    requests = [
        recorded_request(index, payload={"text": "x", "conversation_id": f"c{index % 8}"})
        for index in range(40)
    ]

    made = plan(requests, Options(sample=0.5), TargetFacts())

    sent = [slot.index % 8 for slot in made.schedule.slots]
    assert 0 < len(set(sent)) < 8
    assert {sent.count(one) for one in sent} == {5}
