"""Which HTTP server stands in front of the scheduler, Python or Rust, and what it never offers."""

import re
from collections.abc import Mapping
from dataclasses import replace
from typing import Literal

from app.domain.capture import Capture, Outcome
from app.domain.plain_json import read_json
from app.errors import Malformed

Ingress = Literal["python", "rust", "unknown"]
Version = tuple[int, int, int]

# Of the Python ingress: (last version seen without, first version seen with).
_PYTHON_SINCE: dict[str, tuple[Version, Version]] = {
    "ready": ((0, 5, 19), (0, 5, 21)),
    "model_info": ((0, 5, 5), (0, 5, 9)),
    "server_info": ((0, 5, 5), (0, 5, 7)),
    "loads_all_1": ((0, 5, 7), (0, 5, 9)),
    "hicache": ((0, 5, 7), (0, 5, 9)),
}
_RUST_SINCE: dict[str, tuple[Version, Version]] = {
    "loads_all_1": ((0, 5, 21), (0, 5, 23)),
    "hicache": ((0, 5, 21), (0, 5, 23)),
}
_RUST_NEVER = frozenset(("ready", "get_server_info", "get_load"))
_STARLETTE_404 = b'{"detail":"Not Found"}'
_GET_LOAD_GONE: Version = (0, 5, 21)
_NUMBERS = re.compile(r"(\d{1,4})\.(\d{1,4})\.(\d{1,4})")


def ingress(captures: Mapping[str, Capture]) -> Ingress:
    """What serves, told by ``/server_info`` if it answered, otherwise by the cheap answers."""
    frontend = server_facts(captures).get("frontend")
    if frontend == "rust":
        return "rust"
    ready = captures.get("ready")
    if frontend == "python" or (ready is not None and ready.status in (200, 503)):
        return "python"
    if any(one.headers.get("server", "").startswith("uvicorn") for one in captures.values()):
        return "python"
    if ready is None or ready.status != 404 or "server" in ready.headers:
        return "unknown"
    if not ready.body:
        return "rust"
    return "python" if ready.body.strip() == _STARLETTE_404 else "unknown"


def version(captures: Mapping[str, Capture]) -> Version | None:
    """The server's version as far as it can be compared; None when nobody told it."""
    found = _NUMBERS.match(str(server_facts(captures).get("version", "")))
    return (int(found[1]), int(found[2]), int(found[3])) if found else None


def server_facts(captures: Mapping[str, Capture]) -> dict[str, object]:
    """What ``/server_info`` said under either of its names; the version also from ``/v1/loads``."""
    for name in ("server_info", "get_server_info"):
        if facts := _object(captures.get(name)):
            return facts
    loads = _object(captures.get("loads_all_1"))
    return {"version": loads["version"]} if "version" in loads else {}


def explained(captures: Mapping[str, Capture]) -> tuple[Capture, ...]:
    """*captures*, each 404 with the reason it has here; one that has none is "unexpected"."""
    serves, told = ingress(captures), version(captures)
    return tuple(
        replace(one, detail=absence(one.name, serves, told))
        if one.outcome is Outcome.NOT_OFFERED
        else one
        for one in captures.values()
    )


def absence(name: str, serves: Ingress, told: Version | None) -> str:
    """Why a 404 for *name* is this ingress's own, or that it is unexpected."""
    if name in ("metrics_1", "metrics_2"):
        return "Metrics are off; --enable-metrics turns them on."
    if serves == "rust" and name in _RUST_NEVER:
        return "The Rust ingress has no such endpoint."
    if name == "get_load":
        return _absence_of_get_load(told)
    since = (_RUST_SINCE if serves == "rust" else _PYTHON_SINCE).get(name)
    if since is None:
        return (
            "This 404 is unexpected: every known version has it. A gateway may answer in its place."
        )
    last_without, first_with = since
    if told is None:
        return f"Not in every version; since {_dotted(first_with)}."
    if told >= first_with:
        return (
            f"This 404 is unexpected: there since {_dotted(first_with)}, this is {_dotted(told)}."
        )
    if told > last_without:
        return f"There since {_dotted(first_with)}; not known of {_dotted(told)}."
    return f"There since {_dotted(first_with)}; this is {_dotted(told)}."


def _absence_of_get_load(told: Version | None) -> str:
    if told is None or told >= _GET_LOAD_GONE or told < (0, 4, 9):
        return "Only in 0.4.9 to 0.5.17; no failure."
    return f"This 404 is unexpected: in 0.4.9 to 0.5.17, this is {_dotted(told)}."


def _object(capture: Capture | None) -> dict[str, object]:
    if capture is None or not capture.ok:
        return {}
    try:
        value = read_json(capture.body)
    except Malformed:
        return {}
    return value if isinstance(value, dict) else {}


def _dotted(numbers: Version) -> str:
    return ".".join(map(str, numbers))
