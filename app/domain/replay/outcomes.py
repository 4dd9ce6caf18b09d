"""How one request of a replay went, and of which class its failure is.

The classes are a closed list. Some failures are of our own making: they say that the replay was
not possible as it was set up, never that the target has the fault that is looked for.
"""

from dataclasses import dataclass
from typing import Any, Literal, get_args

from app.domain.replay.planned import Recorded

ErrorClass = Literal[
    "connection-refused",
    "connection-reset",
    "unreachable",  # no address for the name, no route, no connection in time
    "tls-failed",
    "stream-cut",  # the answer ended before its end
    "timeout",  # it answered, and was not done in time
    "no-first-token",  # accepted, and not one token in time
    "bad-request",
    "unauthorized",
    "not-found",
    "redirected",
    "too-many",
    "overloaded",
    "server-error",
    "aborted",  # the server gave it up, in an answer with status 200
    "too-large",  # the answer has more bytes or frames than we take
    "malformed-answer",
    "cancelled",  # the replay was stopped while it ran
    "not-sent",  # the replay was stopped, or out of time, before it was due
]
ERROR_CLASSES: tuple[ErrorClass, ...] = get_args(ErrorClass)

_OWN_MAKING = frozenset[ErrorClass](
    (
        "unreachable",
        "tls-failed",
        "bad-request",
        "unauthorized",
        "not-found",
        "redirected",
        "too-large",
        "cancelled",
        "not-sent",
    )
)
UNANSWERED: frozenset[ErrorClass] = frozenset(("no-first-token", "timeout"))
TURNED_AWAY: frozenset[ErrorClass] = frozenset(("overloaded", "too-many"))  # it was too busy
_OF_STATUS: dict[int, ErrorClass] = {
    401: "unauthorized",
    403: "unauthorized",
    404: "not-found",
    405: "not-found",
    413: "bad-request",
    429: "too-many",
    503: "overloaded",
}
MOST_SAID_CHARACTERS = 300


@dataclass(frozen=True, slots=True)
class Outcome:
    """What became of one Sending; None is unknown or never came. *status* is the HTTP status.

    *says* has the target's own words of a failure, safe to print and at most
    ``MOST_SAID_CHARACTERS``. *lateness_ms* is how much later than due it went out, *lag_ms* the
    longest that our own event loop stood still while it ran: what they delay is ours, not the
    target's. *output_hash* is of the text or the token ids, to tell same from other.
    *first_divergent_token*: the place, from 0, where the answer leaves the recorded one; None
    where it does not, or where there is nothing to compare (*compared_tokens* is then 0).
    *logprob_gap* is how far apart that token and the recorded one were, by their natural
    logarithms, or at least; None where the servers did not tell.
    """

    index: int
    rid: str | None
    status: int | None
    error: ErrorClass | None
    says: str | None
    sent_at: float | None  # seconds since 1970; None: it was never sent
    due_seconds: float
    lateness_ms: float | None
    lag_ms: float | None = None
    ttft_seconds: float | None = None
    e2e_seconds: float | None = None  # to its end, whatever end; None: it was never sent
    prompt_tokens: int | None = None
    completion_tokens: int | None = None
    cached_tokens: int | None = None
    finish_reason: str | None = None
    output_characters: int | None = None
    output_hash: str | None = None
    inter_token_p50_ms: float | None = None
    inter_token_p99_ms: float | None = None
    frames: int = 0
    compared_tokens: int = 0
    first_divergent_token: int | None = None
    logprob_gap: float | None = None

    @property
    def completed(self) -> bool:
        """Whether the target answered it to the end."""
        return self.error is None


def own_making(error: ErrorClass, *, answered_before: bool = True) -> bool:
    """Whether the failure says something of our set-up rather than of the target.

    *answered_before*: the target has answered a request of this replay by then. One that never
    did was perhaps never up, so being refused says nothing of what the requests do.
    """
    return error in _OWN_MAKING or (error == "connection-refused" and not answered_before)


def error_of_status(status: int) -> ErrorClass | None:
    """The class of an answer by its HTTP status; None for success."""
    if 200 <= status < 300:
        return None
    if status in _OF_STATUS:
        return _OF_STATUS[status]
    if 300 <= status < 400:
        return "redirected"
    if 400 <= status < 500:
        return "bad-request"
    return "server-error" if 500 <= status < 600 else "malformed-answer"


def error_of_abort(status_code: int | None) -> ErrorClass:
    """The class of an abort inside an answer with status 200, by the status that it names.

    SGLang ends a stream so: ``finish_reason`` of type abort, with ``status_code`` where the
    scheduler gave one, without it when the client or an operator aborted.
    """
    if status_code is None or 200 <= status_code < 400:
        return "aborted"
    return error_of_status(status_code) or "aborted"


def row(outcome: Outcome, recorded: Recorded) -> dict[str, Any]:
    """One line of ``replay --out``; fits into JSON as it is."""
    told: dict[str, Any] = {"index": outcome.index, "rid": outcome.rid, "status": outcome.status}
    if outcome.error is not None:
        told |= {"error": outcome.error, "says": outcome.says}
    figures = {name: getattr(outcome, name) for name in _FIGURES}
    return {**told, **figures, "recorded": {name: getattr(recorded, name) for name in _RECORDED}}


_FIGURES = (
    "sent_at", "due_seconds", "lateness_ms", "lag_ms", "ttft_seconds", "e2e_seconds",
    "prompt_tokens", "completion_tokens", "cached_tokens", "finish_reason", "output_characters",
    "output_hash", "inter_token_p50_ms", "inter_token_p99_ms", "frames", "compared_tokens",
    "first_divergent_token", "logprob_gap",
)  # fmt: skip
_RECORDED = (
    "state", "prompt_tokens", "completion_tokens", "cached_tokens", "ttft_seconds", "e2e_seconds",
    "finish_reason",
)  # fmt: skip
