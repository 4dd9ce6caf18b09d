"""Work in threads that nobody waits for hands over what it returns, and what it raises."""

import threading

import pytest

from app.store.aside import aside


def test_what_the_work_returns_is_handed_over() -> None:
    assert aside(lambda: threading.current_thread().name, name="beside").result(10) == "beside"


@pytest.mark.parametrize("error", [OSError(5, "gone"), SystemExit(3)], ids=repr)
def test_what_the_work_raises_is_raised_where_it_is_waited_for(error: BaseException) -> None:
    def fail() -> None:
        raise error

    assert aside(fail, name="beside").exception(10) is error


def test_a_process_can_end_before_its_work_does() -> None:
    never = threading.Event()
    asked = aside(never.wait, name="silent")
    (thread,) = (one for one in threading.enumerate() if one.name == "silent")
    assert (thread.daemon, asked.done()) == (True, False)
    never.set()
    assert asked.result(10)
