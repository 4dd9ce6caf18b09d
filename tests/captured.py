"""Bundles out of the captured answers of a real SGLang 0.5.23, and where they lie."""

import json
from datetime import datetime
from email.utils import parsedate_to_datetime
from pathlib import Path
from typing import Any

import pytest

from app.domain.capture import Bundle, Capture, Outcome

SHARED = Path(__file__).parents[2] / "shared"
HTTP = SHARED / "captures" / "http"
CASES = SHARED / "cases"
ATTACKS = SHARED / "attacks"

# File of the capture → our name of the capture.
_NAMES = {
    "ready": "ready",
    "health": "health",
    "health_generate": "health_generate",
    "model_info": "model_info",
    "get_model_info": "get_model_info",
    "server_info": "server_info",
    "get_server_info": "get_server_info",
    "v1_loads_all": "loads_all_1",
    "v1_loads_core": "loads_core_1",
    "get_load": "get_load",
    "metrics": "metrics_1",
    "hicache_storage": "hicache",
}


def needs(folder: Path) -> Path:
    """*folder*, or a skipped test where the shared captures are not beside the checkout."""
    if not folder.exists():
        pytest.skip(f"../shared/{folder.relative_to(SHARED)} is not beside this checkout")
    return folder


def captured(scenario: str) -> Bundle:
    """One scenario as a bundle of one scrape; the order is that of the answers' Date headers."""
    folder = needs(HTTP / scenario)
    metas = {path.name.removesuffix(".meta.json"): path for path in folder.glob("*.meta.json")}
    found = [_capture(folder, file, _NAMES[file]) for file in _NAMES if file in metas]
    dated = [one.started_at for one in found if one.started_at]
    return Bundle("http://127.0.0.1:30000", min(dated), tuple(found))


def _capture(folder: Path, file: str, name: str) -> Capture:
    meta = json.loads((folder / f"{file}.meta.json").read_text())
    headers = {key.lower(): value for key, value in meta["headers"] or ()}
    return Capture(
        name=name,
        path=meta["path"],
        outcome=outcome(meta["status"], meta["error"]),
        status=meta["status"],
        started_at=_started(headers),
        seconds=meta["seconds"],
        body=(folder / f"{file}.body").read_bytes(),
        headers=headers,
    )


def outcome(status: int | None, error: str | None) -> Outcome:
    """How asking ended, from a status or the text of an exception."""
    if status is not None:
        return {404: Outcome.NOT_OFFERED, 401: Outcome.NO_ACCESS, 403: Outcome.NO_ACCESS}.get(
            status, Outcome.ANSWERED
        )
    told = error or ""
    if "refused" in told:
        return Outcome.REFUSED
    return Outcome.TIMEOUT if "timed out" in told.lower() else Outcome.ERROR


def _started(headers: dict[str, str]) -> datetime | None:
    return parsedate_to_datetime(headers["date"]) if "date" in headers else None


def ids(claims: list[dict[str, Any]]) -> set[str]:
    """The rule ids of *claims*."""
    return {claim["id"] for claim in claims}
