"""The shared simulator of a CUDA driver: every variant of it ends as it should."""

import os
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path

import pytest

from tests.integration.coredump_target import QUICK, ROOT, Target, agent
from tests.integration.shared_tools import needs
from tests.waiting import until

TITLES = """
from tests.programs.fake_cuda import set_title


def setproctitle(title):
    set_title(title, keep_environment=False)
"""
LATE = ("no_fifo", "delayed_fifo")
PATIENT = replace(QUICK, stalled_seconds=3.5, settle_seconds=0.6, no_file_seconds=3.0)


@contextmanager
def simulator(folder: Path, variant: str) -> Iterator[Target]:
    """The simulator, ready in *folder*; what it needs to set its title stands beside it."""
    script = needs("tools", "fakecuda.py")
    (folder / "lib").mkdir(parents=True)
    (folder / "lib" / "setproctitle.py").write_text(TITLES)
    process = subprocess.Popen(
        [sys.executable, str(script), "--variant", variant, "--size", "0.5", "--rate", "2"],
        cwd=folder,
        env={"PYTHONPATH": f"{folder / 'lib'}:{ROOT}", "PATH": os.environ["PATH"]},
        stdout=subprocess.PIPE,
        text=True,
        start_new_session=True,
    )
    try:
        found = Target(process, folder)
        found.wait_for("ready")
        yield found
    finally:
        process.kill()
        process.communicate()


@pytest.mark.slow
@pytest.mark.parametrize(
    ("variant", "state"),
    [
        ("ok", "complete"),
        ("slow", "complete"),
        ("gzip", "complete"),
        ("sparse_first", "complete"),
        ("needs_4096", "complete"),
        ("abort_after", "complete"),
        ("truncated", "truncated"),
        ("dies_during", "truncated"),
        ("stall", "timed-out"),
        ("ignored", "no-file"),
        ("write_error", "no-file"),
        ("no_fifo", "refused"),
        ("no_reader", "refused"),
        ("regular_file", "refused"),
        ("symlink", "refused"),
        ("delayed_fifo", "refused"),  # it is not there yet
    ],
)
def test_a_variant_of_the_simulator_ends_as_it_should(
    tmp_path: Path, variant: str, state: str
) -> None:
    with simulator(tmp_path / "t", variant) as fake, agent(tmp_path / "a", limits=PATIENT) as ours:
        until(lambda: state == "refused" or fake.untouched())  # it reads its pipe
        done = ours.ending(ours.trigger(fake.id))

        assert done.state == state, done
        assert (done.file is not None) == (state in ("complete", "truncated"))
        if variant == "regular_file":
            assert fake.pipe.read_text() == ""
