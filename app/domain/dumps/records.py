"""The records of a pickled dump: a request object, its output and two times each."""

from collections.abc import Mapping
from typing import Any

from app.domain.dumps.building import Parts, built
from app.domain.dumps.containers import list_in, table_in
from app.domain.dumps.recorded import RecordedRequest
from app.domain.dumps.scalars import kind_of
from app.domain.pickled.values import Global, Inert, attributes

_FIELDS = 4  # request, output, created, finished: of all versions
_TELLING = frozenset(("text", "input_ids", "sampling_params", "rid", "input_embeds", "image_data"))


class NoRequest(ValueError):
    """A record that holds no request; its text says why."""


def request_of(index: int, value: object) -> RecordedRequest:
    """The request in the record *value*; raises NoRequest, saying why there is none."""
    record = list_in(value)
    if record is None:
        raise NoRequest(f"it is {kind_of(value)}, not a tuple")
    if len(record) < _FIELDS:
        raise NoRequest(f"it has {len(record)} fields, not {_FIELDS}")
    payload, embedding = _payload(record[0])
    parts = Parts(payload, record[1], record[2], record[3])
    if parts.output is None:
        parts.sent = False  # unfinished ones have an empty output, not none
        parts.looked.problems.append("the output is missing")
    if embedding or "embedding" in (table_in(parts.output) or ()):
        parts.endpoint = "/encode"
    if len(record) > _FIELDS:
        parts.looked.problems.append(f"unknown extra field: it has {len(record)}, not {_FIELDS}")
    return built(index, parts)


def looks_like_record(value: object) -> bool:
    """Whether *value* may be a record: for finding whole ones in what is left of a file."""
    if not isinstance(value, tuple | Inert):
        return False
    record = list_in(value)
    if record is None or len(record) < _FIELDS:
        return False
    return isinstance(record[0], Inert | dict) and table_in(record[1]) is not None


def _payload(value: object) -> tuple[Mapping[str, Any], bool]:
    """The fields of a request object, and whether it is one for embeddings."""
    called, payload = "", value
    if isinstance(value, Inert):
        made_from = value.made_from
        called = made_from.name if isinstance(made_from, Global) else "an unnamed class"
        payload = attributes(value)
    if not isinstance(payload, dict) or _TELLING.isdisjoint(payload):
        raise NoRequest(f"{called[:80] or kind_of(value)} is no request")
    return payload, called == "EmbeddingReqInput"
