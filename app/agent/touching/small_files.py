"""Small files of /proc and /sys as text; None where they are absent or refused."""

from pathlib import Path

from app.agent.processes.proc import read_bytes

MAX_BYTES = 1024 * 1024


def read_small(path: Path) -> str | None:
    """The text of *path*, up to 1 MiB of it; None when it cannot be read."""
    data = read_bytes(str(path), MAX_BYTES)
    return data.decode("utf-8", "replace") if data is not None else None


def named_numbers(text: str) -> dict[str, int]:
    """``name 12`` and ``Name:  12 kB`` lines as they are in /proc and in control groups."""
    found = {}
    for line in text.split("\n"):
        words = line.replace(":", " ", 1).split()
        if len(words) >= 2 and words[1].isascii() and words[1].isdigit():
            found[words[0]] = int(words[1])
    return found
