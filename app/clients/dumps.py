"""Reading files of requests that are here, without ever trusting them.

The reading is done by ``dump_reader`` in a process that can do nothing else; here its answers
become the documents of ``dump summarize``. Whatever a file does, there is a document.
"""

import os
import secrets
from base64 import b64decode
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from hashlib import sha256
from pathlib import Path
from typing import Any

import orjson

from app.clients.opening import as_text, opened
from app.clients.sandbox import Limits, Listener, Refused, run_apart
from app.domain.dumps.recorded import Row
from app.domain.dumps.redacted import Tier
from app.domain.dumps.summary import unreadable
from app.errors import Rejected

_READER = "app.clients.dump_reader"
_MIB = 1024 * 1024
_BASE_MEMORY_BYTES = 384 * _MIB
_MEMORY_PER_BYTE = 2  # of the file: what is made of it, beside the file itself
_BASE_CPU_SECONDS = 20
_BYTES_A_CPU_SECOND = 8 * _MIB
_SECONDS_A_CPU_SECOND = 6  # that a busy machine may let it wait
_BASE_OUTPUT_BYTES = 64 * _MIB
_OUTPUT_PER_BYTE = 8  # token ids as decimals, and what JSON has to escape
_MOST_UNPACKED_BYTES = 1024 * _MIB
_MEMBER_OUTPUT_BYTES = 2 * _MOST_UNPACKED_BYTES  # in base64
_MOST_INDEXES = 10_000

Take = Callable[[Sequence[Row]], None]
Document = Mapping[str, Any]


@dataclass(frozen=True, slots=True)
class Reading:
    """How a file is read. *called* is what a person has it as; None: by its path.

    *key* makes the marks that stand in the place of secrets; None: one for this reading, so that
    marks compare within its answer only. *member* is the file in a zip archive that has several.
    """

    called: str | None = None
    key: bytes | None = None
    member: int | None = None


def summarize_file(
    path: Path,
    *,
    reading: Reading = Reading(),
    tier: Tier = "T0",
    max_requests: int = 20,
    take: Take | None = None,
) -> Document:
    """The document of ``dump summarize``; its ``kind`` is "unreadable" when the file was not read.

    It lists the suspects and then the first requests, *max_requests* in all, at T1 and T2 with a
    preview of their prompts. *take* gets all rows as well. Raises NotFound and Rejected for a
    path that has no regular file to be read.
    """
    asked = {"want": "summary", "tier": tier, "most": max_requests, "rows": take is not None}
    with _borrowed(path) as descriptor:
        document = _read(descriptor, _name(path, reading), reading, asked, _rows(take))
        return {**document, "sha256": _digest(descriptor)}


def index_file(file: Path | int, *, reading: Reading = Reading(), take: Take) -> Document:
    """Hands all rows of *file*, a path or an open descriptor, to *take*, about 1000 at a time.

    Returns the document without ``requests`` and ``sha256``. Rows that were taken stand, also
    when the document turns out to be "unreadable": they are what could be salvaged. What *take*
    raises ends the reading.
    """
    asked = {"want": "summary", "tier": "T0", "most": 0, "rows": True}
    with _borrowed(file) as descriptor:
        return _read(descriptor, _name(file, reading), reading, asked, _rows(take))


def read_requests(
    file: Path | int, indexes: Sequence[int], tier: Tier, *, reading: Reading = Reading()
) -> list[dict[str, Any]]:
    """The requests with these *indexes* as the interface's JSONL has them; at most 10 000.

    Raises Rejected when the file cannot be read any more.
    """
    found: list[dict[str, Any]] = []
    asked = {"want": "entries", "tier": tier, "indexes": list(indexes[:_MOST_INDEXES])}
    with _borrowed(file) as descriptor:
        document = _read(
            descriptor,
            _name(file, reading),
            reading,
            asked,
            lambda line: found.append(orjson.loads(line)),
        )
    if not found and document["kind"] == "unreadable":
        raise Rejected(f"{document['file']}: {document['problems'][0]}")
    return found


def export_file(
    file: Path | int,
    write: Listener,
    tier: Tier,
    *,
    indexes: Sequence[int] | None = None,
    reading: Reading = Reading(),
) -> Document:
    """Hands every request as a line of JSON, without line end, to *write*; returns the document.

    *indexes*: only these requests, at most 10 000 of them.
    """
    some = None if indexes is None else list(indexes[:_MOST_INDEXES])
    asked = {"want": "entries", "tier": tier, "indexes": some}
    with _borrowed(file) as descriptor:
        return _read(descriptor, _name(file, reading), reading, asked, write)


def unpack_member(file: Path, member: int, write: Listener) -> str | None:
    """Hands a file of the zip archive *file* to *write*, piece by piece; None: it was whole.

    Otherwise the answer is why it was not. *member* counts the ``members`` of its document.
    """
    with _borrowed(file) as descriptor:
        limits = replace(_limits(os.fstat(descriptor).st_size), output_bytes=_MEMBER_OUTPUT_BYTES)
        asked = {"want": "content"}
        outcome = run_apart(
            _READER,
            descriptor,
            _question(asked, Reading(member=member), ""),
            limits,
            take=lambda line: write(b64decode(line)),
        )
    if isinstance(outcome, Refused):
        return outcome.says
    why: str | None = outcome.value["why_not"]
    return why or ("It ends too soon." if outcome.value["truncated"] else None)


def _read(
    descriptor: int,
    name: str,
    reading: Reading,
    asked: Mapping[str, Any],
    take: Listener | None,
) -> dict[str, Any]:
    limits = _limits(os.fstat(descriptor).st_size)
    question = _question(asked, reading, name)
    outcome = run_apart(_READER, descriptor, question, limits, take=take)
    if isinstance(outcome, Refused):
        return {"file": name, **unreadable(outcome.says)}
    return {"file": name, **outcome.value}


def _question(asked: Mapping[str, Any], reading: Reading, name: str) -> dict[str, Any]:
    return {
        **asked,
        "called": Path(name).name,
        "key": (reading.key or secrets.token_bytes(32)).hex(),
        "member": reading.member,
        "most_unpacked_bytes": _MOST_UNPACKED_BYTES,
    }


def _limits(size_bytes: int) -> Limits:
    cpu_seconds = _BASE_CPU_SECONDS + size_bytes // _BYTES_A_CPU_SECOND
    return Limits(
        memory_bytes=_BASE_MEMORY_BYTES + _MEMORY_PER_BYTE * size_bytes,
        mapped_bytes=size_bytes,
        cpu_seconds=cpu_seconds,
        deadline_seconds=float(_SECONDS_A_CPU_SECOND * cpu_seconds),
        output_bytes=_BASE_OUTPUT_BYTES + _OUTPUT_PER_BYTE * size_bytes,
    )


def _rows(take: Take | None) -> Listener | None:
    if take is None:
        return None
    return lambda line: take(orjson.loads(line))


def _name(file: Path | int, reading: Reading) -> str:
    if reading.called is not None or isinstance(file, int):
        return reading.called or "file"
    return as_text(file)


def _digest(descriptor: int) -> str:
    digest, at = sha256(), 0
    while piece := os.pread(descriptor, _MIB, at):
        digest.update(piece)
        at += len(piece)
    return digest.hexdigest()


@contextmanager
def _borrowed(file: Path | int) -> Iterator[int]:
    """A descriptor of *file*; one that was given stays open."""
    if isinstance(file, int):
        yield file
        return
    descriptor = opened(file)
    try:
        yield descriptor
    finally:
        os.close(descriptor)
