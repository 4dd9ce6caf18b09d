"""A payload's shape (tier T0): parameters and lengths, and marks that tell shared prefixes.

Of texts and token ids only the length stays, and one keyed hash for each block from the start:
two requests whose first marks are alike begin alike, which is what a prefix cache sees. Without
the key the marks say nothing.
"""

from collections.abc import Iterator, Mapping
from hashlib import sha256
from itertools import islice
from typing import Any

from app.domain.dumps.features import is_set
from app.domain.dumps.recorded import RecordedRequest
from app.domain.dumps.scalars import is_figure, is_name
from app.domain.pickled.values import ints_of, items_of, text_of
from app.domain.redaction import Fingerprint

BLOCK_TOKENS = 64
BLOCK_CHARACTERS = 256
_MOST_BLOCKS = 256
_MOST_FIELDS = 200
_MEDIA = ("image_data", "video_data", "audio_data")
_OWN = (
    "rid",
    "features",
    "prompt_tokens",
    "prompt_characters",
    "sampling_params",
    "text",
    "input_ids",
    "prompt",
    "messages",
    *_MEDIA,
)


def shape_of(request: RecordedRequest, fingerprint: Fingerprint) -> dict[str, Any]:
    """The payload of *request* without anybody's words."""
    payload = request.payload
    return {
        "prompt_tokens": request.prompt_tokens,
        "prompt_characters": request.prompt_characters,
        "prefix": list(_prefix_marks(payload, fingerprint)),
        "sampling_params": request.sampling,
        "features": request.features,
        **{f"{name}_count": _count(payload.get(name)) for name in _MEDIA if payload.get(name)},
        **_switches(payload),
    }


def _switches(payload: Mapping[str, Any]) -> dict[str, Any]:
    """Numbers and switches that are set: parameters, not content."""
    return {
        name: value
        for name, value in islice(payload.items(), _MOST_FIELDS)
        if name not in _OWN and is_name(name) and is_figure(value) and is_set(value)
    }


def _prefix_marks(payload: Mapping[str, Any], fingerprint: Fingerprint) -> Iterator[str]:
    """A mark for each whole block of the prompt; each depends on all before it."""
    chain = sha256()
    for block in islice(_blocks(payload), _MOST_BLOCKS):
        chain.update(block)
        yield fingerprint(chain.hexdigest())


def _blocks(payload: Mapping[str, Any]) -> Iterator[bytes]:
    ids = ints_of(payload.get("input_ids"))
    if ids is not None:
        each = iter(ids)
        while len(block := tuple(islice(each, BLOCK_TOKENS))) == BLOCK_TOKENS:
            yield ",".join(map(str, block)).encode()
        return
    text = text_of(payload.get("text")) or text_of(payload.get("prompt")) or ""
    for start in range(0, len(text) - BLOCK_CHARACTERS + 1, BLOCK_CHARACTERS):
        yield text[start : start + BLOCK_CHARACTERS].encode("utf-8", "surrogatepass")


def _count(value: object) -> int:
    items = items_of(value)
    return 1 if items is None else len(items)
