"""Rules about a server that stopped: silence, stale snapshots, counters that stand still."""

from app.domain.capture import Capture, Outcome
from app.domain.claims import Claim, Evidence, Level, Status
from app.domain.health import (
    PROBE_TIMEOUT_SECONDS,
    blocked_by_loads,
    late_ranks,
    scheduler_silent,
    went_away,
)
from app.domain.health_table import WEDGED_SECONDS
from app.domain.loads import STALE_SECONDS
from app.domain.observed import Observed, evidence
from app.domain.progress import REQUEST_COUNTERS, STEP_COUNTERS
from app.domain.signals.ruling import NotChecked, Quiet, Ruling

# A start of SGLang takes longer, so a counter that falls sooner belongs to another server.
RESTART_SECONDS = 30.0
_GENERATING = ("health", "health_generate")


def outcome_of(capture: Capture) -> Evidence:
    """How one endpoint answered, as evidence."""
    if capture.status is not None:
        return evidence(capture.name, "status", capture.status)
    return evidence(capture.name, "outcome", capture.outcome.value)


def scheduler_is_silent(seen: Observed) -> Ruling:
    """/server_info, which waits for every scheduler, timed out while others answered."""
    rule = "scheduler-silent"
    asked, silent = seen.capture("server_info", "get_server_info"), scheduler_silent(seen)
    if asked is None or silent is None:
        return NotChecked(rule, "/server_info gave neither an answer nor a silence that tells.")
    if not silent:
        return Quiet(
            rule, "/server_info was answered, so every scheduler answered.", (outcome_of(asked),)
        )
    witness = seen.capture("model_info", "get_model_info", "ready")
    waited = f" within {asked.seconds:.0f} s" if asked.seconds else ""
    failed = [one for one in seen.captures if one.name in _GENERATING and one.status == 503]
    also = f", and {failed[0].path} failed with 503" if failed else ""
    says = (
        f"{asked.path} got no answer{waited} while {witness.path if witness else 'others'} "
        f"answered{also}: at least one scheduler is silent. Each further try parks another request."
    )
    proof = tuple(outcome_of(one) for one in (asked, witness, *failed) if one)
    return Claim(rule, says, Status.ESTABLISHED if failed else Status.SUPPORTED, proof, Level.BAD)


def went_away_while_collecting(seen: Observed) -> Ruling:
    """Answers at first, refused connections at the end."""
    rule = "went-away-while-collecting"
    if not seen.captures:
        return NotChecked(rule, "No endpoint was asked.")
    if not went_away(seen.captures):
        refused = [one for one in seen.captures if one.outcome is Outcome.REFUSED]
        says = f"{len(refused)} of {len(seen.captures)} calls were refused."
        return Quiet(rule, says, tuple(outcome_of(one) for one in refused[:3]))
    course = [one.status or one.outcome.value for one in seen.captures]
    steps = [str(one) for i, one in enumerate(course) if i == 0 or one != course[i - 1]]
    undated = "" if seen.captures[0].started_at else " (the bundle keeps no times, only an order)"
    says = (
        f"The answers went {' → '.join(steps)}{undated}: the server went away, or restarted, while "
        "it was being asked."
    )
    proof = tuple(outcome_of(one) for one in seen.captures)
    return Claim(rule, says, Status.ESTABLISHED, proof, Level.BAD)


def blocked_after_loads(seen: Observed) -> Ruling:
    """/v1/loads timed out, and so did everything asked after it."""
    rule = "blocked-after-loads"
    if not any(one.name.startswith("loads_") for one in seen.captures):
        return NotChecked(rule, "/v1/loads was not asked.")
    call = blocked_by_loads(seen.captures)
    if call is None:
        return Quiet(rule, "/v1/loads did not stop the server from answering.")
    after = seen.captures[seen.captures.index(call) + 1 :]
    says = (
        f"{call.path} timed out, and so did the {len(after)} calls after it, though others had "
        "answered before: fits a scheduler frozen while it holds the lock of the load snapshot."
    )
    return Claim(rule, says, Status.SUPPORTED, tuple(map(outcome_of, (call, *after))), Level.BAD)


def generate_fails_health_ok(seen: Observed) -> Ruling:
    """A health endpoint is green while another, which generates, fails."""
    rule = "generate-fails-health-ok"
    asked = {one.name: one for one in seen.captures}
    probe = asked.get("health_generate") or asked.get("health")
    others = [
        asked[name] for name in ("health", "ready") if name in asked and asked[name] is not probe
    ]
    if probe is None or not others:
        return NotChecked(rule, "No probe was sent, or nothing to set against it was asked.")
    failed = probe.status == 503 or probe.outcome is Outcome.TIMEOUT
    if probe.outcome is Outcome.TIMEOUT and (probe.seconds or 0.0) < PROBE_TIMEOUT_SECONDS:
        return NotChecked(
            rule, f"{probe.path} was given up before the server's own 20 s were over."
        )
    green = [one for one in others if one.status == 200]
    proof = tuple(map(outcome_of, (probe, *others)))
    if not failed or not green:
        return Quiet(rule, "The health endpoints do not contradict each other.", proof)
    how = "answered 503" if probe.status == 503 else f"did not answer in {probe.seconds or 0:.0f} s"
    says = f"{' and '.join(one.path for one in green)} said 200 while {probe.path} {how}."
    status = Status.ESTABLISHED if probe.status == 503 else Status.SUPPORTED
    return Claim(rule, says, status, proof, Level.BAD if probe.status == 503 else Level.WARN)


def snapshot_stale(seen: Observed) -> Ruling:
    """The load snapshot of a rank is old: its scheduler has published nothing since."""
    rule, load = "snapshot-stale", seen.load
    ages = [(rank.age_seconds, rank) for rank in load.ranks] if load else []
    known = [(age, rank) for age, rank in ages if age is not None]
    if load is None or not known:
        return NotChecked(rule, "No load snapshot with its time: /v1/loads tells it since 0.5.15.")
    old = sorted((one for one in known if one[0] >= STALE_SECONDS), key=lambda one: -one[0])
    oldest = max(age for age, _ in known)
    shown = old or [max(known, key=lambda one: one[0])]
    proof = tuple(
        evidence(load.artifact, f"{rank.place}/timestamp", rank.published_at) for _, rank in shown
    )
    if not old:
        return Quiet(rule, f"The oldest load snapshot was {oldest:.2f} s old.", proof)
    others = " while other ranks are fresh" if late_ranks(load) else ""
    names = ", ".join(f"DP{rank.dp_rank}" for _, rank in old[:8])
    says = (
        f"The load snapshot of {names} is {oldest:.1f} s old{others}; a scheduler that works "
        "publishes all the time, an idle one too. Its figures are of then."
    )
    level = Level.BAD if oldest >= WEDGED_SECONDS else Level.WARN
    return Claim(rule, says, Status.ESTABLISHED, proof, level)


def counters_frozen(seen: Observed) -> Ruling:
    """Requests are in the server at both looks, and no counter moved in between."""
    rule, moves = "counters-frozen", seen.progress
    telling = [one for one in moves.moves if one.name in (*REQUEST_COUNTERS, *STEP_COUNTERS)] or [
        one for one in moves.moves if one.dp_rank is not None
    ]
    if moves.moved is None:
        why = "A counter fell in between." if moves.fell else "Fewer than two looks at counters."
        return NotChecked(rule, why)
    proof = tuple(evidence(one.artifact, one.at, one.as_json()) for one in telling[:6])
    if moves.moved:
        return Quiet(rule, "Counters moved between the two looks.", proof)
    if not moves.work_throughout:
        return Quiet(
            rule, "No counter moved, and no request was in the server all the while.", proof
        )
    span = moves.window_seconds or next((one.seconds for one in telling if one.seconds), None)
    over = f"{span:.0f} s" if span else "the time between two looks"
    minute = span is not None and span >= WEDGED_SECONDS
    says = f"{_requests(seen)} in the server for {over}, and no counter moved.{_told(seen)}"
    stepped = any(one.name in STEP_COUNTERS or one.dp_rank is not None for one in telling)
    if not stepped and not minute:
        says += " Only requests that begin or end were counted: a long answer looks like this too."
    status = Status.ESTABLISHED if minute else _short(stepped)
    return Claim(
        rule, says, status, (*_work_proof(seen), *proof), Level.BAD if minute else Level.WARN
    )


def rank_without_progress(seen: Observed) -> Ruling:
    """A DP rank holds requests and did not move while another rank did."""
    rule, moves = "rank-without-progress", seen.progress
    known = [rank for rank in moves.ranks if rank.quiet_seconds is not None]
    if len(known) < 2:
        return NotChecked(rule, "Fewer than two DP ranks told twice what they did.")
    still = moves.still_ranks
    numbers = {rank.dp_rank for rank in still or known}
    proof = tuple(
        evidence(one.artifact, one.at, one.as_json())
        for one in moves.moves
        if one.dp_rank in numbers
    )[:8]
    if not still:
        return Quiet(rule, f"None of {len(known)} ranks stood still while another moved.", proof)
    names = ", ".join(f"DP{rank.dp_rank}" for rank in still[:8])
    quiet = min(rank.quiet_seconds or 0.0 for rank in still)
    says = f"{names}: requests inside, and nothing moved for {quiet:.0f} s while other ranks moved."
    minute = quiet >= WEDGED_SECONDS
    status = Status.ESTABLISHED if minute else Status.SUPPORTED
    return Claim(rule, says, status, proof, Level.BAD if minute else Level.WARN)


def _short(stepped: bool) -> Status:  # noqa: FBT001 - the one thing that decides
    """Less than a minute: fits a hang, if passes of the model were counted at all."""
    return Status.SUPPORTED if stepped else Status.HYPOTHESIS


def _requests(seen: Observed) -> str:
    load = seen.load
    running = load.total("running", seen.dp_size) if load else seen.gauge("sglang:num_running_reqs")
    waiting = load.total("waiting", seen.dp_size) if load else seen.gauge("sglang:num_queue_reqs")
    parts = [
        f"{number:.0f} {word}"
        for number, word in ((running, "running"), (waiting, "waiting"))
        if number is not None
    ]
    return "Requests (" + ", ".join(parts) + ")" if parts else "Requests"


def _told(seen: Observed) -> str:
    """What else the scrapes tell: a gauge left standing, requests begun and not ended."""
    told = ""
    gauge = seen.gauge("sglang:gen_throughput")
    if gauge:
        told += (
            f" The gauge gen_throughput still tells {gauge:.1f}: its last value, not a live one."
        )
    first = seen.gauge("sglang:time_to_first_token_seconds_count")
    ended = seen.gauge("sglang:num_requests_total")
    if first is not None and ended is not None and first > ended:
        told += (
            f" {first:.0f} first tokens against {ended:.0f} finished: up to {first - ended:.0f} "
            "requests began and did not end."
        )
    return told


def _work_proof(seen: Observed) -> tuple[Evidence, ...]:
    load = seen.load
    if load:
        return tuple(
            evidence(load.artifact, f"{rank.place}/num_running_reqs", rank.running)
            for rank in load.ranks[:8]
            if rank.has_work
        )
    name = "sglang:num_running_reqs"
    return tuple(evidence(one.artifact, name, seen.gauge(name)) for one in seen.scrapes[-1:])


def counter_reset(seen: Observed) -> Ruling:
    """A counter fell between two looks that are far enough apart for a restart."""
    rule, moves = "counter-reset", seen.progress
    if not moves.moves:
        return NotChecked(rule, "Fewer than two looks at counters.")
    if not moves.fell:
        return Quiet(rule, f"None of {len(moves.moves)} counters fell.")
    names = ", ".join(one.name for one in moves.fell[:3])
    span = moves.fell[0].seconds
    says = (
        f"{len(moves.fell)} counters fell between the two looks ({names}): the process was "
        "restarted in between, or another server answered. No rate of this window is given."
    )
    soon = span is not None and span < RESTART_SECONDS
    proof = tuple(
        evidence(one.artifact, one.at, {"before": one.before, "after": one.after})
        for one in moves.fell[:6]
    )
    return Claim(rule, says, Status.SUPPORTED if soon else Status.ESTABLISHED, proof, Level.WARN)


RULES = (
    scheduler_is_silent,
    went_away_while_collecting,
    blocked_after_loads,
    generate_fails_health_ok,
    snapshot_stale,
    counters_frozen,
    rank_without_progress,
    counter_reset,
)
