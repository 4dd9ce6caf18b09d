"""A tool on a process is seen by the other agents and command lines of its host."""

import os
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from app.agent.touching.holds import ELSEWHERE, Holds
from app.errors import Conflict
from tests.integration.processes import kill, start
from tests.waiting import until

REFUSED = "Another agent or command line is on this process already"


@contextmanager
def held_elsewhere(pid: int) -> Iterator[subprocess.Popen[str]]:
    """Another process that has a tool on *pid*; it ends when its input does."""
    other = start("holder", str(pid))
    try:
        assert other.stdout is not None
        assert other.stdout.readline() == "held\n"
        yield other
    finally:
        kill(other)


def descriptors() -> list[str]:
    return sorted(one.name for one in Path("/proc/self/fd").iterdir())


def test_what_another_process_is_on_is_refused_in_words_and_seen() -> None:
    holds, pid = Holds(), os.getpid()
    with held_elsewhere(pid) as other:
        with pytest.raises(Conflict, match=REFUSED) as refused:
            holds.hold(pid, "py-spy").__enter__()
        assert refused.value.fix == "Wait until it is done, then ask again."
        assert holds.holder(pid) == ELSEWHERE
        assert holds.holder(other.pid) is None, "to look at it takes nothing"
        with holds.hold(other.pid, "py-spy"):
            pass
        other.communicate()  # its input ends

        with holds.hold(pid, "py-spy"):
            assert holds.holder(pid) == "py-spy"


def test_a_tool_of_ours_is_seen_by_another_process() -> None:
    pid = os.getpid()
    with Holds().hold(pid, "py-spy"):
        other = start("holder", str(pid))
        said, _ = other.communicate()
    assert (said, other.returncode) == ("", 1)


def test_a_holder_that_is_killed_leaves_nothing_behind() -> None:
    holds, pid = Holds(), os.getpid()
    with held_elsewhere(pid) as other:
        other.kill()
        other.wait()
        assert until(lambda: holds.holder(pid) is None)
        with holds.hold(pid, "py-spy"):
            pass


def test_a_tool_that_outlives_its_hold_does_not_keep_the_process() -> None:
    holds, pid = Holds(), os.getpid()
    with holds.hold(pid, "py-spy"):
        child = subprocess.Popen(["sleep", "30"])
    try:
        with holds.hold(pid, "py-spy"):
            assert child.poll() is None
    finally:
        child.kill()
        child.wait()


def test_neither_a_hold_nor_a_refusal_leaks_a_descriptor() -> None:
    holds, pid = Holds(), os.getpid()
    with held_elsewhere(2**22 + pid):
        before = descriptors()
        for _ in range(20):
            with holds.hold(pid, "py-spy"):
                assert len(descriptors()) == len(before) + 1
            with pytest.raises(Conflict):
                holds.hold(2**22 + pid, "py-spy").__enter__()
            holds.holder(pid)
        assert descriptors() == before
