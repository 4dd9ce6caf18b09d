"""What py-spy's refusals mean, by texts from public reports and by texts measured here."""

from pathlib import Path

import orjson
import pytest

from app.domain import pyspy_errors
from app.domain.pyspy_errors import PySpyError, classify, own_words

CASE = Path(__file__).parents[1] / "data" / "cases" / "08-pyspy-error-texts"
KINDS = orjson.loads((CASE / "expected.json").read_bytes())["parse_facts"]["kinds"]
STATUSES = orjson.loads((CASE / "rc.json").read_bytes())
ALL = [error for error in vars(pyspy_errors).values() if isinstance(error, PySpyError)]


@pytest.mark.parametrize(("name", "kind"), KINDS.items(), ids=KINDS)
def test_a_text_from_the_field_is_of_its_kind(name: str, kind: str) -> None:
    text = (CASE / f"{name}.stderr.txt").read_text()

    assert classify(text, status=STATUSES[name]).kind == kind


def test_all_texts_of_the_case_are_there() -> None:
    assert len(KINDS) == len(list(CASE.glob("*.stderr.txt"))) == 23


SUSPEND = "Error: Failed to get stack traces\n\nCaused by:\n    0: Failed to suspend process\n"


@pytest.mark.parametrize(
    ("text", "status", "kind"),
    [
        pytest.param(
            SUSPEND + "    1: unexpected waitpid result PtraceEvent(Pid(7), SIGSTOP, 128) to 7",
            1,
            "target_stopped_or_traced",
            id="stopped-in-full",
        ),
        pytest.param(
            SUSPEND + "    1: EPERM: Operation not permitted",
            1,
            "target_stopped_or_traced",
            id="traced-is-no-missing-right",
        ),
        pytest.param(
            SUSPEND + "    1: ESRCH: No such process",
            1,
            "process_gone_or_zombie",
            id="ended-while-it-was-paused",
        ),
        pytest.param(
            "Error: Failed to get stack traces\n\nCaused by:\n    0: UNW_EBADREG: bad register",
            1,
            "native_unavailable",
            id="native-across-namespaces",
        ),
        pytest.param(
            "Error: Failed to find python version from target process\n\nCaused by:\n"
            "    Permission denied (os error 13)",
            1,
            "permission",
            id="version-by-the-headline-permission-by-the-cause",
        ),
        pytest.param("Error: Unsupported version of Python: 3.14.0", 1, "pyspy_too_old", id="3.14"),
        pytest.param(
            "Error: Unsupported version of Python: 0.0.0", 1, "not_python_or_unsupported", id="0.0"
        ),
        pytest.param(
            "error: the argument '--native' cannot be used with '--nonblocking'",
            2,
            "bad_flags",
            id="flags-in-the-words-of-the-parser",
        ),
        pytest.param("error: unexpected argument '-1' found", 2, "bad_arguments", id="minus-one"),
        pytest.param("env: ‘py-spy’: No such file or directory", 127, "tool_missing", id="env"),
        pytest.param("/usr/bin/python: No module named py_spy", 1, "tool_missing", id="module"),
        pytest.param("py-spy: Permission denied", 126, "tool_missing", id="not-executable"),
        pytest.param("py-spy: cannot be run: Exec format error", 126, "platform", id="machine"),
        pytest.param(
            "Error: Function not implemented (os error 38)\n\nStack backtrace:\n"
            "   0: Permission denied",
            1,
            "platform",
            id="nothing-is-read-from-a-backtrace",
        ),
        pytest.param("Killed", 137, "timeout", id="killed-by-timeout"),
        pytest.param("", -9, "transient", id="killed-by-somebody-else"),
        pytest.param("", -11, "transient", id="crashed"),
        pytest.param("thread 'main' panicked at src/main.rs:9", 101, "transient", id="panicked"),
        pytest.param("Error: Cannot allocate memory (os error 12)", 1, "transient", id="memory"),
        pytest.param("Wrote data. Samples: 0 Errors: 0", 0, "no_samples_idle", id="no-samples"),
        pytest.param("Error: the moon is in the way", 1, "unknown", id="never-seen"),
        pytest.param("", 1, "unknown", id="no-words-at-all"),
        pytest.param("", None, "unknown", id="nothing-known"),
    ],
)
def test_a_relative_is_told_by_its_deepest_cause(text: str, status: int | None, kind: str) -> None:
    assert classify(text, status=status).kind == kind


def test_our_own_deadline_wins_over_what_was_said_until_then() -> None:
    error = classify("Permission denied (os error 13)", status=-9, timed_out=True)

    assert error.kind == "timeout"
    assert "nonblocking" in error.fix


def test_a_native_reading_that_took_too_long_is_to_be_taken_plain() -> None:
    error = classify("", status=-9, mode="native in its namespace", timed_out=True)

    assert error.fix == "Take it without --native."


def test_what_is_not_known_is_told_in_the_words_of_py_spy() -> None:
    assert "the moon is in the way" in classify("Error: the moon is in the way", status=1).reason


@pytest.mark.parametrize("error", ALL, ids=lambda error: error.reason[:40])
def test_no_advice_is_to_restart_or_to_become_root_for_everything(error: PySpyError) -> None:
    told = f"{error.reason} {error.fix} {error.command}".lower()

    assert "restart the server" not in told
    assert "sudo" not in told
    assert error.fix.endswith(".")


def test_own_words_are_headline_and_cause_without_backtrace_and_controls() -> None:
    text = (
        "\x1b[31mError: Failed to copy\x1b[0m\n\nCaused by:\n    0: a\n    1: bad\x07 address\n\n"
        "Stack backtrace:\n   0: main"
    )

    assert own_words(text) == "Failed to copy – bad address"
    assert len(own_words("x" * 1000)) == 200
    assert own_words("") == ""
