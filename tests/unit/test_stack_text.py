"""py-spy's JSON as a page reads it: bounded, tolerant, the main thread first."""

from pathlib import Path

import orjson
import pytest

from app.domain.stack_text import LONGEST_NAME, MOST_FRAMES, MOST_THREADS, read_stacks

TP0 = Path(__file__).parents[1] / "data" / "pyspy" / "scheduler-tp0.json"


def thread(name: object = "MainThread", frames: object = (), **given: object) -> dict[str, object]:
    return {"thread_name": name, "frames": frames, "active": True, "owns_gil": False, **given}


def frame(name: object = "step", **given: object) -> dict[str, object]:
    return {"name": name, "short_filename": "loop.py", "line": 7, "module": None, **given}


def test_a_real_scheduler_is_read_newest_call_first_and_its_main_thread_before_the_others() -> None:
    stacks = read_stacks(TP0.read_bytes())

    main, *others = stacks.threads
    assert (main.name, main.main, main.active) == ("MainThread", True, False)
    assert main.frames[0].function == "broadcast"
    assert main.frames[0].place == "torch/distributed/distributed_c10d.py:3151"
    assert main.frames[-1].function == "<module>"
    assert [one.name for one in others] == [
        "ThreadPoolExecutor-2_0",
        "tqdm_monitor",
        "Thread-1 (_watchdog_thread)",
    ]
    assert (stacks.left_out, stacks.problem) == (0, None)


def test_a_frame_of_a_library_is_native_and_has_no_line() -> None:
    native = frame("epoll_wait", short_filename="libc.so.6", line=0, module="/usr/lib/libc.so.6")

    read = read_stacks(orjson.dumps([thread(frames=[native])])).threads[0].frames[0]

    assert (read.native, read.line, read.place) == (True, None, "libc.so.6")


@pytest.mark.parametrize(
    ("body", "words"),
    [
        pytest.param(b"", "Not JSON", id="nothing"),
        pytest.param(b"Error: Permission denied", "Not JSON", id="an error in words"),
        pytest.param(b'{"frames": []}', "no list of threads", id="an object"),
        pytest.param(b"[]", "no thread", id="no thread"),
        pytest.param(b'[1, null, "x"]', "no thread", id="no threads but values"),
        pytest.param(b"[" * 200 + b"]" * 200, "deeper", id="deeply nested"),
    ],
)
def test_what_is_not_stacks_is_a_problem_in_words(body: bytes, words: str) -> None:
    stacks = read_stacks(body)

    assert stacks.threads == ()
    assert words in (stacks.problem or "")


@pytest.mark.parametrize(
    "odd",
    [
        pytest.param(thread(None, None), id="nothing told"),
        pytest.param(thread(7, "frames"), id="text for frames"),
        pytest.param(thread("x", [1, None, {}]), id="values for frames"),
        pytest.param(thread("x", [frame(None, line="7", short_filename=3)]), id="odd fields"),
        pytest.param(thread("x", [], active="yes", owns_gil=1), id="odd flags"),
    ],
)
def test_odd_values_are_left_out_and_never_raise(odd: dict[str, object]) -> None:
    read = read_stacks(orjson.dumps([odd]))

    assert len(read.threads) == 1
    assert read.threads[0].owns_gil in (None, False)


def test_more_threads_and_frames_than_a_page_needs_are_counted() -> None:
    deep = thread(frames=[frame()] * (MOST_FRAMES + 3))
    many = [thread(f"worker {n}") for n in range(MOST_THREADS + 4)]

    stacks = read_stacks(orjson.dumps([*many, deep]))

    assert stacks.threads[0].left_out == 3
    assert (len(stacks.threads), stacks.left_out) == (MOST_THREADS, 5)


def test_names_are_on_one_line_and_cut() -> None:
    long = frame("a\nb" + "x" * 1000)

    name = read_stacks(orjson.dumps([thread(frames=[long])])).threads[0].frames[0].function

    assert name.startswith("a b")
    assert len(name) == LONGEST_NAME
