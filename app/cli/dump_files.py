"""The files of requests that a person named: files, folders of them, and archives of several."""

import os
import sys
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

from app.cli.summary_text import printable
from app.clients.dumps import Reading, Take, summarize_file
from app.clients.opening import as_text
from app.domain.dumps.redacted import Tier
from app.domain.dumps.summary import unreadable
from app.errors import NotFound, Rejected, TooLarge

MOST_FILES = 1000
_ENDINGS = (".pkl", ".pickle", ".jsonl", ".ndjson", ".json", ".log", ".gz", ".zst", ".zip")


def files_named(paths: Sequence[Path]) -> list[Path]:
    """*paths*, a folder replaced by what in it has the ending of such a file, in order.

    Raises NotFound for a folder without any, and TooLarge for too many.
    """
    files: list[Path] = []
    for path in paths:
        found = list(_under(path)) if path.is_dir() else [path]
        if not found:
            raise NotFound(f"No file in {path} ends in {', '.join(_ENDINGS)}.")
        files += found
        if len(files) > MOST_FILES:
            raise TooLarge(f"More than {MOST_FILES} files at once.", fix="Name fewer of them.")
    return files


def documents(
    path: Path, reading: Reading, *, tier: Tier, max_requests: int, take: Take | None
) -> Iterator[Mapping[str, Any]]:
    """The document of the file at *path*; of an archive with several files, one of each.

    Where *take* is given there are other files too, and one that cannot be opened has a document
    that says so; else NotFound and Rejected are raised.
    """
    try:
        document = _summarized(path, reading, tier, max_requests, take)
    except (NotFound, Rejected) as error:
        if take is None:
            raise
        yield {"file": as_text(path), "sha256": None, **unreadable(error.what)}
        return
    members = document["members"]
    if len(members) <= 1 or reading.member is not None:
        yield document
        return
    for place, name in enumerate(members):
        one = replace(reading, called=f"{as_text(path)}/{name}", member=place)
        yield _summarized(path, one, tier, max_requests, take)


def _summarized(
    path: Path, reading: Reading, tier: Tier, most: int, take: Take | None
) -> Mapping[str, Any]:
    """Tells a terminal what is being read meanwhile, as a large dump takes a while."""
    aloud = sys.stderr.isatty()
    if aloud:
        sys.stderr.write(f"reading {printable(reading.called or as_text(path))} …")
        sys.stderr.flush()
    document = summarize_file(path, reading=reading, tier=tier, max_requests=most, take=take)
    if aloud:
        sys.stderr.write("\r\x1b[K")
    return document


def _under(folder: Path) -> Iterator[Path]:
    """Regular files under *folder*; links are not followed."""
    for inside, folders, names in os.walk(folder):
        folders.sort()
        for name in sorted(names):
            path = Path(inside, name)
            if name.lower().endswith(_ENDINGS) and path.is_file() and not path.is_symlink():
                yield path
