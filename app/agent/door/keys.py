"""The agent's secret and its name: made once, kept in files that only their owner reads."""

import os
import re
import secrets
from pathlib import Path
from shlex import quote

from app.errors import Misconfigured

KEY_BYTES = 32


def key(path: Path) -> bytes:
    """The key in *path*, 64 hexadecimal digits, made where there is none.

    Raises Misconfigured for a file that holds something else or that everybody may read.
    """
    text = _once(path, secrets.token_hex(KEY_BYTES))
    check_owner(path)
    if path.stat().st_mode & 0o007:
        raise Misconfigured(
            f"Everybody on this host may read {path}.",
            why="Whoever has the key may do on this host what the agent may.",
            fix="Take that right away; register a new key if somebody may have read it.",
            command=f"chmod 600 {quote(str(path))}",
        )
    if not re.fullmatch(r"[0-9a-f]{64}", text):
        raise Misconfigured(
            f"{path} holds no key.",
            fix="A key is 64 hexadecimal digits. Move the file away and a new one is made.",
        )
    return bytes.fromhex(text)


def check_owner(path: Path) -> None:
    """Raises Misconfigured for what another user owns, who could put his own key there."""
    owner = path.stat().st_uid
    if owner not in (0, os.geteuid()):
        raise Misconfigured(
            f"{path} belongs to user {owner}, the agent runs as user {os.geteuid()}.",
            why="Whoever owns it chooses who may use this agent.",
            fix="Use a folder and a key file that belong to the agent's own user or to root.",
        )


def agent_id(path: Path) -> str:
    """The name in *path* that this agent keeps for life: 16 hexadecimal digits."""
    text = _once(path, secrets.token_hex(8))
    if not re.fullmatch(r"[0-9a-f]{16}", text):
        raise Misconfigured(f"{path} holds no agent id.", fix="Restore it, or use a new folder.")
    return text


def _once(path: Path, fresh: str) -> str:
    """What is in *path*; *fresh* where it is missing. Of two processes, both get the same."""
    mine = path.with_name(f".{path.name}-{secrets.token_hex(8)}")
    try:
        if not path.exists():
            with os.fdopen(os.open(mine, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600), "w") as file:
                file.write(fresh + "\n")
                file.flush()
                os.fsync(file.fileno())
            _link(mine, path)
        return path.read_text().strip()
    except (OSError, UnicodeDecodeError) as error:
        raise Misconfigured(f"{path} cannot be read or made: {error}.") from error
    finally:
        mine.unlink(missing_ok=True)


def _link(mine: Path, path: Path) -> None:
    try:
        os.link(mine, path)  # never replaces one that came first, and it is whole
    except FileExistsError:
        return
