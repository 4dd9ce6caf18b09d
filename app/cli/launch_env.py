"""``incident-console launch-env``: what makes the next crash or hang leave its evidence."""

import os
import platform
import shlex
import sys
from pathlib import Path
from typing import Annotated

import orjson
import typer

from app.cli.summary_text import printable
from app.domain.crash_dump import version_of
from app.domain.existing_env import existing_environment, existing_flags
from app.domain.launch_env import LaunchEnv, launch_env
from app.errors import Misconfigured

app = typer.Typer(add_completion=False, rich_markup_mode=None)

MAX_BYTES = 1024 * 1024

Folder = Annotated[Path, typer.Option("--crash-dump-folder", help="Where the evidence shall lie.")]
Existing = Annotated[
    Path | None,
    typer.Option(
        help="What is set now: KEY=VALUE, export lines, docker or Kubernetes; - is stdin."
    ),
]
Version = Annotated[
    str | None, typer.Option("--sglang-version", help="Of the server to start, such as 0.5.23.")
]
AsJson = Annotated[bool, typer.Option("--json", help="One JSON document.")]


@app.command("launch-env")
def print_launch_env(
    crash_dump_folder: Folder,
    *,
    existing: Existing = None,
    sglang_version: Version = None,
    as_json: AsJson = False,
) -> None:
    """Print the environment and flags for the next start; warnings go to stderr.

    What --existing sets is never set again. The folders are made on this host where that is
    allowed. Paste the lines before the start command, and the flags behind it.
    """
    text = _text_of(existing)
    made = launch_env(
        os.path.abspath(crash_dump_folder),  # noqa: PTH100  (links stay as they were named)
        existing_environment(text),
        existing_flags(text),
        version=_version(sglang_version),
        host=platform.node(),
    )
    folders = {folder: _make(Path(folder)) for folder in made.folders}
    if as_json:
        sys.stdout.buffer.write(orjson.dumps(_document(made, folders)) + b"\n")
        return
    _print(made)
    _tell(made, folders)


def _text_of(path: Path | None) -> str:
    if path is None:
        return ""
    try:
        with sys.stdin.buffer if str(path) == "-" else path.open("rb") as opened:
            return opened.read(MAX_BYTES).decode(errors="replace")
    except OSError as error:
        raise Misconfigured(f"{path} cannot be read: {error.strerror}.") from error


def _version(text: str | None) -> tuple[int, int, int] | None:
    if text is None:
        return None
    version = version_of(text)
    if version is None:
        raise typer.BadParameter(f"{text!a} is no version such as 0.5.23.")
    return version


def _make(folder: Path) -> str:
    """What became of *folder*: "made", "there already", or why neither."""
    if folder.is_dir():
        return "there already"
    try:
        folder.mkdir(parents=True)
    except OSError as error:
        return f"not made: {error.strerror}"
    return "made"


def _document(made: LaunchEnv, folders: dict[str, str]) -> dict[str, object]:
    return {
        "environment": made.exports,
        "flags": made.flags,
        "kept": made.kept,
        "folders": [{"path": path, "state": state} for path, state in folders.items()],
        "warnings": made.warnings,
    }


def _print(made: LaunchEnv) -> None:
    """What a shell takes as it stands; the flags as a comment."""
    for name, value in made.exports.items():
        typer.echo(f"export {name}={shlex.quote(value)}")
    if made.flags:
        typer.echo(f"# add to the start command: {' '.join(map(_quoted, made.flags))}")


def _quoted(flag: str) -> str:
    name, blank, value = flag.partition(" ")
    return f"{name} {shlex.quote(value)}" if blank else name


def _tell(made: LaunchEnv, folders: dict[str, str]) -> None:
    for name, value in made.kept.items():
        typer.echo(printable(f"kept: {name}={value}"), err=True)
    for path, state in folders.items():
        typer.echo(printable(f"folder {path}: {state}"), err=True)
    if any(state == "made" for state in folders.values()):
        typer.echo("In a container they must be made there, for its own host name.", err=True)
    for warning in made.warnings:
        typer.echo(printable(f"warning: {warning}"), err=True)
