"""How a recorded request ended, by what the server had answered when the file was written.

SGLang writes finished requests with ``meta_info.finish_reason``. For one that was still running
it writes ``{}``, or text and ids without ``meta_info``, or the last chunk of a stream, whose
finish reason is None (managers/tokenizer_manager.py of 0.4.6 to 0.5.23).
"""

import re
from collections.abc import Mapping
from typing import Any, NamedTuple

from app.domain.dumps.containers import table_in
from app.domain.dumps.recorded import State
from app.domain.dumps.scalars import Looked, kind_of
from app.domain.pickled.values import ints_of

_WORD = re.compile(r"[a-z][a-z_]{0,30}")


class Outcome(NamedTuple):
    """What the output of a request tells; None is not told."""

    state: State | None
    finish_reason: str | None
    prompt_tokens: int | None
    completion_tokens: int | None
    cached_tokens: int | None


def outcome_of(output: Mapping[str, Any], looked: Looked) -> Outcome:
    """The outcome that *output* tells; what is wrong with it goes to *looked*."""
    if output.get("meta_info") is None:
        state: State = "finished" if "embedding" in output else "unfinished"
        return Outcome(state, None, None, _tokens_so_far(output), None)
    meta = table_in(output["meta_info"])
    if meta is None:
        looked.problems.append("meta_info is no table")
        return Outcome(None, None, None, _tokens_so_far(output), None)
    reason = finish_reason(meta.get("finish_reason"), looked)
    completion = looked.count("completion_tokens", meta.get("completion_tokens"))
    return Outcome(
        _state(reason, told="finish_reason" in meta),
        reason,
        looked.count("prompt_tokens", meta.get("prompt_tokens")),
        _tokens_so_far(output) if completion is None else completion,
        looked.count("cached_tokens", meta.get("cached_tokens")),
    )


def finish_reason(value: object, looked: Looked) -> str | None:
    """The word for why a request ended: ``stop``, ``length``, ``abort``."""
    if isinstance(value, dict):
        value = value.get("type")
    if value is None or (type(value) is str and _WORD.fullmatch(value)):
        return value
    looked.problems.append(f"finish_reason is no word ({kind_of(value)})")
    return "other"


def _state(reason: str | None, *, told: bool) -> State:
    """*told*: a finish reason is written, be it None; embeddings and old files have none."""
    if reason is None:
        return "unfinished" if told else "finished"
    return "aborted" if reason == "abort" else "finished"


def _tokens_so_far(output: Mapping[str, Any]) -> int | None:
    ids = output.get("output_ids")
    counted = None if ids is None else ints_of(ids)
    return None if counted is None else len(counted)
