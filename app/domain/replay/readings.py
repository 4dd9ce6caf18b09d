"""What a class of failures is called on a page, and how it is to be read."""

from collections.abc import Mapping

from app.domain.replay.outcomes import TURNED_AWAY, UNANSWERED, ErrorClass, own_making

_NAMES: Mapping[ErrorClass, str] = {
    "timeout": "not done in time",
    "no-first-token": "no first token in time",
    "stream-cut": "answer cut off",
    "bad-request": "refused as malformed (400)",
    "unauthorized": "no access (401, 403)",
    "not-found": "not offered (404)",
    "too-many": "too many (429)",
    "overloaded": "overloaded (503)",
    "server-error": "server error (5xx)",
    "aborted": "aborted by the server",
    "too-large": "answer too large",
    "malformed-answer": "answer makes no sense",
    "cancelled": "broken off by us",
    "not-sent": "not sent",
    "tls-failed": "TLS failed",
}
_LOST: frozenset[ErrorClass] = frozenset(("connection-reset", "stream-cut"))


def name_of(error: ErrorClass) -> str:
    """The class in words."""
    return _NAMES.get(error, error.replace("-", " "))


def level_of(error: ErrorClass) -> str:
    """Its mark: quiet for what we made ourselves, bad for a lost connection, else a warning."""
    if own_making(error):
        return "quiet"
    return "bad" if error in _LOST else "warn"


def reading(error: ErrorClass, *, died: bool, as_recorded: bool) -> str:
    """How to read it; *died*: the target went away in that trial."""
    if error == "not-sent" and died:
        return "the target was gone by then, and did not come back"
    if error in ("cancelled", "not-sent"):
        return "the replay was stopped; says nothing of the target"
    if own_making(error):
        return "of our own making: says nothing of the fault"
    if error in _LOST and died:
        return "in flight when the target went away"
    if error == "connection-refused":
        return "after it: the target was gone" if died else "the target did not listen"
    if error in UNANSWERED:
        return "accepted, and left without its answer"
    if error in TURNED_AWAY and not as_recorded:
        return "sent faster than recorded: no finding"
    return "the target's doing"
