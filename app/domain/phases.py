"""In which order a bundle is asked for, so that looking does no harm: a pure plan.

Cheap endpoints first and together; then what waits for the schedulers, alone; after the
interval the second scrape; a probe last and only when it is needed. What timed out is never
asked again. The next phase follows from the captures made so far and nothing else, so a
collection that was cut off goes on where it was.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Literal

from app.domain import endpoints as e
from app.domain.capture import Capture, Outcome
from app.domain.ingress import server_facts, version

Probe = Literal["auto", "never", "always"]
Decide = Callable[[Sequence[Capture]], str]

QUICK_SECONDS = 2.0  # /v1/loads is asked a second time only if it was quicker the first time
_HEALTH_CHECK_SECONDS = 20.0  # SGLANG_HEALTH_CHECK_TIMEOUT, its default
_MAX_HEALTH_CHECK_SECONDS = 120.0
# Verdicts that a probe would not change. "busy" means that tokens are seen to come out.
_DECIDED = frozenset(("healthy", "busy", "wedged", "gone", "false green"))
_ONE_HANDLER: tuple[int, int, int] = (0, 5, 2)  # since then /health is /health_generate


@dataclass(frozen=True, slots=True)
class Plan:
    """How a bundle is to be collected."""

    probe: Probe = "auto"
    interval_seconds: float = 10.0  # between the two scrapes; the deadline does not count it
    deadline_seconds: float = 45.0


@dataclass(frozen=True, slots=True)
class Ask:
    """One endpoint to ask, and how long its answer is worth waiting for."""

    endpoint: e.Endpoint
    timeout_seconds: float
    needs_seconds: float = 0.0  # with less time left it is not asked: the answer would mislead


@dataclass(frozen=True, slots=True)
class Phase:
    """What is asked together; ``skipped`` is not asked at all and says why."""

    asks: tuple[Ask, ...]
    skipped: tuple[Capture, ...] = ()
    after_interval: bool = False  # asked only when the interval since the first scrape is over


def next_phase(done: Mapping[str, Capture], plan: Plan, decide: Decide) -> Phase | None:
    """What to ask next; None when the bundle is whole. *decide* gives the verdict so far."""
    for phase in (_cheap, _fallbacks, _server_info, _loads, _again):
        if found := phase(done):
            return found
    return _probe(done, plan, decide)


def scraped(done: Mapping[str, Capture]) -> Capture | None:
    """The first of the answers that are asked for twice; None when there is no second scrape."""
    answers = (done.get(name) for name in ("metrics_1", "loads_all_1"))
    return next((one for one in answers if one and one.ok), None)


def _cheap(done: Mapping[str, Capture]) -> Phase | None:
    return _phase(done, (e.READY, e.MODEL_INFO, e.METRICS_1, e.HICACHE))


def _fallbacks(done: Mapping[str, Capture]) -> Phase | None:
    return _phase(done, _offered_under_another_name(done, e.GET_MODEL_INFO))


def _server_info(done: Mapping[str, Capture]) -> Phase | None:
    first = _phase(done, (e.SERVER_INFO,))
    return first or _phase(done, _offered_under_another_name(done, e.GET_SERVER_INFO))


def _loads(done: Mapping[str, Capture]) -> Phase | None:
    if first := _phase(done, (e.LOADS_ALL_1,)):
        return first
    if second := _phase(done, _offered_under_another_name(done, e.GET_LOAD)):
        return second
    answer = done["loads_all_1"]
    broken = answer.outcome in (Outcome.ANSWERED, Outcome.REJECTED) and not answer.ok
    return _phase(done, (e.LOADS_CORE_1,)) if broken else None


def _again(done: Mapping[str, Capture]) -> Phase | None:
    if done["metrics_1"].ok and (scrape := _phase(done, (e.METRICS_2,), after_interval=True)):
        return scrape
    loads = done["loads_all_1"]
    if loads.ok and "loads_all_2" not in done:
        return _loads_again(loads)
    return None


def _loads_again(first: Capture) -> Phase:
    if first.seconds is not None and first.seconds <= QUICK_SECONDS:
        return Phase((_ask(e.LOADS_ALL_2),), after_interval=True)
    return Phase((), (_skipped(e.LOADS_ALL_2, f"The first took more than {QUICK_SECONDS:.0f} s."),))


def _probe(done: Mapping[str, Capture], plan: Plan, decide: Decide) -> Phase | None:
    if "health" in done and "health_generate" in done:
        return None
    reason = _reason_not_to_probe(done, plan, decide)
    told = version(done)
    if told is not None and told < _ONE_HANDLER:
        return _two_handlers(done, reason, plan)
    return _one_handler(done, reason, plan)


def _one_handler(done: Mapping[str, Capture], reason: str, plan: Plan) -> Phase:
    """Since 0.5.2 both paths are one handler: one of them is asked at most."""
    generate = done.get("health_generate")
    if reason and generate is None:
        return Phase((), (_skipped(e.HEALTH, reason), _skipped(e.HEALTH_GENERATE, reason)))
    if generate is None:
        return Phase((_probe_ask(e.HEALTH_GENERATE, done, plan),))
    if generate.outcome is Outcome.NOT_OFFERED and not reason:  # other engines have only /health
        return Phase((_probe_ask(e.HEALTH, done, plan),))
    return Phase((), (_skipped(e.HEALTH, "The same handler as /health_generate since 0.5.2."),))


def _two_handlers(done: Mapping[str, Capture], reason: str, plan: Plan) -> Phase:
    """Before 0.5.2 /health costs nothing, and differs from /health_generate."""
    asks = tuple(
        ask
        for ask, wanted in (
            (_ask(e.HEALTH), True),
            (_probe_ask(e.HEALTH_GENERATE, done, plan), not reason),
        )
        if wanted and ask.endpoint.name not in done
    )
    skip = reason and "health_generate" not in done
    return Phase(asks, (_skipped(e.HEALTH_GENERATE, reason),) if skip else ())


def _reason_not_to_probe(done: Mapping[str, Capture], plan: Plan, decide: Decide) -> str:
    """Why no probe is sent; empty when one is."""
    if plan.probe == "always":
        return ""
    if plan.probe == "never":
        return "No probe was wanted. It sends one token; if it fails, /ready turns 503."
    if all(one.outcome in (Outcome.TIMEOUT, Outcome.NOT_ASKED) for one in done.values()):
        return "Nothing answered; a probe would only wait as well."
    verdict = decide(tuple(done.values()))
    return f"The other answers decide: {verdict}." if verdict in _DECIDED else ""


def _probe_ask(endpoint: e.Endpoint, done: Mapping[str, Capture], plan: Plan) -> Ask:
    """A probe gets longer than the server's own limit, to tell its 503 from silence.

    With less time than that left it is not asked, unless a person wants it always.
    """
    seconds = max(22.0, _health_check_seconds(done) + 2.0)
    return Ask(endpoint, seconds, needs_seconds=0.0 if plan.probe == "always" else seconds)


def _health_check_seconds(done: Mapping[str, Capture]) -> float:
    """The server's own limit for a probe, where it tells its environment, otherwise the default."""
    states = server_facts(done).get("internal_states")
    first = states[0] if isinstance(states, list) and states else None
    environment = first.get("env_vars") if isinstance(first, dict) else None
    told = environment.get("SGLANG_HEALTH_CHECK_TIMEOUT") if isinstance(environment, dict) else None
    if isinstance(told, str | int) and str(told).isdecimal():
        return min(float(told), _MAX_HEALTH_CHECK_SECONDS)
    return _HEALTH_CHECK_SECONDS


def _offered_under_another_name(
    done: Mapping[str, Capture], endpoint: e.Endpoint
) -> tuple[e.Endpoint, ...]:
    replaced = done.get(endpoint.replaces)
    missing = replaced is not None and replaced.outcome is Outcome.NOT_OFFERED
    return (endpoint,) if missing else ()


def _phase(
    done: Mapping[str, Capture], wanted: Sequence[e.Endpoint], *, after_interval: bool = False
) -> Phase | None:
    asks = tuple(_ask(endpoint) for endpoint in wanted if endpoint.name not in done)
    return Phase(asks, after_interval=after_interval) if asks else None


def _ask(endpoint: e.Endpoint) -> Ask:
    return Ask(endpoint, endpoint.timeout_seconds)


def _skipped(endpoint: e.Endpoint, why: str) -> Capture:
    return Capture(endpoint.name, endpoint.path, Outcome.NOT_ASKED, detail=why)
