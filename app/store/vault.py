"""The key file, and what is sealed with it: stored tokens, extra headers, fingerprints of secrets.

The key is made on the first start and never shown. Whoever has the database without the key
file reads no credential; whoever loses the key file enters the credentials again.
"""

import hashlib
import hmac
import os
import secrets
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Self

from cryptography.fernet import Fernet, InvalidToken

from app.errors import Misconfigured

FINGERPRINT_DIGITS = 8


@dataclass(frozen=True)
class Vault:
    """Seals and unseals short texts; one for each data folder."""

    key_file: Path
    _fernet: Fernet = field(repr=False)
    fingerprint_key: bytes = field(repr=False)  # for readers in processes of their own

    @classmethod
    def open(cls, key_file: Path) -> Self:
        """The vault of *key_file*, made on first use; raises Misconfigured for a file of else."""
        if not key_file.exists():
            _make_key(key_file)
        key = key_file.read_bytes().strip()
        try:
            fernet = Fernet(key)
        except ValueError as error:
            raise Misconfigured(
                f"{key_file} does not hold a key of this console.",
                fix="Put the key file of this data folder back, or name it in "
                "INCIDENT_CONSOLE_SECRET_KEY_FILE.",
            ) from error
        return cls(key_file, fernet, hmac.digest(key, b"fingerprint of a secret", hashlib.sha256))

    def seal(self, text: str) -> str:
        """*text* as it may be stored; different each time."""
        return self._fernet.encrypt(text.encode()).decode("ascii")

    def unseal(self, sealed: str) -> str:
        """What was sealed; raises Misconfigured when it was sealed with another key."""
        try:
            return self._fernet.decrypt(sealed.encode()).decode()
        except InvalidToken as error:
            raise Misconfigured(
                f"A stored credential was not sealed with the key in {self.key_file}.",
                why="The key file was replaced, or the database comes from another console.",
                fix="Put the former key file back, or enter the target's credentials again.",
            ) from error

    def fingerprint(self, text: str) -> str:
        """Eight hex digits that are equal for equal secrets of this console and tell no more."""
        digest = hmac.new(self.fingerprint_key, text.encode(), hashlib.sha256)
        return digest.hexdigest()[:FINGERPRINT_DIGITS]


def _make_key(key_file: Path) -> None:
    """Write a new key whole, or keep the one that another process was first to write."""
    key_file.parent.mkdir(parents=True, exist_ok=True)
    draft = key_file.with_name(f".{key_file.name}.{secrets.token_hex(4)}")
    handle = os.open(draft, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
    try:
        with os.fdopen(handle, "wb") as file:
            file.write(Fernet.generate_key() + b"\n")
            file.flush()
            os.fsync(file.fileno())
        with suppress(FileExistsError):
            os.link(draft, key_file)
    finally:
        draft.unlink()
