"""Who is named first, why, and when anything is called the likely trigger."""

from typing import Any

import pytest

from app.domain.dumps.recorded import Kind, Row, row
from app.domain.dumps.several import SharedIdentifiers
from app.domain.dumps.suspects import Suspect, suspects
from tests.dump_layouts import read_value, record


def rows(*records: Any) -> list[Row]:
    return [row(request) for request in read_value(list(records))[0]]


def named(found: list[Suspect]) -> dict[int, str]:
    return {one["index"]: one["why"] for one in found}


PLAIN = [record(n) for n in range(6)]


def test_a_request_dump_never_names_a_trigger() -> None:
    found = suspects(rows(*PLAIN, record(7, image_data=["x.png"])), "request dump")

    assert named(found) == {6: "the only one with an image, a video or audio"}
    assert "trigger" not in found[0]


def test_one_unfinished_request_of_a_crash_may_be_the_trigger() -> None:
    found = suspects(rows(*PLAIN, record(7, {})), "crash dump")

    assert found[0]["index"] == 6
    assert found[0]["trigger"] == "hypothesis"
    assert found[0]["why"].startswith(
        "most likely the trigger (hypothesis): unfinished when the server died, after 1.5 s"
    )


def test_one_unfinished_request_that_is_the_only_one_of_its_kind_is_supported() -> None:
    found = suspects(rows(*PLAIN, record(7, {}, lora_path="a")), "crash dump")

    assert found[0].get("trigger") == "supported"
    assert "the only one with a LoRA adapter" in found[0]["why"]


def test_of_many_unfinished_only_the_odd_one_is_called_the_likely_trigger() -> None:
    unfinished = [record(n, {}) for n in range(7, 12)]
    found = suspects(
        rows(*PLAIN, *unfinished, record(12, {}, sampling_params={"regex": "a+"})), "crash dump"
    )

    assert [one["index"] for one in found if "trigger" in one] == [11]
    assert found[0]["index"] == 11
    assert {one["index"] for one in found} >= set(range(6, 12))


def test_many_plain_unfinished_requests_have_no_trigger_among_them() -> None:
    found = suspects(rows(*PLAIN, *(record(n, {}) for n in range(7, 12))), "crash dump")

    assert [one["index"] for one in found[:5]] == [6, 7, 8, 9, 10]
    assert not any("trigger" in one for one in found)


def test_the_longest_prompt_is_named_where_one_is_longest() -> None:
    lengths = [{"prompt_tokens": n} for n in (5, 5, 900)]
    answers = [{"meta_info": {"finish_reason": {"type": "stop"}, **one}} for one in lengths]
    found = suspects(rows(*(record(n, one) for n, one in enumerate(answers))), "request dump")

    assert named(found) == {2: "the longest prompt, 900 tokens"}


def test_nothing_is_longest_among_equals() -> None:
    assert suspects(rows(*[record(n, text="same") for n in range(4)]), "request dump") == []


@pytest.mark.parametrize(("kind", "names"), [("crash dump", 5), ("request dump", 0)])
def test_the_last_arrivals_matter_only_where_a_server_died(kind: Kind, names: int) -> None:
    found = suspects(rows(*(record(n, text="same") for n in range(20, 0, -1))), kind)

    assert len(found) == names
    assert not names or named(found)[0] == "the last arrival before the crash"


def test_an_identifier_that_is_there_twice_is_named() -> None:
    found = suspects(rows(*(record(n, text="same", rid="r") for n in range(2))), "request dump")

    assert named(found) == {1: "its identifier is in this file twice"}


@pytest.mark.slow
def test_a_hundred_thousand_rows_name_the_same_suspects_as_few() -> None:
    many = [dict(rows(record(1))[0]) for _ in range(3000)]
    for place, one in enumerate(many):
        one |= {"index": place, "rid": str(place), "started_at": float(place)}
    many[1700] |= {"state": "unfinished", "finished_at": None}
    found = suspects(many, "crash dump")  # type: ignore[arg-type]

    assert found[0]["index"] == 1700
    assert {one["index"] for one in found[1:]} == set(range(2995, 3000))


def test_an_identifier_in_two_files_is_added_to_the_suspects_of_both() -> None:
    shared = SharedIdentifiers()
    documents = []
    for name, numbers in (("a.pkl", (1, 2)), ("b.pkl", (2, 3))):
        shared.take(rows(*(record(n, text="same") for n in numbers)))
        shared.next_file(name)
        documents.append({"file": name, "suspects": []})

    assert shared.in_several() == [
        {"rid": "rid-2", "places": [{"file": "a.pkl", "index": 1}, {"file": "b.pkl", "index": 0}]}
    ]
    assert shared.added_to(documents[0])["suspects"] == [
        {"index": 1, "rid": "rid-2", "why": "its identifier is in b.pkl too"}
    ]
    assert shared.added_to(documents[1])["suspects"][0]["index"] == 0
