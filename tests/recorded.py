"""Files of recorded requests as a server of SGLang leaves them behind, of any size."""

import pickle
import sys
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from types import ModuleType
from typing import Any

IO_STRUCT = "sglang.srt.managers.io_struct"
BEGAN = 1_764_500_000.0  # seconds since 1970


class GenerateReqInput:
    """Stands in for SGLang's class of that name, under its name."""

    def __init__(self, **fields: Any) -> None:
        self.__dict__.update(fields)


GenerateReqInput.__module__ = IO_STRUCT
GenerateReqInput.__qualname__ = "GenerateReqInput"


def request(
    number: int, *, tokens: int = 8, finished: bool = True, **fields: Any
) -> tuple[Any, ...]:
    """One 4-tuple of a dump; requests arrive 10 ms apart."""
    asked = GenerateReqInput(
        **{
            "rid": f"{number:032x}",
            "text": f"prompt {number}",
            "input_ids": tuple(range(number, number + tokens)),
            "sampling_params": {"temperature": 0.5, "max_new_tokens": 16},
            "stream": number % 2 == 0,
            **fields,
        }
    )
    created = BEGAN + number / 100
    answer = {
        "text": "answer",
        "output_ids": [1, 2, 3],
        "meta_info": {
            "id": f"{number:032x}",
            "finish_reason": {"type": "length", "length": 3},
            "prompt_tokens": tokens,
            "completion_tokens": 3,
        },
    }
    return asked, answer if finished else {}, created, created + 1.5


def dump(requests: Sequence[tuple[Any, ...]], *, crash: bool = True) -> bytes:
    """The file of *requests*, with an API key in its launch command when it is a crash dump."""
    told: dict[str, Any] = {"server_args": None, "requests": list(requests)}
    if crash:
        told["launch_command"] = "python -m sglang.launch_server --api-key sk-FAKE-1 --tp 2"
    return pickled(told)


def pickled(told: object) -> bytes:
    """*told* as a file; requests in it are of SGLang's class."""
    with _importable():
        return pickle.dumps(told, protocol=4)


def crash_dump(finished: int = 20, unfinished: int = 3) -> bytes:
    """A crash dump in which the last requests were not finished."""
    total = finished + unfinished
    return dump([request(one, finished=one < finished) for one in range(total)])


@contextmanager
def _importable() -> Iterator[None]:
    """Pickling looks a class up by its name."""
    names = IO_STRUCT.split(".")
    made = {".".join(names[: n + 1]): ModuleType(names[n]) for n in range(len(names))}
    vars(made[IO_STRUCT])["GenerateReqInput"] = GenerateReqInput
    sys.modules.update(made)
    try:
        yield
    finally:
        for name in made:
            del sys.modules[name]
