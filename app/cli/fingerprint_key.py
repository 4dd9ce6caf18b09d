"""The key of this user's secret fingerprints: the same from run to run, so that bundles compare."""

import os
import secrets
from pathlib import Path

_KEY_BYTES = 32


def fingerprint_key() -> bytes:
    """The key in the user's configuration folder, made on first use, readable by the user alone.

    Where no file can be kept, a key for this run: fingerprints then compare within it only.
    """
    try:
        return _kept(_key_file())
    except (OSError, RuntimeError):  # RuntimeError: no home folder is known
        return secrets.token_bytes(_KEY_BYTES)


def _key_file() -> Path:
    configuration = os.environ.get("XDG_CONFIG_HOME")
    folder = Path(configuration) if configuration else Path.home() / ".config"
    return folder / "incident-console" / "fingerprint.key"


def _kept(file: Path) -> bytes:
    file.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
    try:
        descriptor = os.open(file, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
    except FileExistsError:
        key = file.read_bytes()
        return key if len(key) >= _KEY_BYTES else secrets.token_bytes(_KEY_BYTES)
    with os.fdopen(descriptor, "wb") as opened:
        key = secrets.token_bytes(_KEY_BYTES)
        opened.write(key)
    return key
