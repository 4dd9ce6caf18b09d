"""Passwords: Argon2id, at most two at a time (each takes 64 MiB), and what is too short."""

from functools import cache
from threading import BoundedSemaphore

from pwdlib import PasswordHash
from pwdlib.hashers.argon2 import Argon2Hasher

from app.errors import Rejected

MIN_LENGTH = 12
MAX_LENGTH = 1024  # a longer one only costs us time
_hasher = PasswordHash((Argon2Hasher(),))
_at_once = BoundedSemaphore(2)


@cache
def _nobody() -> str:
    """Verified against for unknown names, so that they take as long as known ones."""
    return _hasher.hash("nobody has this password")


def hashed(password: str) -> str:
    """What is stored of *password*; raises Rejected when it is too short or too long."""
    if len(password) < MIN_LENGTH:
        raise Rejected(f"A password has at least {MIN_LENGTH} characters.")
    if len(password) > MAX_LENGTH:
        raise Rejected(f"A password has at most {MAX_LENGTH} characters.")
    with _at_once:
        return _hasher.hash(password)


def fits(password: str, password_hash: str | None) -> bool:
    """Whether *password* is the hashed one; takes as long for None, which nothing fits."""
    with _at_once:
        fit = _hasher.verify(password[:MAX_LENGTH], password_hash or _nobody())
    return fit and password_hash is not None
