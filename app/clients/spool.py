"""The bodies of a replay in a file without a name, so that no process holds them all.

The player writes it once; its processes read each body when it is due, from the same descriptor.
Whoever ends, and how ever, nothing of it is left behind.
"""

import os
import tempfile
from array import array
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import IO, Any, NamedTuple, Self

import orjson

from app.domain.replay.planned import Sending
from app.errors import NoSpace


@dataclass(frozen=True, slots=True)
class Place:
    """One sending without its body, which lies at *offset*; *index* and *due_seconds* are its own.

    The token ids that the recording has for it lie behind the body, as 64-bit integers, their log
    probabilities behind those, as 32-bit floats, and then what else it has, as JSON.
    """

    index: int
    rid: str | None
    due_seconds: float
    path: str
    offset: int
    body_bytes: int
    ids_bytes: int
    logprobs_bytes: int = 0
    recorded_bytes: int = 0


class Answered(NamedTuple):
    """What the recording has of an answer; empty where it has nothing."""

    ids: Sequence[int]
    logprobs: Sequence[float]


class Spool:
    """Bodies and their places, in the order in which they are due; gone once it is left."""

    def __init__(self) -> None:
        self.file: IO[bytes] = tempfile.TemporaryFile()  # noqa: SIM115  (closed by __exit__)
        self.places: list[Place] = []

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.file.close()

    def take(self, sendings: Iterable[Sending]) -> None:
        """Write all of them; what is asked for one by one is held one by one."""
        try:
            self._write(sendings)
            self.file.flush()
        except OSError as error:
            raise NoSpace(
                f"The bodies of the requests cannot be kept until they are due: {error.strerror}.",
                why="Nothing was sent.",
                fix=f"Make room in {tempfile.gettempdir()}, or name another folder with TMPDIR.",
            ) from error
        self.places.sort(key=lambda place: place.due_seconds)

    def _write(self, sendings: Iterable[Sending]) -> None:
        at = 0
        for one in sendings:
            ids = array("q", one.recorded.output_ids or ()).tobytes()
            logprobs = array("f", one.recorded.output_logprobs or ()).tobytes()
            parts = one.body, ids, logprobs, orjson.dumps(one.recorded.without_answer())
            self.file.writelines(parts)
            sizes = [len(part) for part in parts]
            self.places.append(Place(one.index, one.rid, one.due_seconds, one.path, at, *sizes))
            at += sum(sizes)


def table(places: Sequence[Place]) -> bytes:
    """*places* as lines of JSON."""
    return b"".join(orjson.dumps(place, option=orjson.OPT_APPEND_NEWLINE) for place in places)


def read_places(lines: Iterable[bytes]) -> Iterator[Place]:
    """The other way round."""
    for line in lines:
        told: Mapping[str, Any] = orjson.loads(line)
        yield Place(**told)


def body_at(descriptor: int, place: Place) -> bytes:
    """The body, as it is to be sent."""
    return os.pread(descriptor, place.body_bytes, place.offset)


def answered_at(descriptor: int, place: Place) -> Answered:
    """The tokens that the recording has, and how likely they were."""
    ids, logprobs = array("q"), array("f")
    behind = place.offset + place.body_bytes
    if place.ids_bytes:
        ids.frombytes(os.pread(descriptor, place.ids_bytes, behind))
    if place.logprobs_bytes:
        logprobs.frombytes(os.pread(descriptor, place.logprobs_bytes, behind + place.ids_bytes))
    return Answered(ids, logprobs)


def recorded_at(descriptor: int, place: Place) -> bytes:
    """What else the recording has, as JSON."""
    behind = place.offset + place.body_bytes + place.ids_bytes + place.logprobs_bytes
    return os.pread(descriptor, place.recorded_bytes, behind)
