"""One request as a dump has it, the same for every version and layout."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Literal, TypedDict

State = Literal["finished", "unfinished", "aborted"]
Endpoint = Literal["/generate", "/encode", "/v1/chat/completions", "/v1/completions"]
Figure = int | float | bool


@dataclass(frozen=True, slots=True)
class RecordedRequest:
    """A request, with what the server answered as far as the file has it; None is unknown.

    *state* is None for a payload of which no file tells whether it was ever sent.

    Times are seconds since 1970. For an unfinished request the file has no finish: what stands
    in its place is the moment of the dump, and *seen_at* keeps that. *sampling* has numbers and
    switches only. *features* are kebab-case words, see ``features``; *problems* are sentences.
    *payload* and *output* are as the file has them, inert: for tiers T1 and T2 alone.
    """

    index: int  # in the order of the file, from 0
    rid: str | None
    endpoint: Endpoint
    state: State | None
    started_at: float | None
    finished_at: float | None
    seen_at: float | None  # the end of what is known: the finish, or the moment of the dump
    prompt_tokens: int | None
    completion_tokens: int | None
    cached_tokens: int | None
    prompt_characters: int | None
    stream: bool | None
    finish_reason: str | None
    sampling: Mapping[str, Figure]
    features: tuple[str, ...]
    problems: tuple[str, ...]
    payload: Mapping[str, Any]
    output: Mapping[str, Any]


class Row(TypedDict):
    """The columns of a request at tier T0: figures, switches and names, no text of anybody.

    *elapsed_seconds* of an unfinished request is how long it had been running at the dump.
    """

    index: int
    rid: str | None
    state: State | None
    endpoint: Endpoint
    prompt_tokens: int | None
    completion_tokens: int | None
    cached_tokens: int | None
    prompt_characters: int | None
    stream: bool | None
    started_at: float | None
    finished_at: float | None
    elapsed_seconds: float | None
    finish_reason: str | None
    sampling: Mapping[str, Figure]
    features: tuple[str, ...]
    problems: tuple[str, ...]


def row(request: RecordedRequest) -> Row:
    """What of *request* goes into tables and summaries; fits into JSON as it is."""
    started, seen = request.started_at, request.seen_at
    return {
        "index": request.index,
        "rid": request.rid,
        "state": request.state,
        "endpoint": request.endpoint,
        "prompt_tokens": request.prompt_tokens,
        "completion_tokens": request.completion_tokens,
        "cached_tokens": request.cached_tokens,
        "prompt_characters": request.prompt_characters,
        "stream": request.stream,
        "started_at": started,
        "finished_at": request.finished_at,
        "elapsed_seconds": None if started is None or seen is None else round(seen - started, 6),
        "finish_reason": request.finish_reason,
        "sampling": request.sampling,
        "features": request.features,
        "problems": request.problems,
    }


@dataclass(frozen=True, slots=True)
class Server:
    """The server that a dump is of, as its own words in the file have it; None is unknown.

    Secrets are already marks in *launch_command*; *redacted* says where they stood.
    """

    sglang_version: str | None = None
    model_path: str | None = None
    topology: Mapping[str, Any] | None = None
    launch_command: str | None = None
    redacted: tuple[str, ...] = ()


Kind = Literal["request dump", "crash dump", "requests", "unreadable"]


@dataclass(frozen=True, slots=True)
class Dump:
    """A file as a whole. *format* names its layout in words; *blocked* what was kept inert in it.

    *truncated*: the file ends before its end, and what is told is what came before.
    """

    kind: Kind
    format: str
    server: Server = Server()
    blocked: tuple[str, ...] = ()
    problems: tuple[str, ...] = ()
    truncated: bool = False
