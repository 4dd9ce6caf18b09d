"""Prompts for requests of which only the shape was kept (tier T0): token ids that mean nothing.

A prompt gets as many ids as the recorded one had, and prompts whose marks begin alike begin with
the same ids, so that the target's prefix cache meets what the recorded one met. What a prompt
said is not in it, and a fault that hangs on the words will not come.
"""

from collections.abc import Iterator, Mapping, Sequence
from hashlib import shake_128
from itertools import islice
from typing import Any

from app.domain.dumps.shape import BLOCK_CHARACTERS, BLOCK_TOKENS

MOST_TOKENS = 2_000_000
# Ids from the middle of every common vocabulary: special tokens stand at its ends.
_FIRST_ID, _LAST_ID = 1_000, 20_000
_SMALL_FIRST_ID = 10


def is_shape(payload: Mapping[str, Any]) -> bool:
    """Whether *payload* has lengths and marks in the place of a prompt."""
    has_length = "prompt_tokens" in payload or "prompt_characters" in payload  # one may be unknown
    return has_length and isinstance(payload.get("prefix"), list | tuple)


def prompt_of(payload: Mapping[str, Any], index: int, vocab_size: int | None) -> list[int] | None:
    """Ids for the shape *payload* of the request at *index*; None where its length is unknown.

    A mark stands for 64 tokens, or for 256 characters, which count as 64 tokens here. So do the
    characters of a prompt whose tokens nobody counted, as of one that was never finished.
    """
    length = _length(payload)
    if length is None:
        return None
    marks = payload.get("prefix") or ()
    return list(islice(_ids(marks, index, _span(vocab_size)), length))


def _length(payload: Mapping[str, Any]) -> int | None:
    told, characters = payload.get("prompt_tokens"), payload.get("prompt_characters")
    if told is None and type(characters) is int and characters > 0:
        told = -(-characters * BLOCK_TOKENS // BLOCK_CHARACTERS)
    return told if type(told) is int and 0 < told <= MOST_TOKENS else None


def _span(vocab_size: int | None) -> tuple[int, int]:
    """The first id, and how many there are from it."""
    if vocab_size is None or vocab_size >= _LAST_ID:
        return _FIRST_ID, _LAST_ID - _FIRST_ID
    first = min(_SMALL_FIRST_ID, max(0, vocab_size - 1))
    return first, max(1, vocab_size - first)


def _ids(marks: Sequence[Any], index: int, span: tuple[int, int]) -> Iterator[int]:
    """Endless: a block for each mark, then blocks that are this request's alone."""
    for mark in marks:
        yield from _block(f"mark {mark}", span)
    number = 0
    while True:
        yield from _block(f"request {index}, block {number}", span)
        number += 1


def _block(seed: str, span: tuple[int, int]) -> Iterator[int]:
    first, count = span
    octets = shake_128(seed.encode("utf-8", "backslashreplace")).digest(2 * BLOCK_TOKENS)
    return (
        first + int.from_bytes(octets[at : at + 2], "big") % count
        for at in range(0, 2 * BLOCK_TOKENS, 2)
    )
