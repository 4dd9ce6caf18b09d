"""Dumps in every layout that SGLang has written, made from classes of our own under its names."""

import pickle
import sys
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from types import ModuleType
from typing import Any

from app.domain.dumps.recognise import source_of
from app.domain.dumps.recorded import Dump, RecordedRequest

IO_STRUCT = "sglang.srt.managers.io_struct"
SERVER_ARGS = "sglang.srt.server_args"
CREATED = 1_764_500_000.0
KEY = "sk-FAKE-user-1"


class Plain:
    """An object that is its attributes, as a dataclass is to pickle."""

    def __init__(self, **fields: Any) -> None:
        self.__dict__.update(fields)


def _named(module: str, name: str) -> type[Plain]:
    return type(name, (Plain,), {"__module__": module, "__qualname__": name})


GenerateReqInput = _named(IO_STRUCT, "GenerateReqInput")
EmbeddingReqInput = _named(IO_STRUCT, "EmbeddingReqInput")
ServerArgs = _named(SERVER_ARGS, "ServerArgs")
ImageData = _named("sglang.srt.utils.common", "ImageData")
Foreign = _named("transformers_modules.acme.configuration_acme", "AcmeConfig")


class Struct:
    """Server arguments as 0.5.21 and later pickle them: rebuilt by a function from fields."""

    def __init__(self, *parts: Any) -> None:
        self._parts = parts

    def __reduce__(self) -> tuple[Callable[..., Any], tuple[Any, ...]]:
        return _rebuild_server_args, (ServerArgs, *self._parts)


def _rebuild_server_args(_made: type, *parts: Any) -> Struct:
    return Struct(*parts)


_rebuild_server_args.__module__ = SERVER_ARGS


@contextmanager
def _importable() -> Iterator[None]:
    """For as long as it lasts, pickle finds the classes above where their names say."""
    things = (
        GenerateReqInput, EmbeddingReqInput, ServerArgs, ImageData, Foreign, _rebuild_server_args,
    )  # fmt: skip
    before = dict(sys.modules)
    for thing in things:
        parts = thing.__module__.split(".")
        for count in range(1, len(parts) + 1):
            name = ".".join(parts[:count])
            sys.modules.setdefault(name, ModuleType(name))
        setattr(sys.modules[thing.__module__], thing.__name__, thing)
    try:
        yield
    finally:
        for name in set(sys.modules) - set(before):
            del sys.modules[name]


def pickled(value: object, protocol: int = 4) -> bytes:
    """*value* as a file."""
    with _importable():
        return pickle.dumps(value, protocol)


def asked(number: int = 1, **fields: Any) -> Plain:
    """A request object; *fields* come over the usual ones."""
    usual = {
        "rid": f"rid-{number}",
        "text": f"prompt {number}",
        "input_ids": None,
        "sampling_params": {"temperature": 0.5, "max_new_tokens": 16, "stop": ["private"]},
        "stream": False,
        "is_single": True,
        "batch_size": 1,
    }
    return GenerateReqInput(**{**usual, **fields})


def answer(**meta: Any) -> dict[str, Any]:
    """The output of a finished request; *meta* comes over its usual meta_info."""
    usual = {
        "finish_reason": {"type": "stop", "matched": 2},
        "prompt_tokens": 12,
        "completion_tokens": 3,
        "cached_tokens": 4,
        "e2e_latency": 1.5,
    }
    return {"text": "said", "output_ids": [5, 6, 7], "meta_info": {**usual, **meta}}


def record(number: int = 1, output: Any = None, **fields: Any) -> tuple[Any, ...]:
    """One record; requests arrive a second apart and take one and a half."""
    created = CREATED + number
    return asked(number, **fields), answer() if output is None else output, created, created + 1.5


def read(content: bytes, called: str = "dump.pkl") -> tuple[list[RecordedRequest], Dump]:
    """The requests in a file and what it is."""
    source = source_of(content, called, lambda secret: f"{sum(secret.encode()) % 2**32:08x}")
    requests = list(source.requests())
    return requests, source.dump(Counter(request.state for request in requests))


def read_value(value: object, protocol: int = 4) -> tuple[list[RecordedRequest], Dump]:
    """The same, for a file that holds *value*."""
    return read(pickled(value, protocol))
