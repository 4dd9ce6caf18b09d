"""Other wordings of failures than the named case has: versions, shells, languages, containers."""

from pathlib import Path

import orjson
import pytest

from app.domain.pyspy_errors import classify
from app.domain.stacks.reading import read_files
from app.domain.stacks.sources import StackFile

DATA = Path(__file__).parents[1] / "data" / "pyspy_wordings.json"
WORDINGS = [
    pytest.param(told["kind"], told["text"], told["status"], id=f"{at}-{told['kind']}")
    for at, told in enumerate(orjson.loads(DATA.read_bytes()))
]


@pytest.mark.parametrize(("kind", "text", "status"), WORDINGS)
def test_other_words_for_the_same_failure_are_of_the_same_kind(
    kind: str, text: str, status: int | None
) -> None:
    assert classify(text, status=status).kind == kind


@pytest.mark.parametrize(("kind", "text", "status"), WORDINGS)
def test_a_file_of_a_rank_with_such_words_is_a_missing_rank_with_its_reason(
    kind: str, text: str, status: int | None
) -> None:
    beside = StackFile("rc.json", orjson.dumps({"tp0": status or 1}))
    missing = read_files([StackFile("tp0.txt", text.encode()), beside]).missing
    assert [(one.rank, one.kind) for one in missing] == [("TP0", kind)]


def test_a_log_that_is_named_after_a_rank_is_no_failure_of_it() -> None:
    line = "[2026-08-04 11:58:42 TP0] Decode batch. #running-req: 1\n"
    log = f"{line * 60}Permission denied\n"
    assert read_files([StackFile("rank0.log", log.encode())]).empty


@pytest.mark.parametrize("word", ["pods ", "py-spy: ", "Container ", "\n \n", "bash: py-spy "])
def test_words_that_never_end_are_looked_at_from_both_ends(word: str) -> None:
    told = f"Error: Failed to copy\n{word * 60_000}\nPermission denied (os error 13)"
    assert classify(told, status=1).kind == "permission"
