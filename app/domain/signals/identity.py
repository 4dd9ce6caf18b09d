"""Rules about who answered: one server, several behind one address, or a proxy in front."""

from collections.abc import Iterable, Mapping

from app.domain.answers import from_proxy
from app.domain.claims import Claim, Evidence, Level, Status
from app.domain.exposition import by_label
from app.domain.figures import figure, table
from app.domain.observed import STARTUP, Observed, evidence
from app.domain.signals.liveness import RESTART_SECONDS, outcome_of
from app.domain.signals.ruling import NotChecked, Quiet, Ruling

_SAME_SECONDS = 0.001
_STARTUP_PHASES = ("scheduler_e2e", "tokenizer_e2e", "load_weight")

Difference = tuple[str, tuple[Evidence, ...]]


def not_one_server(seen: Observed) -> Ruling:
    """Answers that one process cannot have given."""
    rule = "not-one-server"
    compared = len(seen.loads) + len(seen.scrapes) + (seen.info is not None)
    if compared < 2:
        return NotChecked(rule, "Fewer than two answers that can be set against each other.")
    found = list(differences(seen))
    if not found:
        return Quiet(rule, f"{compared} answers agree with each other: one server gave them.")
    says = (
        f"The answers are not of one server: {'; '.join(why for why, _ in found)}. Several stand "
        "behind this address, so figures of the window are not given."
    )
    proof = tuple(one for _, places in found for one in places)[:12]
    return Claim(rule, says, Status.SUPPORTED, proof, Level.BAD)


def differences(seen: Observed) -> Iterable[Difference]:
    """What differs between answers though it cannot within one process."""
    yield from _versions(seen)
    yield from _rank_sets(seen)
    yield from _launches(seen)
    yield from _startups(seen)
    yield from _fallen(seen)


def _versions(seen: Observed) -> Iterable[Difference]:
    told = [(one.artifact, one.version) for one in seen.loads if one.version]
    if seen.info and seen.info.version:
        told.append((seen.info.artifact, seen.info.version))
    if len({version for _, version in told}) > 1:
        proof = tuple(evidence(artifact, "/version", version) for artifact, version in told)
        yield "the version differs", proof


def _rank_sets(seen: Observed) -> Iterable[Difference]:
    sets = [(one.artifact, [rank.dp_rank for rank in one.ranks]) for one in seen.loads]
    if len({tuple(ranks) for _, ranks in sets}) > 1:
        proof = tuple(evidence(artifact, "/loads/*/dp_rank", ranks) for artifact, ranks in sets)
        yield "the set of DP ranks differs", proof


def _launches(seen: Observed) -> Iterable[Difference]:
    """Two answers of /server_info under its two names, where both were asked."""
    values = seen.answers.values
    old, new = table(values.get("get_server_info")), table(values.get("server_info"))
    for key in ("launch_command", "random_seed", "port"):
        if key in old and key in new and old[key] != new[key]:
            proof = (evidence("server_info", f"/{key}"), evidence("get_server_info", f"/{key}"))
            yield f"{key} differs", proof


def _startups(seen: Observed) -> Iterable[Difference]:
    """Seconds that the start took: told by /server_info and by each scrape (since 0.5.17).

    With several DP ranks a scrape may tell each one's, so only scrapes are compared then.
    """
    told: list[tuple[str, str, Mapping[str, float | None]]] = [
        (one.artifact, STARTUP, by_label(one.exposition, STARTUP, "phase")) for one in seen.scrapes
    ]
    if seen.info and seen.info.dp_size == 1:
        phases = table(seen.info.arguments.get("startup_time"))
        own = {name: figure(phases.get(name)) for name in _STARTUP_PHASES}
        told.append((seen.info.artifact, "/startup_time", own))
    for phase in _STARTUP_PHASES:
        known = [(a, at, took) for a, at, phases in told if (took := phases.get(phase)) is not None]
        times = [took for _, _, took in known]
        if times and max(times) - min(times) > _SAME_SECONDS:
            yield f"the start ({phase}) took another time", tuple(evidence(*one) for one in known)
            return


def _fallen(seen: Observed) -> Iterable[Difference]:
    """Counters that fell sooner than a server can be restarted."""
    soon = [
        one
        for one in seen.progress.fell
        if one.seconds is not None and one.seconds < RESTART_SECONDS
    ]
    if soon:
        why = f"{len(soon)} counters fell within {soon[0].seconds:.0f} s"
        yield (
            why,
            tuple(
                evidence(one.artifact, one.at, {"before": one.before, "after": one.after})
                for one in soon[:4]
            ),
        )


def proxy_answered(seen: Observed) -> Ruling:
    """A proxy in front of the server answered in its place."""
    rule = "proxy-answered"
    answered = [one for one in seen.captures if one.status is not None]
    if not answered:
        return NotChecked(rule, "Nothing was answered.")
    proxied = [one for one in answered if from_proxy(one)]
    foreign = _foreign(seen)
    if not proxied and not foreign:
        return Quiet(rule, f"All {len(answered)} answers look like the server's own.")
    if proxied:
        paths = ", ".join(f"{one.path} ({one.status})" for one in proxied[:4])
        says = f"A proxy answered in the server's place: {paths}. The server was not reached there."
        return Claim(rule, says, Status.ESTABLISHED, tuple(map(outcome_of, proxied)), Level.WARN)
    says = (
        "/server_info was answered by something that is not an SGLang server: a gateway, perhaps."
    )
    return Claim(rule, says, Status.SUPPORTED, foreign, Level.WARN)


def _foreign(seen: Observed) -> tuple[Evidence, ...]:
    named = seen.answers.first("server_info", "get_server_info")
    return (evidence(named[0], ""),) if named and seen.info is None else ()


RULES = (not_one_server, proxy_answered)
