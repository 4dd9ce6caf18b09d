"""How long the prompt of a body is, and the body with a prompt that ends sooner."""

from collections.abc import Mapping
from typing import Any

_PROMPTS = ("input_ids", "text", "prompt")


def prompt_length(body: Mapping[str, Any]) -> int:
    """In token ids or characters, whichever it is made of; 0 where it is not one plain prompt.

    Of a chat the last message that is text counts: what comes before it stays.
    """
    value = _prompt(body)
    return len(value) if value is not None else 0


def with_prompt_cut(body: Mapping[str, Any], length: int) -> dict[str, Any]:
    """*body* with a prompt of at most its first *length* ids or characters."""
    if (place := _last_text(body)) is not None:
        messages = list(body["messages"])
        message = messages[place]
        messages[place] = {**message, "content": message["content"][:length]}
        return {**body, "messages": messages}
    return {
        name: value[:length] if name in _PROMPTS and _is_one(value) else value
        for name, value in body.items()
    }


def _prompt(body: Mapping[str, Any]) -> list[int] | str | None:
    if (place := _last_text(body)) is not None:
        content: str = body["messages"][place]["content"]
        return content
    return next((body[name] for name in _PROMPTS if _is_one(body.get(name))), None)


def _is_one(value: object) -> bool:
    """Whether *value* is one prompt, not several."""
    if isinstance(value, list):
        return bool(value) and isinstance(value[0], int)
    return isinstance(value, str) and bool(value)


def _last_text(body: Mapping[str, Any]) -> int | None:
    messages = body.get("messages")
    if not isinstance(messages, list):
        return None
    for place in range(len(messages) - 1, -1, -1):
        message = messages[place]
        if isinstance(message, Mapping) and _is_one(message.get("content")):
            return place
    return None
