"""Commands that a person gave: what is started is known before anybody can stop us."""

import signal
import sys
import time

import psutil
import pytest

from app.clients.commands import run, undisturbed

STOPPING = [signal.SIGINT, signal.SIGTERM, signal.SIGHUP]


@pytest.mark.parametrize("sign", STOPPING, ids=lambda sign: sign.name)
def test_a_signal_to_stop_is_heard_once_what_was_begun_is_done(sign: signal.Signals) -> None:
    before = signal.signal(sign, signal.default_int_handler)
    done = list[str]()

    def begin() -> None:
        with undisturbed():
            signal.raise_signal(sign)
            done.append("begun")

    try:
        with pytest.raises(KeyboardInterrupt):
            begin()
    finally:
        assert signal.signal(sign, before) is signal.default_int_handler
    assert done == ["begun"]


def test_one_that_is_ignored_stays_so() -> None:
    before = signal.signal(signal.SIGHUP, signal.SIG_IGN)
    try:
        with undisturbed():
            signal.raise_signal(signal.SIGHUP)
        assert signal.getsignal(signal.SIGHUP) is signal.SIG_IGN
    finally:
        signal.signal(signal.SIGHUP, before)


def test_a_command_that_takes_too_long_is_ended_with_what_it_started() -> None:
    began = time.monotonic()
    ended = run(
        ["sh", "-c", f"{sys.executable} -c 'import time; time.sleep(4711)' & wait"], {}, 0.5
    )

    assert ended.status is None
    assert time.monotonic() - began < 100
    left = [
        one for one in psutil.process_iter(["cmdline"]) if "4711" in str(one.info["cmdline"] or "")
    ]
    assert left == []
