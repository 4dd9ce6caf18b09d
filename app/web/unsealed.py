"""The text of a recorded request as its page shows it: in parts, each bounded."""

from collections.abc import Iterator, Mapping
from typing import Any

import orjson

from app.web.formats import visible
from app.web.views.dump_request import TextPart

SHOWN_CHARACTERS = 2_000  # at first
MOST_CHARACTERS = 40_000  # of one part, the rest behind "more"; a download has all of it
MOST_PARTS = 12
_PROMPTS = {"text": "Prompt", "prompt": "Prompt", "input_ids": "Token ids of the prompt"}
_ANSWERS = {"text": "Answer", "output_ids": "Token ids of the answer"}


def parts_of(request: Mapping[str, Any]) -> list[TextPart]:
    """The words of *request*, a line of ``dump export``: prompt, answer, then what is left."""
    payload = dict(request.get("payload") or {})
    output = (request.get("recorded") or {}).get("output") or {}
    told = [
        *_named(payload, _PROMPTS),
        *_messages(payload),
        *_named(output, _ANSWERS),
    ][: MOST_PARTS - 1]
    rest = {name: value for name, value in payload.items() if name not in _PROMPTS}
    rest.pop("messages", None)
    return [*told, *([_part("Everything else", _json(rest))] if rest else ())]


def _named(fields: Mapping[str, Any], names: Mapping[str, str]) -> Iterator[TextPart]:
    for name, label in names.items():
        value = fields.get(name)
        if value is None:
            continue
        is_ids = isinstance(value, list) and all(isinstance(one, int) for one in value)
        text = ", ".join(map(str, value)) if is_ids else value
        told = f"{label}, {len(value)} of them" if is_ids else label
        yield _part(told, text if isinstance(text, str) else _json(text))


def _messages(payload: Mapping[str, Any]) -> Iterator[TextPart]:
    messages = payload.get("messages")
    for message in messages if isinstance(messages, list) else ():
        said = message if isinstance(message, dict) else {}
        content = said.get("content")
        text = content if isinstance(content, str) else _json(message)
        yield _part(f"Message of {visible(str(said.get('role') or 'nobody'))[:40]}", text)


def _part(label: str, text: str) -> TextPart:
    return TextPart(
        label=label,
        shown=visible(text[:SHOWN_CHARACTERS]),
        more=visible(text[SHOWN_CHARACTERS:MOST_CHARACTERS]),
        characters=len(text),
        left_out=max(0, len(text) - MOST_CHARACTERS),
    )


def _json(value: object) -> str:
    return orjson.dumps(value, option=orjson.OPT_INDENT_2).decode()
