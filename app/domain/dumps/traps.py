"""What makes a recorded request unfit to be sent again as it is, or dangerous to send at all.

Each trap is a kebab-case word; what becomes of it is told where a replay is planned.
"""

from collections.abc import Iterator, Mapping
from itertools import islice
from typing import Any

from app.domain.dumps.features import is_set
from app.domain.dumps.recorded import RecordedRequest
from app.domain.dumps.scalars import escaped
from app.domain.pickled.values import Inert, attributes, items_of, text_of

LONG_OUTPUT_TOKENS = 8192
_MOST_MEDIA = 100
_MOST_IN_MESSAGES = 10_000
_MOST_ADAPTERS = 3
_LONGEST_NAME = 80
_MEDIA = ("image_data", "video_data", "audio_data")
_PARTS = tuple(  # of a message: the fields that a medium stands in
    name for kind in ("image", "video", "audio") for name in (f"{kind}_url", f"input_{kind}", kind)
)
_WORDS = frozenset(("type", "text"))  # what most parts have
_WEB = ("http://", "https://")
_FROM_DATA = "data:"
# How base64 of a JPEG, a JPEG XL and an MP3 begins, which looks like a path.
_BASE64 = ("/9j/", "/woA", "//uQ", "//NE")
_ENDINGS = (".png", ".jpg", ".jpeg", ".webp", ".gif", ".mp4", ".mp3", ".wav", ".webm")


def traps_of(request: RecordedRequest) -> Iterator[str]:
    """The traps of *request*, each once."""
    payload = request.payload
    yield from dict.fromkeys(filter(None, map(_media_trap, _media(payload))))
    if is_set(payload.get("session_params")) or is_set(payload.get("session_id")):
        yield "session"
    if is_set(payload.get("lora_path")):
        yield "adapter"
    if is_set(payload.get("custom_logit_processor")):
        yield "serialized-code"
    if request.endpoint == "/encode":
        yield "embedding"
    if "batch" in request.features:
        yield "batch"
    if (request.sampling.get("max_new_tokens") or 0) > LONG_OUTPUT_TOKENS:
        yield "cap-tokens"
    # Room 0 is one too.
    if type(payload.get("bootstrap_room")) is int or is_set(payload.get("bootstrap_host")):
        yield "bootstrap-room"


def session_of(payload: Mapping[str, Any]) -> str | None:
    """The session that a request belongs to, safe to print; None of none, or of one unnamed."""
    told = payload.get("session_params")
    first = next(iter(items_of(told) or ()), told)  # of a batch, each has its own table
    named = first.get("id") if isinstance(first, Mapping) else payload.get("session_id")
    text = text_of(named)
    return escaped(text, _LONGEST_NAME) if text else None


def conversation_of(payload: Mapping[str, Any]) -> str | None:
    """The conversation whose turn a request is, safe to print: turns share their prompts."""
    text = text_of(payload.get("conversation_id"))
    return f"conversation {escaped(text, _LONGEST_NAME)}" if text else None


def adapters_of(payload: Mapping[str, Any]) -> str:
    """The adapters that a request names, safe to print; empty of none."""
    told = payload.get("lora_path")
    named = dict.fromkeys(filter(None, map(text_of, items_of(told) or (told,))))
    return ", ".join(escaped(one, _LONGEST_NAME) for one in islice(named, _MOST_ADAPTERS))


def _media(payload: Mapping[str, Any]) -> Iterator[object]:
    """Each image, video and audio, one level of lists taken off."""
    for name in _MEDIA:
        value = payload.get(name)
        if value is None:
            continue
        for one in (items_of(value) or [value])[:_MOST_MEDIA]:
            inner = items_of(one)
            yield from [one] if inner is None else inner[:_MOST_MEDIA]
    yield from islice(_of_messages(payload), _MOST_IN_MESSAGES)


def _of_messages(payload: Mapping[str, Any]) -> Iterator[object]:
    """Each medium in the parts of a chat's messages."""
    for message in items_of(payload.get("messages")) or ():
        content = message.get("content") if isinstance(message, Mapping) else None
        for part in items_of(content) or ():
            if isinstance(part, Mapping) and not _WORDS.issuperset(part):
                yield from (_of_part(part[name]) for name in _PARTS if name in part)


def _of_part(value: object) -> object:
    """Sound stands as ``{"data": …, "format": …}``, all else as a text or under its URL."""
    if isinstance(value, Mapping) and "url" not in value:
        return value.get("data")
    return value


def _media_trap(value: object) -> str | None:
    """What is wrong with a medium; None of one that goes along as it is."""
    if isinstance(value, Inert):
        url = text_of(attributes(value).get("url"))
        return "media-file" if url is not None and _is_local(url) else "media-object"
    if isinstance(value, Mapping):
        value = value.get("url")
    text = text_of(value)
    if text is None:
        return None if value is None else "media-object"
    if text.lower().startswith(_WEB):
        return "media-address"
    return "media-file" if _is_local(text) else None


def _is_local(text: str) -> bool:
    """Whether it names a file: as SGLang does, a text that is neither address nor data."""
    start = text[:16].lower()
    if start.startswith((*_WEB, _FROM_DATA)) or text.startswith(_BASE64):
        return False
    return start.startswith(("file:", "/", "./", "../")) or text.lower().endswith(_ENDINGS)
