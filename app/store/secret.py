"""Secrets that we hand out: sessions, API tokens, one-time links. Only their hash is kept."""

import hashlib
import secrets

SECRET_BYTES = 32  # 256 random bits: no need to salt or to slow the hash down


def fresh() -> str:
    """A new secret, fit for a URL, a cookie or a header."""
    return secrets.token_urlsafe(SECRET_BYTES)


def digest(secret: str) -> str:
    """What is stored of *secret* and looked up: SHA-256, 64 hex digits."""
    return hashlib.sha256(secret.encode("utf-8", "surrogatepass")).hexdigest()
