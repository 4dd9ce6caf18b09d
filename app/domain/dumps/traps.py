"""What makes a recorded request unfit to be sent again as it is, or dangerous to send at all.

A trap that *blocks* has to be taken out of the request, or answered, before it is replayed. The
others are only to be known: they change what a replay means or takes.
"""

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import Any

from app.domain.dumps.features import is_set
from app.domain.dumps.recorded import RecordedRequest
from app.domain.dumps.scalars import escaped
from app.domain.pickled.values import Inert, attributes, items_of, text_of

LONG_OUTPUT_TOKENS = 8192
IDLE_GAP_SECONDS = 300.0
_MOST_MEDIA = 100
_MEDIA = ("image_data", "video_data", "audio_data")
_WEB = ("http://", "https://")
_FROM_DATA = "data:"
_JPEG = "/9j/"  # how base64 of a JPEG begins, which looks like a path


@dataclass(frozen=True, slots=True)
class Trap:
    """One reason to look before sending a request again; *kind* is a kebab-case word."""

    kind: str
    says: str
    blocks: bool


def replay_traps(requests: Sequence[RecordedRequest]) -> dict[int, tuple[Trap, ...]]:
    """The traps of each of *requests*, by its index; every request is there."""
    rids = Counter(request.rid for request in requests if request.rid is not None)
    rooms = Counter(room for request in requests if (room := _room(request)) is not None)
    gaps = _after_gaps(requests)
    seen: set[str | None] = set()
    found: dict[int, tuple[Trap, ...]] = {}
    for request in requests:
        traps = [*_own(request), *_room_traps(request, rooms)]
        if request.rid is not None and rids[request.rid] > 1:
            traps.append(_twice(request.rid, first=request.rid not in seen))
        seen.add(request.rid)
        if gap := gaps.get(request.index):
            traps.append(_gap(gap))
        found[request.index] = tuple(traps)
    return found


def by_arrival(requests: Sequence[RecordedRequest]) -> list[RecordedRequest]:
    """*requests* in the order they came: a dump has them in the order they ended.

    Those without a time come last, in the order of the file.
    """
    return sorted(requests, key=lambda one: (one.started_at is None, one.started_at or 0.0))


def _own(request: RecordedRequest) -> Iterator[Trap]:
    """Traps that a request has by itself."""
    payload = request.payload
    yield from _media_traps(payload)
    if is_set(payload.get("session_params")):
        session = _session(payload)
        yield Trap("session", f"Its session {session} has to be opened first.", blocks=True)
    if is_set(payload.get("lora_path")):
        adapter = escaped(str(text_of(payload["lora_path"]) or "that it names"), 80)
        yield Trap("adapter", f"Adapter {adapter} has to be loaded on the target.", blocks=True)
    if is_set(payload.get("custom_logit_processor")):
        says = "It carries serialized code that the target would run: dropped unless asked for."
        yield Trap("serialized-code", says, blocks=True)
    if request.endpoint == "/encode":
        yield Trap("embedding", "It is for an embedding: /encode, not /generate.", blocks=True)
    if "batch" in request.features:
        yield Trap("batch", "It is a batch: several requests at once.", blocks=False)
    yield from _long_output(request)


def _long_output(request: RecordedRequest) -> Iterator[Trap]:
    tokens = request.sampling.get("max_new_tokens")
    if tokens is not None and tokens > LONG_OUTPUT_TOKENS:
        state = "unfinished, " if request.state == "unfinished" else ""
        says = f"It is {state}allowed up to {tokens} tokens: cap it."
        yield Trap("cap-tokens", says, blocks=False)


def _media_traps(payload: Mapping[str, Any]) -> Iterator[Trap]:
    kinds = dict.fromkeys(_media_kind(one) for one in _media(payload))
    if "object" in kinds:
        says = "Its image, video or audio is an object: a plain URL has to take its place."
        yield Trap("media-object", says, blocks=True)
    if "local file" in kinds:
        says = "Its image, video or audio is a file of the server, which the target will not have."
        yield Trap("media-file", says, blocks=True)
    if "web" in kinds:
        says = "The target would fetch an address that the sender chose: only if you trust it."
        yield Trap("media-address", says, blocks=True)


def _media(payload: Mapping[str, Any]) -> Iterator[object]:
    """Each image, video and audio, one level of lists taken off."""
    for name in _MEDIA:
        value = payload.get(name)
        if value is None:
            continue
        for one in (items_of(value) or [value])[:_MOST_MEDIA]:
            inner = items_of(one)
            yield from [one] if inner is None else inner[:_MOST_MEDIA]


def _media_kind(value: object) -> str:
    """What a medium is: "object", "local file", "web", or "data" that goes along."""
    if isinstance(value, Inert):
        url = text_of(attributes(value).get("url"))
        return "local file" if url is not None and _is_local(url) else "object"
    if isinstance(value, Mapping):
        value = value.get("url")
    text = text_of(value)
    if text is None:
        return "data" if value is None else "object"
    if text.lower().startswith(_WEB):
        return "web"
    return "local file" if _is_local(text) else "data"


def _is_local(text: str) -> bool:
    """Whether it names a file: as SGLang does, a text that is neither address nor data."""
    start = text[:16].lower()
    if start.startswith((*_WEB, _FROM_DATA)) or text.startswith(_JPEG):
        return False
    return start.startswith(("file:", "/", "./", "../")) or text.lower().endswith(_ENDINGS)


_ENDINGS = (".png", ".jpg", ".jpeg", ".webp", ".gif", ".mp4", ".mp3", ".wav", ".webm")


def _session(payload: Mapping[str, Any]) -> str:
    session = payload.get("session_params")
    if isinstance(session, Mapping) and (named := text_of(session.get("id"))):
        return escaped(named, 80)
    return "that it names"


def _room(request: RecordedRequest) -> int | None:
    room = request.payload.get("bootstrap_room")
    return room if type(room) is int else None


def _room_traps(request: RecordedRequest, rooms: Counter[int]) -> Iterator[Trap]:
    room = _room(request)
    if room is None and not is_set(request.payload.get("bootstrap_host")):
        return
    shared = room is not None and rooms[room] > 1
    told = (
        f"bootstrap_room {room}" if room is not None and abs(room) < 1 << 63 else "a bootstrap host"
    )
    says = f"It names {told}: never to be sent to prefill and decode engines as it is."
    if shared:
        says += f" {rooms[room or 0]} requests name it, which can crash both schedulers."
    yield Trap("bootstrap-room", says, blocks=True)


def _twice(rid: str, *, first: bool) -> Trap:
    also = "again later" if first else "before"
    return Trap(
        "duplicate-rid", f"Identifier {rid} is there {also}: give it a new one.", blocks=False
    )


def _after_gaps(requests: Sequence[RecordedRequest]) -> dict[int, float]:
    """Indexes of requests that came after a long silence, and how many seconds it was."""
    ordered = [one for one in by_arrival(requests) if one.started_at is not None]
    gaps = {}
    for before, after in pairwise(ordered):
        gap = (after.started_at or 0.0) - (before.started_at or 0.0)
        if gap > IDLE_GAP_SECONDS:
            gaps[after.index] = gap
    return gaps


def _gap(seconds: float) -> Trap:
    says = f"It came {seconds:.0f} s after the one before: that silence need not be waited out."
    return Trap("idle-gap", says, blocks=False)
