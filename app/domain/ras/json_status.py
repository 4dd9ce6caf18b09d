"""NCCL's RAS as JSON, since NCCL 2.28.7: the raw data, rank by rank."""

import re
from collections.abc import Iterator
from typing import Any

from app.domain.plain_json import read_json
from app.domain.ras.status import (
    ERRORS,
    IN_PROGRESS,
    MOST_RANKS,
    MOST_WORDS,
    Absent,
    Communicator,
    Member,
    Status,
    Whose,
    spread_of,
)
from app.errors import Malformed

_DEEPEST = 12
_LARGEST = 2**63
# A string that does not end goes on to the end, so that no byte is looked at twice.
_TOKEN = re.compile(rb'"(?:[^"\\]|\\.)*+(?:"|\\?\Z)|[{}\[\]]', re.DOTALL)
_LIST = b"["
_CLOSING = {b"{": b"}", _LIST: b"]"}


def read_json_status(body: bytes) -> Status:
    """The status in *body*; of one that ends in the middle all ranks that are whole.

    Raises Malformed where it is not NCCL's.
    """
    whole = True
    try:
        told = read_json(body)
    except Malformed:
        told, whole = read_json(_mended(body)), False
    if not isinstance(told, dict) or not isinstance(told.get("communicators"), list):
        raise Malformed("This JSON has no communicators: it is not from NCCL RAS.")
    communicators = tuple(_communicators(told["communicators"]))
    absent = [one for each in communicators for one in each.absent]
    dead = tuple(dict.fromkeys(one.whose for one in absent if one.dead))
    silent = dict.fromkeys(one.whose for one in absent if one.silent and not one.dead)
    ras = told.get("ras")
    return Status(
        form="json",
        version=_words(told.get("nccl_version")),
        whole=whole,
        communicators=communicators,
        dead=dead,
        silent=tuple(silent),
        dead_count=len(dead),
        silent_count=len(silent),
        timeouts=_count(ras.get("timeouts_count")) or 0 if isinstance(ras, dict) else 0,
        written_at=_words(told.get("timestamp")),
    )


def _mended(body: bytes) -> bytes:
    """*body* up to the last thing in a list that is whole, with what is open closed.

    Raises Malformed where there is none.
    """
    open_now: list[bytes] = []
    end, closers = 0, b""
    for found in _TOKEN.finditer(body):
        token = found[0]
        if token in _CLOSING:
            open_now.append(token)
        elif token in (b"}", b"]"):
            if not open_now or _CLOSING[open_now.pop()] != token:
                break
            if open_now and open_now[-1] == _LIST:
                end = found.end()
                closers = b"".join(_CLOSING[one] for one in reversed(open_now))
        if len(open_now) > _DEEPEST:
            break
    if not end:
        raise Malformed("This JSON ends before anything in it is whole.")
    return body[:end] + closers


def _communicators(told: list[Any]) -> Iterator[Communicator]:
    for one in told:
        if not isinstance(one, dict) or (name := _words(one.get("hash"))) is None:
            continue
        second = _words(one.get("secondary_hash"))
        members = tuple(_members(one.get("ranks")))
        yield Communicator(
            id=f"{_plain_hash(name)} {second}" if second else _plain_hash(name),
            size=_count(one.get("size")),
            members=members,
            absent=tuple(_absent(one.get("missing_ranks"))),
            spread=spread_of(members),
        )


def _members(told: object) -> Iterator[Member]:
    for one in _dicts(told):
        if (rank := _count(one.get("rank"))) is None:
            continue
        status = one.get("status")
        status = status if isinstance(status, dict) else {}
        yield Member(rank, _whose(one), _counts(one), _state(status), _error(status))


def _absent(told: object) -> Iterator[Absent]:
    for one in _dicts(told):
        if (rank := _count(one.get("rank"))) is None:
            continue
        status = one.get("status")
        status = status if isinstance(status, dict) else {}
        silent, dead = _flag(status, "unresponsive"), _flag(status, "considered_dead")
        yield Absent(rank, _whose(one), silent, dead)


def _dicts(told: object) -> list[dict[str, Any]]:
    """The objects in a list; none where it is no list."""
    if not isinstance(told, list):
        return []
    return [one for one in told[:MOST_RANKS] if isinstance(one, dict)]


def _whose(told: dict[str, Any]) -> Whose:
    host = _words(told.get("host"))
    return Whose(
        host=None if host == "unknown" else host,
        pid=_count(told.get("pid")) or None,
        cuda_device=_count(told.get("cuda_dev")),
        nvml_device=_count(told.get("nvml_dev")),
    )


def _counts(told: dict[str, Any]) -> dict[str, int]:
    counts = told.get("collective_counts")
    if not isinstance(counts, dict):
        return {}
    found = {kind[:MOST_WORDS]: _count(value) for kind, value in list(counts.items())[:64]}
    return {kind: value for kind, value in found.items() if value is not None}


def _state(status: dict[str, Any]) -> str | None:
    """As the text words it: a rank that aborts or ends its communicator says so first."""
    if _flag(status, "abort_flag"):
        return "ABORT"
    if _flag(status, "finalize_called") or _flag(status, "destroy_flag"):
        return "FINALIZE"
    begun = _count(status.get("init_state"))
    if begun is None:
        return None
    return "RUNNING" if begun == 0 else "INIT"


def _error(status: dict[str, Any]) -> str | None:
    for name in ("init_state", "async_error"):
        code = _count(status.get(name))
        if code not in (None, 0, IN_PROGRESS):
            return ERRORS.get(code or 0, f"error {code}")
    return None


def _flag(told: dict[str, Any], name: str) -> bool | None:
    value = told.get(name)
    return value if isinstance(value, bool) else None


def _count(value: object) -> int | None:
    known = isinstance(value, int) and not isinstance(value, bool) and 0 <= value < _LARGEST
    return value if known and isinstance(value, int) else None


def _words(value: object) -> str | None:
    return value[:MOST_WORDS] if isinstance(value, str) and value else None


def _plain_hash(told: str) -> str:
    """As the text writes it: sixteen digits without 0x."""
    return told.removeprefix("0x").rjust(16, "0") if told.startswith("0x") else told
