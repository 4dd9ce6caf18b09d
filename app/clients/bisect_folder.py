"""Writes the folder of a bisection, and asks git for the commits that it is between."""

import os
import subprocess
from collections.abc import Sequence
from pathlib import Path

from app.clients import bisect_harness
from app.domain.replay.bisecting import (
    README_FILE,
    REQUESTS_FILE,
    RUN_FILE,
    SETTINGS_FILE,
    BisectSettings,
    readme,
    settings_text,
)
from app.domain.replay.planned import Sending
from app.domain.replay.reproducer import fixture
from app.errors import Conflict, NotFound, Rejected

_SHEBANG = b"#!/usr/bin/env python3\n"
_GIT_SECONDS = 60


def checkout_of(folder: Path) -> Path:
    """The top of the git checkout that *folder* is in; raises NotFound."""
    top = _git(folder, "rev-parse", "--show-toplevel")
    if top is None:
        raise NotFound(
            f"{folder.absolute()} is in no git checkout.",
            fix="Run this in the checkout of the server, or name it with --checkout.",
        )
    return Path(top)


def commit(checkout: Path, revision: str) -> str:
    """The full name of the commit that *revision* names there; raises NotFound."""
    found = _git(checkout, "rev-parse", "--verify", "--quiet", "--end-of-options", f"{revision}^0")
    if found is None:
        raise NotFound(f"There is no commit {revision!r} in {checkout}.")
    return found


def check_between(checkout: Path, good: str, bad: str) -> None:
    """Raises Rejected where no commit lies between *good* and *bad*."""
    if good == bad:
        raise Rejected("The good and the bad commit are the same.")
    if _git(checkout, "merge-base", "--is-ancestor", bad, good) is not None:
        raise Rejected(
            "The good commit comes after the bad one.",
            fix="The first bad commit is looked for: --good is the older one.",
        )


def write_folder(folder: Path, settings: BisectSettings, sendings: Sequence[Sending]) -> None:
    """A new *folder* with harness, settings, requests and README; raises Conflict, Rejected.

    The requests may hold what people asked: the folder is readable by its owner alone.
    """
    try:
        folder.mkdir(mode=0o700, parents=True)
    except FileExistsError as error:
        raise Conflict(f"{folder} is there already.", fix="Name another one with --out.") from error
    except OSError as error:
        raise Rejected(f"{folder} cannot be made: {error.strerror}.") from error
    source = Path(bisect_harness.__file__).read_bytes()
    run = folder / RUN_FILE
    run.write_bytes(_SHEBANG + source)
    run.chmod(0o755)
    (folder / SETTINGS_FILE).write_bytes(settings_text(settings))
    (folder / REQUESTS_FILE).write_bytes(fixture(sendings))
    (folder / README_FILE).write_text(readme(settings, len(sendings)))


def _git(folder: Path, *words: str) -> str | None:
    """What git says; None where it fails."""
    try:
        done = subprocess.run(  # noqa: S603  (a list, no shell)
            ["git", "-C", os.fspath(folder), *words],  # noqa: S607
            capture_output=True,
            text=True,
            check=False,
            timeout=_GIT_SECONDS,
        )
    except FileNotFoundError as error:
        raise NotFound("There is no git on this machine.", fix="Install git.") from error
    except subprocess.TimeoutExpired as error:
        raise Rejected(f"git did not answer in {_GIT_SECONDS} s.") from error
    return done.stdout.strip() if done.returncode == 0 else None
