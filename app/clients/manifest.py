"""The manifest of a bundle: what was asked, how it ended, which file holds the answer."""

import re
from datetime import UTC, datetime
from typing import Any

from app.clients.archives import Files, shown
from app.domain.capture import Bundle, Capture, Outcome
from app.domain.endpoints import file_name
from app.errors import Malformed

FORMAT, VERSION = "incident-console bundle", 1
_MAX_CAPTURES = 64
_MAX_TEXT = 2000
_NAME = re.compile(r"[a-z][a-z0-9_]{0,63}")


def manifest_of(bundle: Bundle) -> dict[str, Any]:
    """The manifest of *bundle* as plain JSON."""
    return {
        "format": FORMAT,
        "format_version": VERSION,
        "tool": bundle.made_by,
        "base_url": bundle.base_url,
        "collected_at": _stamp(bundle.collected_at),
        "finished_at": _stamp(bundle.finished_at),
        "interval_seconds": bundle.interval_seconds,
        "probe": bundle.probe,
        "problems": bundle.problems,
        "captures": [_entry(capture) for capture in bundle.captures],
    }


def bundle_from(manifest: dict[str, Any], files: Files) -> Bundle:
    """The bundle that *manifest* describes; raises Malformed where it is none of ours.

    A single entry that makes no sense is a problem of the bundle, not its end.
    """
    if manifest.get("format") != FORMAT or manifest.get("format_version") != VERSION:
        raise Malformed("manifest.json is not of a bundle in a format known here.")
    entries, problems = manifest.get("captures"), list(_texts(manifest.get("problems")))
    captures: dict[str, Capture] = {}
    for entry in entries[:_MAX_CAPTURES] if isinstance(entries, list) else ():
        capture = _capture(entry, files) if isinstance(entry, dict) else None
        if capture is None or capture.name in captures:
            problems.append("manifest.json: an entry that makes no sense; left out.")
        else:
            captures[capture.name] = capture
    return Bundle(
        base_url=_text(manifest.get("base_url")),
        collected_at=_time(manifest.get("collected_at")) or datetime.fromtimestamp(0, UTC),
        captures=tuple(captures.values()),
        finished_at=_time(manifest.get("finished_at")),
        interval_seconds=_number(manifest.get("interval_seconds")),
        probe=_text(manifest.get("probe")),
        made_by=_text(manifest.get("tool")),
        problems=tuple(problems),
    )


def _entry(capture: Capture) -> dict[str, Any]:
    return {
        "name": capture.name,
        "path": capture.path,
        "outcome": capture.outcome.value,
        "status": capture.status,
        "started_at": _stamp(capture.started_at),
        "seconds": capture.seconds,
        "bytes": len(capture.body),
        "headers": capture.headers,
        "detail": capture.detail,
        "redacted": capture.redacted,
        "file": file_name(capture.name) if capture.body else None,
    }


def _capture(entry: dict[str, Any], files: Files) -> Capture | None:
    name, outcome = _text(entry.get("name")), _text(entry.get("outcome"))
    if not _NAME.fullmatch(name) or outcome not in set(Outcome):
        return None
    status, file = entry.get("status"), entry.get("file")
    body = files.contents.get(file_name(name)) if file else b""
    if body is None:
        files.problems.append(f"{shown(file_name(name))}: named in the manifest and not there.")
    return Capture(
        name=name,
        path=_text(entry.get("path")),
        outcome=Outcome(outcome),
        status=status if isinstance(status, int) and 100 <= status <= 999 else None,
        started_at=_time(entry.get("started_at")),
        seconds=_number(entry.get("seconds")),
        body=body or b"",
        headers=_headers(entry.get("headers")),
        detail=_text(entry.get("detail")),
        redacted=tuple(_texts(entry.get("redacted"))),
    )


def _headers(value: object) -> dict[str, str]:
    known = value if isinstance(value, dict) else {}
    return {name: _text(known[name])[:200] for name in ("server", "content-type") if name in known}


def _texts(value: object) -> list[str]:
    return [_text(item) for item in value[:1000]] if isinstance(value, list) else []


def _text(value: object) -> str:
    return value[:_MAX_TEXT] if isinstance(value, str) else ""


def _number(value: object) -> float | None:
    """A duration; None for anything that is none."""
    if isinstance(value, bool) or not isinstance(value, int | float):
        return None
    return float(value) if 0 <= value < 1e9 else None


def _stamp(moment: datetime | None) -> str | None:
    if moment is None:
        return None
    return moment.astimezone(UTC).isoformat(timespec="microseconds").replace("+00:00", "Z")


def _time(value: object) -> datetime | None:
    try:
        moment = datetime.fromisoformat(_text(value))
    except ValueError:
        return None
    return moment.astimezone(UTC) if moment.tzinfo else moment.replace(tzinfo=UTC)
