"""What of a failure everybody may read (tier T0), and what stays with the raw outcomes (T2).

A target may answer with the prompt that it was sent: "Failed to load image /home/…", "Invalid
grammar: …". So of its own words only what they mean is told, where they are ones of SGLang's that
we know, with the figures in them; of all others, how many there are.
"""

import re
from dataclasses import replace

from app.domain.counting import counted
from app.domain.replay.outcomes import ErrorClass, Outcome
from app.domain.replay.planned import Recorded

_BY_TARGET: frozenset[ErrorClass] = frozenset(
    (
        "bad-request",
        "unauthorized",
        "not-found",
        "too-many",
        "overloaded",
        "server-error",
        "aborted",
    )
)
# Of SGLang 0.4.6 to 0.5.23 and of the OpenAI routes; "other" is that of a recording.
_REASONS = frozenset(
    ("stop", "length", "abort", "tool_calls", "function_call", "content_filter", "other")
)
# How messages of SGLang 0.4.6 to 0.5.23 begin, and what they say; groups are figures. Nothing is
# looked for further on, where a prompt may stand.
_KNOWN = tuple(
    (re.compile(begins, re.IGNORECASE), meaning)
    for begins, meaning in (
        (r"the request queue is full", "its queue is full"),
        (r"request waiting timeout reached", "the request waited too long"),
        (r"request running timeout reached", "the request ran too long"),
        (r"kv cache pool is full", "its KV cache is full"),
        (r"cuda out of memory|out of memory", "it is out of memory"),
        (r"cuda error", "CUDA failed"),
        (
            r"the input \((\d{1,9}) tokens\) is longer than the model's context length \((\d{1,9})",
            "the prompt has {0} tokens and its context {1}",
        ),
        (
            r"input length \((\d{1,9}) tokens\) exceeds the maximum allowed length \((\d{1,9})",
            "the prompt has {0} tokens and {1} are allowed",
        ),
        (
            r"requested token count exceeds the model's maximum context length of (\d{1,9})",
            "more was asked for than its context of {0} tokens",
        ),
        (r"the input is too long", "the prompt is too long"),
        (r"(?:got )?lora adapter|the following requested lora", "it lacks the adapter"),
        (r"(?:invalid request: requested )?session ", "it lacks the session"),
        (r"duplicate request id", "the identifier is there already"),
        (r"unknown field|unknown variant", "it does not know a field"),
        (r"missing field|invalid type|invalid value", "a field is not as it takes it"),
        (r"failed to compile|invalid grammar", "it does not take the grammar"),
        (r"failed to load (?:image|video|audio)|cannot identify image", "it cannot load a medium"),
        (r"abort", "the request was aborted"),
        (r"unauthorized", "the key is missing or wrong"),
        (r"not found", "there is no such route"),
        (r"internal server error", "something failed inside it"),
    )
)


def without_words(outcome: Outcome) -> Outcome:
    """*outcome* without what the target said of its failure."""
    return replace(outcome, says=phrase(outcome.error, outcome.status, outcome.says))


def at_t0(outcome: Outcome, recorded: Recorded) -> tuple[Outcome, Recorded]:
    """Both as everybody may read them: no word of either server."""
    told = replace(without_words(outcome), finish_reason=reason(outcome.finish_reason))
    return told, replace(recorded, finish_reason=reason(recorded.finish_reason))


def reason(told: str | None) -> str | None:
    """Why an answer ended, where that is a word that servers have for it."""
    if told is None or told in _REASONS:
        return told
    return f"other ({counted(len(told), 'character')})"


def phrase(error: str | None, status: int | None, says: str | None) -> str | None:
    """What a failure of class *error* may be told with, instead of the words *says*."""
    if error == "redirected":
        return redirected()
    if says is None or not says.strip():
        return None
    if not _is_of_target(error, status):
        return says
    for pattern, meaning in _KNOWN:
        if found := pattern.match(says.strip()):
            return f"It says that {meaning.format(*found.groups())}."
    return f"It says why in {counted(len(says), 'character')}, kept with the raw outcomes."


def redirected(location: str = "") -> str:
    """What is told of a redirect; of *location* what stands before its query, which may be a key.

    Where it leads is the target's own word: at T0 it is not told.
    """
    where = re.split(r"[?#]", location, maxsplit=1)[0]
    return f"It redirects {f'to {where}' if where else 'elsewhere'}; no redirect is followed."


def _is_of_target(error: str | None, status: int | None) -> bool:
    """Whether the words are the target's: what never was an answer is told in ours."""
    of_status = error == "malformed-answer" and not 200 <= (status or 0) < 300
    return error in _BY_TARGET or of_status
