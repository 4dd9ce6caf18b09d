"""Rules about access and what a server gives away: keys, open doors, closed doors, no metrics."""

from collections.abc import Iterable, Mapping
from typing import Any

from app.domain.capture import Capture, Outcome
from app.domain.claims import Claim, Evidence, Level, Status
from app.domain.observed import Observed, evidence
from app.domain.signals.liveness import outcome_of
from app.domain.signals.ruling import NotChecked, Quiet, Ruling

# Fields of ServerArgs that /server_info returns in clear up to 0.5.23, at both depths.
_KEYS = ("api_key", "admin_api_key", "ssl_keyfile_password")
_KEY_FLAGS = ("--api-key", "--admin-api-key", "--ssl-keyfile-password")
_LEAKING = ("server_info", "get_server_info")
_NEEDS_KEY = (
    "model_info",
    "get_model_info",
    "server_info",
    "get_server_info",
    "loads_all_1",
    "get_load",
)


def secrets_exposed_by_server(seen: Observed) -> Ruling:
    """/server_info carries keys; the places are named, the values never."""
    rule = "secrets-exposed-by-server"
    answered = [one for name in _LEAKING if (one := seen.capture(name)) and one.ok]
    if not answered:
        return NotChecked(rule, "/server_info was not answered.")
    places = {
        (one.name, place)
        for one in answered
        for place in (*_redacted_places(one), *_key_places(seen.answers.values.get(one.name)))
    }
    if not places:
        return Quiet(rule, "/server_info carries no key.", (outcome_of(answered[0]),))
    proof = tuple(evidence(name, place) for name, place in sorted(places)[:12])
    spots = {at for _, at in places}
    where = "one place" if len(spots) == 1 else f"{len(spots)} places"
    says = f"/server_info gives secrets away in {where} to whoever may ask it (masked here)."
    if any(at.endswith("/admin_api_key") for at in spots):
        says += " The admin key is among them, and the user key is enough to read it."
    return Claim(rule, says, Status.ESTABLISHED, proof, Level.WARN)


def _redacted_places(capture: Capture) -> Iterable[str]:
    """Where the collector masked something; SGLang masks its watermark keys itself."""
    return (place for place in capture.redacted if "/watermark_" not in place)


def _key_places(value: object) -> Iterable[str]:
    """Where a key stands, masked or not, at the top and in each rank's copy."""
    if not isinstance(value, Mapping):
        return
    yield from _named_keys("", value)
    states = value.get("internal_states")
    for index, state in enumerate(states if isinstance(states, list) else ()):
        if isinstance(state, Mapping):
            yield from _named_keys(f"/internal_states/{index}", state)


def _named_keys(place: str, value: Mapping[str, Any]) -> Iterable[str]:
    yield from (f"{place}/{key}" for key in _KEYS if value.get(key))
    command = value.get("launch_command")
    if isinstance(command, str) and any(flag in command for flag in _KEY_FLAGS):
        yield f"{place}/launch_command"


def rust_ingress_no_api_key(seen: Observed) -> Ruling:
    """The Rust ingress checks no key, whatever --api-key says (0.5.17 to 0.5.23)."""
    rule = "rust-ingress-no-api-key"
    if seen.frontend == "unknown":
        return NotChecked(rule, "Which ingress answers is not known.")
    if seen.frontend == "python":
        return Quiet(rule, "The Python ingress answers; it checks the key it was given.")
    keys = seen.info.arguments if seen.info else None
    proof = (
        (evidence(seen.info.artifact, "/frontend", seen.info.frontend),)
        if seen.info
        else tuple(outcome_of(one) for one in seen.captures if one.name == "ready")
    )
    if keys is not None and any(keys.get(key) for key in _KEYS[:2]):
        says = "A key is configured, and the Rust ingress does not check it: everybody may call it."
        return Claim(rule, says, Status.SUPPORTED, proof, Level.BAD)
    known = keys is not None and "api_key" in keys
    says = "The Rust ingress checks no key (up to 0.5.23): " + (
        "none is configured here, and adding --api-key would not protect it."
        if known
        else "if one is configured, it does not protect this server."
    )
    return Claim(rule, says, Status.SUPPORTED, proof, Level.NOTE if known else Level.WARN)


def metrics_off(seen: Observed) -> Ruling:
    """/metrics is 404 while others answer: SGLang's default."""
    rule, metrics = "metrics-off", seen.capture("metrics_1", "metrics_2")
    if metrics is None or metrics.outcome not in (Outcome.ANSWERED, Outcome.NOT_OFFERED):
        return NotChecked(rule, "/metrics was not answered.")
    proof: tuple[Evidence, ...] = (outcome_of(metrics),)
    if metrics.outcome is Outcome.ANSWERED:
        return Quiet(rule, "/metrics is on.", proof)
    if not any(
        one.status is not None and one.status < 500 for one in seen.captures if one is not metrics
    ):
        return NotChecked(rule, "Nothing else was answered.")
    says = (
        "Metrics are off, as SGLang starts by default: latency is not known. Start the server with "
        "--enable-metrics."
    )
    return Claim(rule, says, Status.ESTABLISHED, proof, Level.NOTE)


def no_access(seen: Observed) -> Ruling:
    """The key is missing or wrong: that is no sign of a server that is down."""
    rule = "no-access"
    asked = [one for name in _NEEDS_KEY if (one := seen.capture(name))]
    if not any(one.status is not None for one in asked):
        return NotChecked(rule, "Nothing that needs a key was answered.")
    closed = [one for one in asked if one.outcome is Outcome.NO_ACCESS]
    if not closed:
        return Quiet(rule, "The key was accepted, or none is needed.")
    says = (
        f"{', '.join(one.path for one in closed)}: the key is missing or wrong. The server is up; "
        "its load and settings are not known. The admin key does not open these."
    )
    return Claim(rule, says, Status.ESTABLISHED, tuple(map(outcome_of, closed)), Level.WARN)


def hicache_needs_admin_key(seen: Observed) -> Ruling:
    """The store behind HiCache is shown only with an admin key."""
    rule, hicache = "hicache-needs-admin-key", seen.capture("hicache")
    if hicache is None or hicache.status is None:
        return NotChecked(rule, "/hicache/storage-backend was not answered.")
    proof = (outcome_of(hicache),)
    closed = hicache.outcome is Outcome.NO_ACCESS or hicache.status in (400, 401, 403)
    if not closed:
        return Quiet(rule, "/hicache/storage-backend did not ask for an admin key.", proof)
    says = (
        f"/hicache/storage-backend answered {hicache.status}: it wants an admin key. Whether a "
        "store is attached is not known; this has nothing to do with the health of the server."
    )
    return Claim(rule, says, Status.ESTABLISHED, proof, Level.NOTE)


RULES = (
    secrets_exposed_by_server,
    rust_ingress_no_api_key,
    metrics_off,
    no_access,
    hicache_needs_admin_key,
)
