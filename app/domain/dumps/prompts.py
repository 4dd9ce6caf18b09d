"""How long a request's prompt is, and whether it is several requests in one."""

from collections.abc import Mapping
from typing import Any

from app.domain.dumps.containers import array_length
from app.domain.dumps.scalars import Looked
from app.domain.pickled.ints import Ints
from app.domain.pickled.values import Text, ints_of

# Of what kind the members are when the field has one prompt each.
_OF_PROMPTS: tuple[tuple[str, tuple[type, ...]], ...] = (
    ("text", (str, Text)),
    ("prompt", (str, list)),
    ("input_ids", (list, tuple, Ints)),
)
_MOST_PROMPTS = 10_000  # of a batch, and messages of a chat


def rid_and_batch(payload: Mapping[str, Any], looked: Looked) -> tuple[str | None, bool]:
    """The identifier, of a batch its first, and whether it is a batch."""
    rid = payload.get("rid")
    if isinstance(rid, list | tuple):
        several = len(rid) > 1
        rid = rid[0] if rid else None
    else:
        size = payload.get("batch_size")
        several = type(size) is int and size > 1
    return looked.name("rid", rid), several or _several_prompts(payload)


def _several_prompts(payload: Mapping[str, Any]) -> bool:
    for name, kinds in _OF_PROMPTS:
        value = payload.get(name)
        if isinstance(value, list | tuple) and len(value) > 1 and isinstance(value[0], kinds):
            return True
    return False


def prompt_tokens(payload: Mapping[str, Any], recorded: int | None) -> int | None:
    """Tokens of the prompt, all prompts of a batch together; *recorded* by the server if it is."""
    if recorded is not None:
        return recorded
    for name in ("input_ids", "prompt"):
        value = payload.get(name)
        if value is not None and (counted := _ids_in(value)) is not None:
            return counted
    return _told(payload, "prompt_tokens")


def _told(payload: Mapping[str, Any], name: str) -> int | None:
    """What our own export at T0 has in the place of text and ids."""
    value = payload.get(name)
    return value if type(value) is int and value >= 0 else None


def _ids_in(value: object) -> int | None:
    if (ids := ints_of(value)) is not None:
        return len(ids)
    if (length := array_length(value)) is not None:
        return length
    if not isinstance(value, list | tuple) or not value:
        return None
    counted = 0
    for one in value[:_MOST_PROMPTS]:
        if (ids := ints_of(one)) is None:
            return None
        counted += len(ids)
    return counted


def prompt_characters(payload: Mapping[str, Any]) -> int | None:
    """Characters of the prompt's text, all texts of a batch or chat together; None without any."""
    for name in ("text", "prompt"):
        if (value := payload.get(name)) is not None:
            return _characters(value)
    messages = payload.get("messages")
    if not isinstance(messages, list):
        return _told(payload, "prompt_characters")
    contents = [one.get("content") for one in messages[:_MOST_PROMPTS] if isinstance(one, Mapping)]
    sizes = [_characters(content) for content in contents]
    return sum(size for size in sizes if size is not None)


def _characters(value: object) -> int | None:
    size = _length(value)
    if size is not None or not isinstance(value, list | tuple):
        return size
    sizes = [_of_part(one) for one in value[:_MOST_PROMPTS]]
    known = [one for one in sizes if one is not None]
    return sum(known) if known else None


def _of_part(value: object) -> int | None:
    """Of a text, of a part of a message's content, or of a pair for a cross-encoder."""
    if isinstance(value, Mapping):
        return _length(value.get("text"))
    if isinstance(value, list | tuple):
        return sum(_length(one) or 0 for one in value[:_MOST_PROMPTS])
    return _length(value)


def _length(value: object) -> int | None:
    """Characters of a string; None when it is none. A long one is read and let go again."""
    if isinstance(value, Text):
        return len(str(value))
    return len(value) if isinstance(value, str) else None
