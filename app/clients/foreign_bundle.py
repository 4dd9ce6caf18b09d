"""Bundles made by the public incident_artifact_tool.py: its files read as captures.

Its format, as of 2026: ``metadata.json``; a ``.json`` per endpoint holding ``ok``, ``status``
(-1 when no answer came), ``path`` and ``json``, ``text`` or ``error``; plain ``.txt`` for the
text endpoints, and ``.txt.error.json`` where one of those failed.
"""

from datetime import UTC, datetime
from typing import Any

import orjson

from app.clients.archives import Files
from app.domain.capture import Bundle, Capture, Outcome
from app.domain.outcomes import outcome_of
from app.domain.plain_json import read_json
from app.errors import Malformed

# In the order in which the tool asks: file, capture, path.
_FILES = (
    ("ready.txt", "ready", "/ready"),
    ("health.txt", "health", "/health"),
    ("health_generate.txt", "health_generate", "/health_generate"),
    ("metrics.txt", "metrics_1", "/metrics"),
    ("model_info.json", "model_info", "/model_info"),
    ("server_info.json", "server_info", "/server_info"),
    ("loads_all.json", "loads_all_1", "/v1/loads?include=all"),
    ("loads_core_queues_disagg.json", "loads_core_1", "/v1/loads?include=core,queues,disagg,spec"),
    ("hicache_storage_backend.json", "hicache", "/hicache/storage-backend"),
)
_MAX_DETAIL = 300
_SILENCES = (
    (("refused", "errno 111"), Outcome.REFUSED),
    (("timed out", "timeouterror", "timeout"), Outcome.TIMEOUT),
)


def foreign_bundle(metadata: dict[str, Any], files: Files) -> Bundle:
    """The bundle in *files*, in the order in which the tool asks; times of answers are unknown."""
    captures = [
        capture
        for file, name, path in _FILES
        if (capture := _capture(files, file, name, path)) is not None
    ]
    collected_at, problem = _collected_at(metadata.get("collected_at"))
    url = metadata.get("base_url")
    return Bundle(
        base_url=url[:2000] if isinstance(url, str) else "",
        collected_at=collected_at,
        captures=tuple(captures),
        probe="always",
        made_by="incident_artifact_tool",
        problems=(problem,),
    )


def _capture(files: Files, file: str, name: str, path: str) -> Capture | None:
    failure = files.contents.get(f"{file}.error.json")
    content = files.contents.get(file) if failure is None else failure
    if content is None:
        return None
    if failure is None and file.endswith(".txt"):
        return Capture(name, path, Outcome.ANSWERED, 200, body=content)
    try:
        result = read_json(content)
    except Malformed as error:
        return Capture(name, path, Outcome.REJECTED, detail=f"{file}: {error.what}")
    if not isinstance(result, dict):
        return Capture(name, path, Outcome.REJECTED, detail=f"{file}: no JSON object.")
    return _from_result(result, name, path)


def _from_result(result: dict[str, Any], name: str, path: str) -> Capture:
    status, told = result.get("status"), result.get("path")
    path = told[:2000] if isinstance(told, str) else path
    if isinstance(status, int) and 100 <= status <= 999:
        body = _body(result)
        outcome, detail = outcome_of(name, status, body)
        return Capture(name, path, outcome, status, body=body, detail=detail)
    error = str(result.get("error", ""))[:_MAX_DETAIL]
    return Capture(name, path, _silence(error), detail=error)


def _body(result: dict[str, Any]) -> bytes:
    """The answer itself; the tool keeps that of a failure under ``error``."""
    if "json" in result:
        return orjson.dumps(result["json"])
    text = result.get("text", result.get("error", ""))
    return text.encode("utf-8", "replace") if isinstance(text, str) else b""


def _silence(error: str) -> Outcome:
    """What the tool's text of a Python exception stands for."""
    lowered = error.lower()
    for words, outcome in _SILENCES:
        if any(word in lowered for word in words):
            return outcome
    return Outcome.ERROR


def _collected_at(value: object) -> tuple[datetime, str]:
    """When it was collected, and what is not known about that."""
    try:
        moment = datetime.strptime(str(value), "%Y%m%d_%H%M%S").replace(tzinfo=UTC)
    except ValueError:
        return datetime.fromtimestamp(0, UTC), "metadata.json: no time of collection."
    return moment, "metadata.json: collected_at names no time zone; it is read as UTC."
