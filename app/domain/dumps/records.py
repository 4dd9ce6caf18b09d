"""The records of a pickled dump: a request object, its output and two times each."""

from collections.abc import Mapping
from typing import Any

from app.domain.dumps.building import Parts, built
from app.domain.dumps.recorded import RecordedRequest
from app.domain.dumps.scalars import kind_of
from app.domain.pickled.values import Global, Inert, attributes

_FIELDS = 4  # request, output, created, finished: of all versions
_TELLING = frozenset(("text", "input_ids", "sampling_params", "rid", "input_embeds", "image_data"))


class NoRequest(ValueError):
    """A record that holds no request; its text says why."""


def request_of(index: int, record: object) -> RecordedRequest:
    """The request that *record* holds; raises NoRequest, saying why there is none."""
    if not isinstance(record, list | tuple):
        raise NoRequest(f"it is {kind_of(record)}, not a tuple")
    if len(record) < _FIELDS:
        raise NoRequest(f"it has {len(record)} fields, not {_FIELDS}")
    payload, embedding = _payload(record[0])
    parts = Parts(payload, record[1], record[2], record[3])
    if embedding or (isinstance(record[1], dict) and "embedding" in record[1]):
        parts.endpoint = "/encode"
    if len(record) > _FIELDS:
        parts.looked.problems.append(f"unknown extra field: it has {len(record)}, not {_FIELDS}")
    return built(index, parts)


def looks_like_record(value: object) -> bool:
    """Whether *value* may be a record: for finding whole ones in what is left of a file."""
    if not isinstance(value, tuple) or len(value) < _FIELDS:
        return False
    return isinstance(value[0], Inert | dict) and isinstance(value[1], dict)


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
