"""What one answer, or silence, of an endpoint tells: the "So" column of a bundle's page."""

from app.domain.capture import Capture, Outcome
from app.domain.endpoints import DEEP_PROBE_SECONDS

_SO: dict[tuple[str, Outcome], str] = {
    ("ready", Outcome.TIMEOUT): "The HTTP process itself is silent.",
    ("model_info", Outcome.TIMEOUT): "The HTTP process itself is silent.",
    ("model_info", Outcome.ANSWERED): "The HTTP process answers; no scheduler is asked for this.",
    ("server_info", Outcome.TIMEOUT): "Waits for every scheduler: at least one is silent.",
    ("server_info", Outcome.ANSWERED): "Every scheduler answered.",
    ("loads", Outcome.TIMEOUT): (
        "Blocked: a scheduler may be frozen with the lock, and the HTTP process stands with it."
    ),
    ("loads", Outcome.ANSWERED): "Load as each scheduler last told it; the age is in the snapshot.",
    ("get_load", Outcome.ANSWERED): "Load as the scheduler told it now.",
    ("get_load", Outcome.TIMEOUT): "Waits for the scheduler, which is silent.",
    ("metrics", Outcome.ANSWERED): "Counters; the last values stay when a scheduler is silent.",
    ("metrics", Outcome.TIMEOUT): "The HTTP process itself is silent.",
    ("hicache", Outcome.ANSWERED): "Tells which KV cache store is attached.",
    ("hicache", Outcome.NO_ACCESS): "Needs the admin key: contents not known. No failure.",
    ("probe", Outcome.TIMEOUT): "No verdict of the server within the time given.",
}
_SO_ANYWHERE: dict[Outcome, str] = {
    Outcome.REFUSED: "Nothing listens at this address.",
    Outcome.TIMEOUT: "No whole answer in the time given.",
    Outcome.NOT_OFFERED: "Not offered.",
    Outcome.NO_ACCESS: "The token is missing or not accepted: contents not known.",
    Outcome.NOT_ASKED: "Not asked, on purpose.",
    Outcome.ERROR: "The connection broke: contents not known.",
    Outcome.REJECTED: "Not what this endpoint should send: contents not used.",
}
_READY = {
    200: "The HTTP process takes requests. It says so over a dead scheduler too.",
    503: "Not ready: starting, shutting down, paused, or a health probe failed before.",
}
_PROBE = {
    200: "Green: since 0.5.2 that is a token, before it was a constant.",
    503: "Starting, shutting down, or no token in the server's own time limit.",
}
_WAITED = "A scheduler or detokenizer sent something while the probe waited."
_AT_ONCE = "Green at once: a token from the Rust ingress, otherwise a flag or a constant."
_GATEWAY = frozenset((502, 504))


def meaning(capture: Capture) -> str:
    """One short sentence: what this outcome tells, and what it does not."""
    kind = _kind(capture.name)
    if capture.outcome is Outcome.TIMEOUT:
        so = _SO.get((kind, Outcome.TIMEOUT), _SO_ANYWHERE[Outcome.TIMEOUT])
        return f"{so} {capture.detail}".rstrip()
    if capture.detail:
        return capture.detail
    if capture.outcome is Outcome.ANSWERED and capture.status != 200:
        return _not_200(kind, capture.status)
    if kind in ("ready", "probe") and capture.outcome is Outcome.ANSWERED:
        return _READY[200] if kind == "ready" else _green_probe(capture.seconds)
    return _SO.get((kind, capture.outcome)) or _SO_ANYWHERE.get(capture.outcome, "Answered.")


def _green_probe(seconds: float | None) -> str:
    if seconds is None:
        return _PROBE[200]
    return _WAITED if seconds >= DEEP_PROBE_SECONDS else _AT_ONCE


def _not_200(kind: str, status: int | None) -> str:
    if status in _GATEWAY:
        return "This came from a gateway; the server itself was not reached."
    if kind == "ready" and status in _READY:
        return _READY[status]
    if kind == "probe" and status in _PROBE:
        return _PROBE[status]
    return f"The server answered with an error of its own ({status})."


def _kind(name: str) -> str:
    if name in ("health", "health_generate"):
        return "probe"
    if name.startswith(("loads_", "metrics_")):
        return name.partition("_")[0]
    return {"get_model_info": "model_info", "get_server_info": "server_info"}.get(name, name)
