"""What a person should know of the requests before they are sent, in words."""

from collections import Counter
from collections.abc import Container, Iterable, Iterator, Mapping
from dataclasses import dataclass, field

from app.domain.counting import counted
from app.domain.dumps.recorded import RecordedRequest
from app.domain.dumps.traps import adapters_of, session_of, traps_of
from app.domain.replay.options import Options

_MOST_NAMED = 3
_MOST_INDEXES = 100
_MOST_ALIKE = 10  # notes of one kind, each of another session, adapter or room
_MOST_DETAILS = 1000  # sessions, adapters, rooms and the like that are kept apart


@dataclass(frozen=True, slots=True)
class Note:
    """One thing to know. *indexes* are the requests it is of, the first hundred of *count*."""

    kind: str  # of the trap, see ``dumps.traps``
    says: str
    count: int
    indexes: tuple[int, ...]


@dataclass(slots=True)
class _Of:
    """The requests that have one trap in one way: the same session, adapter, room."""

    kind: str
    detail: str
    members: list[tuple[int, str | None]] = field(default_factory=list)


class Notes:
    """Collects notes while requests pass by, of which it keeps names and places alone."""

    def __init__(self) -> None:
        self._found: dict[tuple[str, str], _Of] = {}
        self._rids: dict[str, list[int]] = {}

    def see(self, request: RecordedRequest) -> None:
        """Take *request* into account."""
        for kind in traps_of(request):
            self._add(kind, _detail(kind, request), request)
        if request.rid is not None:
            self._rids.setdefault(request.rid, []).append(request.index)

    def told(self, sent: Container[int], options: Options) -> Iterator[Note]:
        """The notes of the requests that are *sent*, in the order of the first that has each."""
        told, more = Counter[str](), dict[str, list[int]]()
        for found in self._found.values():
            members = [one for one in found.members if one[0] in sent]
            indexes = [index for index, _ in members]
            if members and told[found.kind] < _MOST_ALIKE:
                told[found.kind] += 1
                yield _note(found.kind, _says(found, members, options), indexes)
            else:
                more.setdefault(found.kind, []).extend(indexes)
        for kind, indexes in more.items():
            if indexes:
                says = f"{counted(len(indexes), 'more request')}: the same, each with its own name."
                yield _note(kind, says, indexes)
        twice = {rid: own for rid, own in self._rids.items() if len(own) > 1}
        yield from _duplicates(twice, sent)

    def _add(self, kind: str, detail: str, request: RecordedRequest) -> None:
        if (kind, detail) not in self._found and len(self._found) >= _MOST_DETAILS:
            detail = "(others)"
        found = self._found.setdefault((kind, detail), _Of(kind, detail))
        found.members.append((request.index, request.rid))


def _detail(kind: str, request: RecordedRequest) -> str:
    """What sets requests with the same trap apart: which session, adapter, room."""
    payload = request.payload
    if kind == "session":
        return session_of(payload) or "that it names"
    if kind == "adapter":
        return adapters_of(payload) or "that it names"
    if kind == "bootstrap-room":
        room = payload.get("bootstrap_room")
        return str(room) if type(room) is int and abs(room) < 1 << 63 else ""
    if kind == "cap-tokens":
        return f"{request.sampling['max_new_tokens']:.0f}"
    return ""


def _says(found: _Of, members: list[tuple[int, str | None]], options: Options) -> str:
    who = _who(members)
    several = len(members) > 1
    code = "custom-code" in options.allow
    addresses = "media-addresses" in options.allow
    detail = found.detail
    words = {
        "media-object": f"{who}: the image, video or audio is an object; a plain URL takes its"
        f" place{'' if addresses else ', and a placeholder that of its address'}.",
        "media-file": f"{who}: the image, video or audio is a file of the old server, which the"
        " target will not have; a placeholder takes its place.",
        "media-address": f"{who}: the target "
        + ("will fetch" if addresses else "is not made to fetch")
        + " an address that the sender chose"
        + ("." if addresses else "; a placeholder takes its place."),
        "session": f"{who}: needs session {detail} opened first; sent without it, so with its own"
        " part of the prompt alone.",
        "bootstrap-room": _room(who, detail, several=several),
        "adapter": f"{who}: adapter {detail} must be loaded on the target.",
        "batch": f"{who}: a batch, several prompts in one request.",
        "serialized-code": f"{who}: carries serialized code, "
        + ("which the target will run, as you allowed." if code else "which is taken out."),
        "embedding": f"{who}: an embedding, sent to /encode and not to /generate.",
        "cap-tokens": f"{who}: allowed up to {detail} tokens, capped at {options.most_new_tokens}.",
    }
    return words.get(found.kind, f"{who}: {found.kind}.")


def _room(who: str, room: str, *, several: bool) -> str:
    named = f"bootstrap_room {room}" if room else "a bootstrap host"
    if several and room:
        return (
            f"{who}: all name {named}, which can crash both schedulers of a split server; taken"
            " out, and never sent to prefill or decode engines as it is."
        )
    return f"{who}: names {named}; taken out, and never sent to prefill or decode engines as it is."


def _duplicates(twice: Mapping[str, list[int]], sent: Container[int]) -> Iterator[Note]:
    own = [(rid, [index for index in indexes if index in sent]) for rid, indexes in twice.items()]
    own = [(rid, indexes) for rid, indexes in own if len(indexes) > 1]
    for rid, indexes in own[:_MOST_NAMED]:
        times = "twice" if len(indexes) == 2 else f"{len(indexes)} times"
        yield _note("duplicate-rid", f"{rid} is there {times}; each gets a new one.", indexes)
    if len(own) > _MOST_NAMED:
        rest = [index for _, indexes in own[_MOST_NAMED:] for index in indexes]
        more = counted(len(own) - _MOST_NAMED, "more identifier")
        yield _note("duplicate-rid", f"{more} are there several times; each gets a new one.", rest)


def _who(members: list[tuple[int, str | None]]) -> str:
    named = [rid or f"request {index}" for index, rid in members[:_MOST_NAMED]]
    more = len(members) - len(named)
    return ", ".join(named) + (f" and {more:,} more" if more else "")


def _note(kind: str, says: str, indexes: Iterable[int]) -> Note:
    all_of_them = tuple(indexes)
    return Note(kind, says, len(all_of_them), all_of_them[:_MOST_INDEXES])
