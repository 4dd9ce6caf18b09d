"""Text of a host made fit to leave it: no secrets, no contents of requests."""

import secrets

from app.domain.redaction import keyed_fingerprint, redact_text
from app.domain.user_content import without_user_content

# Marks compare within one run of the agent, and nobody can try out secrets against them.
FINGERPRINT = keyed_fingerprint(secrets.token_bytes(32))
MAX_PLACES = 200  # that are told; all are masked


def safe_log(text: str) -> tuple[str, list[str]]:
    """*text* without secrets, prompts and outputs, and what was masked where."""
    text, contents = without_user_content(text)
    text, places = redact_text(text, fingerprint=FINGERPRINT)
    masked = [*(f"content, {place}" for place in contents), *(f"secret, {one}" for one in places)]
    rest = len(masked) - MAX_PLACES
    return text, masked[:MAX_PLACES] + ([f"and {rest} more"] if rest > 0 else [])
