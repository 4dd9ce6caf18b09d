"""What one piece of an answer says, whichever route it comes from: one frame, or a whole body.

Shapes of SGLang 0.4.6 to 0.5.23 (``/generate``, ``/encode``) and of the OpenAI routes. Everything
here comes from the target: figures are taken only where they are figures.
"""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from app.domain.figures import table
from app.domain.replay.outcomes import ErrorClass, error_of_abort, error_of_status

ALL = -1  # the place of figures that hold for all parts together
_MOST = 1 << 40


@dataclass(slots=True)  # not frozen: made for every frame, and that takes three times as long
class Said:
    """One part of an answer; *place* tells the answers of a batch apart.

    *added* is text that comes behind what was said before; *text* may be that, or all of it so
    far: ``answer`` finds out which.
    """

    place: int = 0
    text: str = ""
    added: bool = False
    ids: list[int] | None = None
    logprobs: tuple[list[Any], Any] | None = None  # of its tokens, and of the likeliest there
    prompt_tokens: int | None = None
    completion_tokens: int | None = None
    cached_tokens: int | None = None
    finish_reason: str | None = None
    error: ErrorClass | None = None
    says: str | None = None


def count(value: object) -> int | None:
    """*value* as a number of things; None where it is none."""
    return value if type(value) is int and 0 <= value < _MOST else None


def said(value: Any) -> Iterator[Said]:  # noqa: ANN401  (whatever JSON says)
    """The parts of *value*; none where it is nothing that a server answers with."""
    if isinstance(value, list):
        for place, one in enumerate(value):
            if isinstance(one, dict) and _is_native(one):
                yield _native(one, place)
    elif isinstance(value, dict):
        if value.get("error") is not None:
            yield _error(value["error"])
        elif isinstance(value.get("choices"), list):
            yield from _openai(value)
        elif _is_native(value):
            yield _native(value, 0)
        else:
            yield from _usage(value)


def words(body: Any) -> str | None:  # noqa: ANN401
    """What an error body says for people: the message of any of the shapes that there are."""
    told = body.get("error", body) if isinstance(body, dict) else body
    if isinstance(told, dict):
        told = told.get("message") or told.get("detail")
    return told if isinstance(told, str) else None


def _is_native(value: Mapping[str, Any]) -> bool:
    """Whether it has anything of an answer: what stands before the server may say any JSON."""
    return (
        isinstance(value.get("meta_info"), dict)
        or isinstance(value.get("text"), str)
        or isinstance(value.get("output_ids"), list)
        or value.get("embedding") is not None
    )


def _native(value: Mapping[str, Any], place: int) -> Said:
    meta = value.get("meta_info")
    meta = meta if isinstance(meta, dict) else {}
    text, ids = value.get("text"), value.get("output_ids")
    logprobs = meta.get("output_token_logprobs")
    finish = meta.get("finish_reason")
    error, says = _abort(finish) if isinstance(finish, dict) else (None, None)
    return Said(
        place=count(value.get("index")) or place,
        text=text if isinstance(text, str) else "",
        ids=ids if isinstance(ids, list) else None,
        logprobs=None if logprobs is None else _logprobs(logprobs, meta),
        prompt_tokens=count(meta.get("prompt_tokens")),
        completion_tokens=count(meta.get("completion_tokens")),
        cached_tokens=count(meta.get("cached_tokens")),
        finish_reason=_reason(finish),
        error=error,
        says=says,
    )


def _logprobs(told: object, meta: Mapping[str, Any]) -> tuple[list[Any], Any] | None:
    return (told, meta.get("output_top_logprobs")) if isinstance(told, list) else None


def _reason(finish: object) -> str | None:
    """SGLang's is a table with a type; before 0.4 and on OpenAI's routes it is a word."""
    told = finish.get("type") if isinstance(finish, dict) else finish
    return told[:40] if isinstance(told, str) else None


def _abort(finish: Mapping[str, Any]) -> tuple[ErrorClass | None, str | None]:
    if finish.get("type") != "abort":
        return None, None
    message = finish.get("message")
    return (
        error_of_abort(count(finish.get("status_code"))),
        message if isinstance(message, str) else None,
    )


def _error(told: Any) -> Said:  # noqa: ANN401
    """An error in an answer with status 200: its code is the status that it would have had."""
    code = count(told.get("code")) if isinstance(told, dict) else None
    error = error_of_status(code) if code is not None else None
    return Said(error=error or "aborted", says=words({"error": told}))


def _openai(value: Mapping[str, Any]) -> Iterator[Said]:
    choices = [one for one in value["choices"] if isinstance(one, dict)]
    for place, choice in enumerate(choices):
        reason = _reason(choice.get("finish_reason"))
        yield Said(
            place=count(choice.get("index")) or place,
            text=_words_of(choice),
            added=True,
            finish_reason=reason,
            error="aborted" if reason == "abort" else None,
        )
    yield from _usage(value)


def _usage(value: Mapping[str, Any]) -> Iterator[Said]:
    """The figures of a whole answer; of OpenAI's embeddings they are all that is looked at."""
    usage = value.get("usage")
    if isinstance(usage, dict):
        yield Said(
            place=ALL,
            added=True,
            prompt_tokens=count(usage.get("prompt_tokens")),
            completion_tokens=count(usage.get("completion_tokens")),
            cached_tokens=count(table(usage.get("prompt_tokens_details")).get("cached_tokens")),
        )


def _words_of(choice: Mapping[str, Any]) -> str:
    """Everything that the model said in it: answer, reasoning and arguments of tools."""
    if isinstance(choice.get("text"), str):
        return str(choice["text"])
    told = table(choice.get("delta") or choice.get("message"))
    told_calls = told.get("tool_calls")
    calls = told_calls if isinstance(told_calls, list) else ()
    parts = [told.get("reasoning_content"), told.get("content"), *map(_arguments, calls)]
    return "".join(part for part in parts if isinstance(part, str))


def _arguments(call: object) -> object:
    return table(table(call).get("function")).get("arguments")
