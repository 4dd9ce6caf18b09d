"""The figures of a dump: exact, and unknown where nothing is known."""

import pytest

from app.domain.dumps.quantiles import Sample
from app.domain.dumps.recorded import row
from app.domain.dumps.summary import Tally, shown_indexes, unreadable
from tests.dump_layouts import answer, read_value, record


def document(*records: object) -> dict[str, object]:
    requests, dump = read_value({"server_args": None, "requests": list(records)})
    tally = Tally()
    for request in requests:
        tally.see(row(request))
    return tally.document(dump)


@pytest.mark.parametrize(
    ("numbers", "p50", "p99", "most"),
    [
        ([], None, None, None),
        ([7], 7, 7, 7),
        ([1, 2], 1, 2, 2),
        (list(range(1, 101)), 50, 99, 100),
        (list(range(1000, 0, -1)), 500, 990, 1000),
    ],
    ids=["none", "one", "two", "hundred", "thousand-backwards"],
)
def test_quantiles_are_exact(
    numbers: list[int], p50: int | None, p99: int | None, most: int | None
) -> None:
    sample = Sample()
    for number in numbers:
        sample.add(number)
    sample.add(None)
    figures = sample.figures()

    assert (figures["n"], figures["p50"], figures["p99"], figures["max"]) == (
        len(numbers), p50, p99, most,
    )  # fmt: skip


def test_counts_span_and_rate_are_those_of_the_requests() -> None:
    told = document(
        record(10),
        record(0, answer(finish_reason={"type": "abort"})),
        record(4, {}, stream=True, image_data=["x"]),
    )

    assert (told["requests_total"], told["finished"], told["unfinished"], told["aborted"]) == (
        3, 2, 1, 1,
    )  # fmt: skip
    assert (told["span_seconds"], told["arrival_rate_per_second"]) == (10.0, 0.2)
    assert told["streaming"] == 1
    assert told["features"] == {
        "multimodal": 1, "lora": 0, "sessions": 0, "structured": 0, "logprobs": 0,
    }  # fmt: skip
    assert told["prompt_tokens"] == {
        "n": 2, "p50": 12, "p90": 12, "p99": 12, "max": 12, "total": 24,
    }  # fmt: skip


def test_what_is_not_known_is_null_and_not_zero() -> None:
    told = document()

    assert told["span_seconds"] is None
    assert told["arrival_rate_per_second"] is None
    assert told["streaming"] is None
    assert told["prompt_tokens"] == {
        "n": 0, "p50": None, "p90": None, "p99": None, "max": None, "total": None,
    }  # fmt: skip


def test_one_arrival_has_no_rate() -> None:
    told = document(record(1))

    assert (told["span_seconds"], told["arrival_rate_per_second"]) == (0.0, None)


def test_what_was_wrong_with_single_requests_is_told_of_the_file() -> None:
    told = document(record(1), record(2, stream="yes"))

    assert "Request 1: stream is no switch (a text)." in str(told["problems"])


def test_a_summary_lists_the_suspects_and_fills_up_from_the_first() -> None:
    found = [{"index": 8, "rid": None, "why": "odd"}, {"index": 2, "rid": None, "why": "odd"}]

    assert shown_indexes(found, [0, 1, 2, 3], 4) == [0, 1, 2, 8]  # type: ignore[arg-type]
    assert shown_indexes(found, [0, 1], 0) == []  # type: ignore[arg-type]


def test_the_document_of_an_unreadable_file_has_every_key() -> None:
    assert unreadable("why").keys() >= document(record(1)).keys()
