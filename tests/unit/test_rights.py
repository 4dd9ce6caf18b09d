import threading
import time
from dataclasses import replace

import pytest

from app.agent.readiness.rights import Remembered, Rights, SelfTest, capabilities
from app.domain.pyspy_errors import NOT_ALLOWED

GOOD = Rights(
    euid=0,
    capabilities=frozenset(("CAP_SYS_PTRACE", "CAP_SYS_ADMIN")),
    ptrace_scope=1,
    seccomp="off",
    pyspy="/venv/bin/py-spy",
    pyspy_version=(0, 4, 3),
    nsenter="/usr/bin/nsenter",
    tried=SelfTest(None, 0.1),
)
REFUSED = replace(GOOD, tried=SelfTest(NOT_ALLOWED, 0.1))


@pytest.mark.parametrize(
    ("mask", "names"),
    [
        pytest.param("0000000000000000", set(), id="none"),
        pytest.param("0000000000080000", {"CAP_SYS_PTRACE"}, id="ptrace"),
        pytest.param("00000000a80425fb", {"CAP_DAC_OVERRIDE", "CAP_KILL"}, id="docker-default"),
        pytest.param("000001ffffffffff", {"CAP_SYS_PTRACE", "CAP_SYSLOG"}, id="all"),
        pytest.param("what", set(), id="not-hexadecimal"),
    ],
)
def test_a_mask_of_capabilities_has_names(mask: str, names: set[str]) -> None:
    assert names <= capabilities(mask)
    assert ("CAP_SYS_PTRACE" in capabilities(mask)) is ("CAP_SYS_PTRACE" in names)


@pytest.mark.parametrize(
    ("may", "words"),
    [
        pytest.param(replace(GOOD, pyspy=None), "not installed", id="absent"),
        pytest.param(replace(GOOD, pyspy_version=(0, 3, 14)), "0.3.14 is too old", id="too-old"),
        pytest.param(REFUSED, "no right", id="refused"),
        pytest.param(replace(REFUSED, ptrace_scope=3), "until the next boot", id="yama-3"),
        pytest.param(replace(REFUSED, seccomp="filter"), "seccomp filter", id="seccomp"),
        pytest.param(
            replace(REFUSED, seccomp="filter", capabilities=frozenset()),
            "no right",
            id="filter-without-capability",
        ),
    ],
)
def test_what_stands_in_the_way_is_named_with_one_fix(may: Rights, words: str) -> None:
    assert may.problem is not None
    assert words in may.problem.reason
    assert may.problem.fix


def test_stacks_of_a_child_of_ours_are_the_proof() -> None:
    assert GOOD.problem is None
    assert replace(GOOD, pyspy_version=None).problem is None  # it works, whatever it calls itself


def test_it_is_looked_at_once_by_many_and_again_after_a_while() -> None:
    looks: list[Rights] = []

    def look() -> Rights:
        looks.append(GOOD)
        time.sleep(0.05)  # all of them ask meanwhile
        return GOOD

    remembered = Remembered(look, keep_seconds=600)
    threads = [threading.Thread(target=remembered) for _ in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len(looks) == 1

    forgotten = Remembered(look, keep_seconds=-1)  # over as soon as it is said
    forgotten()
    forgotten()
    assert len(looks) == 3
