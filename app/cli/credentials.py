"""Credentials for the command line: from the environment or a file, never from an argument."""

import os
from pathlib import Path

from app.errors import Misconfigured

_MAX_BYTES = 64 * 1024


def credential(variable: str | None, file: Path | None) -> str | None:
    """The secret in the environment *variable* or in *file*; None when neither is named."""
    if variable:
        value = os.environ.get(variable)
        if not value:
            raise Misconfigured(f"The environment variable {variable} is not set.")
        return value.strip()
    return text_of(file).strip() if file else None


def headers_of(file: Path | None) -> dict[str, str]:
    """The headers in *file*, one ``Name: value`` a line; those with ``#`` are skipped."""
    headers = {}
    for line in text_of(file).splitlines() if file else ():
        if not line.strip() or line.startswith("#"):
            continue
        name, colon, value = line.partition(":")
        if not colon:
            raise Misconfigured(f"{file}: a line is no header.", fix="Write it as Name: value.")
        headers[name.strip()] = value.strip()
    return headers


def text_of(file: Path) -> str:
    """The text in *file*; raises Misconfigured."""
    try:
        with file.open("rb") as opened:
            return opened.read(_MAX_BYTES).decode()
    except OSError as error:
        raise Misconfigured(f"{file} cannot be read: {error.strerror}.") from error
    except UnicodeDecodeError as error:
        raise Misconfigured(f"{file} is not a text.") from error
