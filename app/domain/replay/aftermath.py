"""A replay killed its target: how to start the same build so that the next death leaves a coredump.

Whoever starts it reads and pastes this; nothing here starts anything.
"""

from collections.abc import Mapping
from typing import Any

from app.domain.crash_dump import version_of
from app.domain.figures import text
from app.domain.launch_env import launch_env

USUAL_FOLDER = "/var/tmp/sglang-crash"  # noqa: S108  (on the host of the target)
_HOST = "HOST"  # stands for what %h becomes there
_LONGEST_FOLDER = 400


def recipe(version: str | None, settings: Mapping[str, Any]) -> dict[str, Any]:
    """Environment, flags and folders for the next start, and where its coredump will appear.

    *version* is of the build that died, *settings* are those it was started with as it told them
    before; an empty mapping where it told none.
    """
    folder = _folder(settings)
    made = launch_env(
        folder,
        {},
        _flags(settings),
        version=version_of(version or ""),
        host=_HOST,
    )
    build = f"the same build ({version})" if version else "the same build"
    return {
        "says": f"Start {build} with this environment and these flags, then replay again: the next"
        " fault of a kernel leaves a CUDA coredump.",
        "version": version,
        "exports": made.exports,
        "flags": list(made.flags),
        "folders": [one.replace(_HOST, "$(hostname)") for one in made.folders],
        "appears_at": made.exports["CUDA_COREDUMP_FILE"]
        .replace("%h", "<host>")
        .replace("%t", "<seconds since 1970>")
        .replace("%p", "<pid>"),
        "warnings": list(made.warnings),
    }


def _folder(settings: Mapping[str, Any]) -> str:
    told = text(settings.get("crash_dump_folder"), limit=_LONGEST_FOLDER)
    return told.rstrip("/") if told and told.startswith("/") and told != "/" else USUAL_FOLDER


def _flags(settings: Mapping[str, Any]) -> dict[str, str | bool]:
    """What its command line had of that which matters here."""
    found: dict[str, str | bool] = {}
    folder = text(settings.get("crash_dump_folder"), limit=_LONGEST_FOLDER)
    if folder:
        found["--crash-dump-folder"] = folder
    if settings.get("enable_metrics") is True:
        found["--enable-metrics"] = True
    return found
