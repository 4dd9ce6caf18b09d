"""What to think and what to do next, for an on-call engineer: guess, steps, risk.

Every step names its reason and what it may break. Evidence first: nothing here restarts a
server before its stacks are saved.
"""

from collections.abc import Collection, Mapping, Sequence
from dataclasses import asdict, dataclass
from typing import Any

from app.domain.claims import ProblemClass
from app.domain.counting import counted
from app.domain.figures import table
from app.domain.findings import TELLING
from app.domain.ladder import Kind
from app.domain.places import Place

Summary = Mapping[str, Any]


@dataclass(frozen=True, slots=True)
class Step:
    """One thing to do."""

    text: str
    why: str
    risk: str
    command: str | None = None  # to run on the server's host
    rung: Kind | None = None  # of the evidence ladder: it does the same, through an agent
    place: Place | None = None  # where in the console it is done, where no rung does it


# A stopped process refuses a blocking dump at once and one in disk sleep never ends it:
# hence the second try and the time limit (py-spy 0.4.3).
_DUMP_EVERY_SCHEDULER = (
    'for pid in $(pgrep -f ^sglang::scheduler); do echo "== $pid"; '
    "timeout 20 py-spy dump --pid $pid || timeout 20 py-spy dump --nonblocking --pid $pid; "
    "done | tee stacks-$(date +%H%M%S).txt"
)
_STACKS = Step(
    "Take the stacks of every scheduler now, twice, before anything is restarted.",
    "Only stacks tell a hang from a long prefill, a compile or a GC pause, and a restart "
    "destroys them.",
    "py-spy stops each process for less than a second; --nonblocking stops nothing.",
    _DUMP_EVERY_SCHEDULER,
    rung="stacks",
)
_NO_POLLING = Step(
    "Do not ask /server_info or a health probe again until the stacks are saved.",
    "Each try parks another request in the silent scheduler; a failed probe turns /ready to 503.",
    "None.",
)
_SECOND_BUNDLE = Step(
    "Collect a second bundle a minute after the first.",
    "A minute without movement, with work inside, is a wedge; less is not.",
    "Read-only; /v1/loads may block the server while a scheduler is frozen with its lock.",
    place="collect",
)
_ASK_ONCE = Step(
    "Ask /health once.",
    "The answers so far do not tell whether a token comes out.",
    "Sends one token; if it fails, /ready turns 503 and a load balancer may drain the server.",
    place="ask once",
)
_EXACT_REQUEST = Step(
    "Save the request that seems to trigger it: paste its JSON or curl command on this incident.",
    "A request dump has finished requests only: what hangs is in none.",
    "What is pasted holds somebody's prompt.",
    place="paste",
)
_STUCK = (_STACKS, _NO_POLLING, _EXACT_REQUEST)
# By row of the health table, then by verdict.
_BY_HEALTH: Mapping[str, tuple[Step, ...]] = {
    "wedged": _STUCK,
    "partly-wedged": _STUCK,
    "partly-wedged-green": _STUCK,
    "silent-scheduler": _STUCK,
    "silent-scheduler-green": _STUCK,
    "blocked": _STUCK,
    "silent": _STUCK,
    "short-window": (_STACKS, _SECOND_BUNDLE, _NO_POLLING),
    "no-progress": (_STACKS, _SECOND_BUNDLE, _NO_POLLING),
    "stale": (_STACKS, _SECOND_BUNDLE, _NO_POLLING),
    "late-ranks": (_STACKS, _SECOND_BUNDLE, _NO_POLLING),
    "scheduler-silent": (_STACKS, _SECOND_BUNDLE, _NO_POLLING),
    "cannot-generate": (_STACKS, _SECOND_BUNDLE),
    "green-cannot-generate": (_STACKS, _SECOND_BUNDLE),
    "went-away": (
        Step(
            "Take the stacks of every scheduler process that is left.",
            "The server was dying or restarting: they go with it.",
            "py-spy stops each process for less than a second.",
            _DUMP_EVERY_SCHEDULER,
            rung="stacks",
        ),
        Step(
            "Read the server's log and the kernel log.",
            "The first error is on its host.",
            "None.",
            rung="host facts",
        ),
        Step(
            "Copy the dumps that the server wrote.",
            "A crash dump is on its host, and goes with the disk of a pod.",
            "Dumps hold prompts.",
            rung="server dumps",
        ),
    ),
    "refused": (
        Step(
            "Look at the process, its log and the kernel log on the host.",
            "Nothing listens: crashed, killed, or still loading its model.",
            "None.",
            rung="host facts",
        ),
    ),
    "false red": (
        Step(
            "Raise SGLANG_HEALTH_CHECK_TIMEOUT or the thresholds of the probe, and look for a long "
            "prompt.",
            "The work moves; a prompt in chunks gives no output for longer than the check waits.",
            "Needs a restart to take effect; loosening a probe delays the notice of a real hang.",
        ),
    ),
    "undecided": (_ASK_ONCE,),
}
_BY_CLAIM: Mapping[str, Step] = {
    "not-one-server": Step(
        "Register each server behind this address as a target of its own.",
        "Answers of several servers cannot be compared.",
        "None.",
        place="register",
    ),
    "proxy-answered": Step(
        "Ask the server itself, past the proxy.",
        "What the proxy says is not what the server says.",
        "None.",
        place="register",
    ),
    "no-access": Step(
        "Give this target its API key (the user key; the admin key does not open these).",
        "Load and settings are not known without it.",
        "None.",
        place="edit target",
    ),
    "metrics-off": Step(
        "Start the server with --enable-metrics at its next restart.",
        "Without /metrics latency is not known.",
        "A restart drops every request and all evidence in memory: not during the incident.",
    ),
    "idle-capture": Step(
        "Collect again under traffic, or record requests for a while and replay them.",
        "Nothing ran while this bundle was taken.",
        "None.",
        place="collect",
    ),
    "counter-reset": Step(
        "Mark the restart on the timeline and find out who did it.",
        "Counters fell: the process is another one now.",
        "None.",
        place="note",
    ),
    "restart-between-bundles": Step(
        "Mark the restart on the timeline and find out who did it.",
        "Counters fell: the process is another one now.",
        "None.",
        place="note",
    ),
    "rank-skew": Step(
        "Compare the stacks and the host of the rank that differs with those of another.",
        "One rank holds the work back.",
        "py-spy stops each process for less than a second.",
        rung="stacks",
    ),
    "ttft-high-queue-short": Step(
        "Look at the longest stage, and record requests for a few minutes to replay the slow ones.",
        "The queue is short, so more replicas would not help.",
        "Recording changes a setting of the server, and writes prompts to its host's disk.",
        place="record",
    ),
    "retraction": Step(
        "Lower --max-running-requests, or give the KV cache more memory.",
        "Requests are thrown out and computed again.",
        "Needs a restart.",
    ),
    "sessions-held-open": Step(
        "Close sessions that nobody uses, or give them a timeout.",
        "Open sessions pin KV cache.",
        "A closed session loses its cached prefix.",
    ),
    "secrets-exposed-by-server": Step(
        "Keep /server_info from untrusted callers, and change the keys it gave away.",
        "Whoever can read it has the keys, the admin key too.",
        "Changing keys needs a restart and new settings at every client.",
    ),
    "rust-ingress-no-api-key": Step(
        "Put an authenticating proxy in front of the Rust ingress.",
        "It checks no key itself.",
        "None.",
    ),
}
_GUESSES: Mapping[str, str] = {
    "wedged": "The scheduler is stuck with requests inside: a collective that a rank never joined, "
    "a lock, or a kernel that does not return. Stacks of every rank tell which.",
    "partly-wedged-green": "Some ranks are stuck while others serve; requests sent to them hang.",
    "partly-wedged": "Some ranks are stuck; requests sent to them hang.",
    "silent-scheduler-green": "The HTTP process is alive over a scheduler that stopped.",
    "went-away": "The HTTP process was alive and then gone: the server was dying or restarting at "
    "that moment.",
    "refused": "The server process is gone, or still loading its model.",
    "busy-not-stuck": "False unhealthy: the work moves, and a long prompt in chunks, or a compile, "
    "gave no output for longer than the health check waits.",
    "starting": "The server is still starting.",
    "green-cannot-generate": "The HTTP process is alive and no token comes out: scheduler or "
    "detokenizer.",
}

# By what the hosts showed, where it is proven to be bad.
_GUESS_BY_CLAIM: Mapping[str, str] = {
    "gpu-exception": "A kernel faulted on the GPU, and the process with it. It used what an "
    "earlier kernel wrote: the cause is upstream of it.",
    "rank-ended": "A process of the server has ended, and whoever needs it waits. How it ended is "
    "the question: its log, and the kernel's.",
    "rank-stopped": "A process is held from outside (a signal, a debugger, a frozen cgroup or "
    "the kernel), and whoever needs it waits.",
    "rank-divergence": "One part of the ranks holds up the others, which wait for it in a "
    "collective.",
    "different-collectives": "The ranks took different paths: each side waits for a collective "
    "that the other does not enter.",
    "ranks-symmetric": "All ranks wait alike: the cause lies below Python, in the network, or "
    "with a rank that is not among these.",
}


def best_guess(
    summary: Summary, found: ProblemClass | None, strongest: Mapping[str, Any] | None
) -> dict[str, Any] | None:
    """The likeliest story as a claim; None while the evidence decides nothing."""
    row = _row(summary, [strongest] if strongest else [])
    says = _by_claim(strongest) or _GUESSES.get(row)
    if row == "went-away" and found is ProblemClass.HANG and not _by_claim(strongest):
        says = (
            "The HTTP process was alive over a scheduler that did not answer. While it was asked, "
            "the port began to refuse: the server was dying or restarting at that moment."
        )
    if says is None and found is ProblemClass.HANG:
        says = "The HTTP process is alive over a scheduler that does not answer."
    if says is None and found is ProblemClass.LATENCY and strongest:
        says = f"Slow, not stuck. {strongest['says']}"
    if says is None:
        return None
    evidence = list(strongest.get("evidence") or ()) if strongest else []
    status = "supported" if evidence else "hypothesis"
    return {
        "id": "best-guess",
        "says": says,
        "status": status,
        "level": "note",
        "evidence": evidence,
    }


def _by_claim(strongest: Mapping[str, Any] | None) -> str | None:
    bad = strongest is not None and strongest.get("level") == "bad"
    return _GUESS_BY_CLAIM.get(strongest["id"]) if strongest and bad else None


def _row(summary: Summary, claims: Sequence[Mapping[str, Any]]) -> str:
    """The row of the health table; two bundles, or stacks, may know more than the newest one."""
    if any(
        one["id"] == "wedged-between-bundles"
        or (one["id"] in TELLING and one.get("level") == "bad")
        for one in claims
    ):
        return "wedged"
    return str(table(summary.get("health")).get("row"))


def next_steps(summary: Summary, claims: Sequence[Mapping[str, Any]]) -> list[dict[str, Any]]:
    """What to do, most urgent first, each step once."""
    verdict = str(table(summary.get("health")).get("verdict"))
    steps = [*_BY_HEALTH.get(_row(summary, claims), ()), *_BY_HEALTH.get(verdict, ())]
    steps += [_BY_CLAIM[one["id"]] for one in claims if one["id"] in _BY_CLAIM]
    return [asdict(step) for step in dict.fromkeys(steps)]


def takes(rung: str, kind: str) -> bool:
    """Whether a diagnostic of *kind* is what a step with *rung* asks for."""
    return kind == rung or (rung, kind) == ("stacks", "native stacks")


def still_open(
    steps: Sequence[Mapping[str, Any]], taken: Collection[str]
) -> list[Mapping[str, Any]]:
    """*steps* without those that held only until *taken* kinds of evidence were there."""
    saved = any(takes("stacks", kind) for kind in taken)
    return [one for one in steps if not (saved and one["text"] == _NO_POLLING.text)]


_RISKS: Mapping[str, str] = {
    "wedged": "High: requests hang, and the watchdog or a probe may kill the server within "
    "minutes, and with it the stacks.",
    "false green": "High: traffic is still sent to a server that does not serve it.",
    "gone": "High: nothing is served, and a restart destroys what processes could still show.",
    "false red": "High: a liveness probe restarts a server that works, and its requests are lost.",
    "starting": "Nothing is served until it is up.",
    "busy": "Requests wait longer than they should; none is lost so far.",
    "healthy": "Low by this bundle.",
}


def production_risk(summary: Summary, claims: Sequence[Mapping[str, Any]]) -> str:
    """What waiting costs, in words; says so where it is not known."""
    row, verdict = _row(summary, claims), str(table(summary.get("health")).get("verdict"))
    fired = {one["id"] for one in claims}
    parts = [_RISKS.get(row) or _RISKS.get(verdict) or _undecided(fired), *_inside(summary)]
    if fired & {"counter-reset", "restart-between-bundles"}:
        parts.append("A restart has already destroyed the stacks of the process before it.")
    return " ".join(parts)


def _undecided(fired: set[str]) -> str:
    if fired & {"scheduler-silent", "snapshot-stale", "counters-frozen", "blocked-after-loads"}:
        return (
            "Not decided, possibly high: if it hangs, the watchdog or a probe may kill it within "
            "minutes, and with it the stacks."
        )
    return "Not known: the evidence does not tell whether it serves."


def _inside(summary: Summary) -> list[str]:
    """How many requests are at stake, where that is known."""
    totals = table(table(summary.get("load")).get("totals"))
    counts = [totals.get("running"), totals.get("waiting")]
    known = [one for one in counts if isinstance(one, int)]
    if len(known) < len(counts) or not sum(known):
        return []
    return [f"{counted(known[0], 'request runs', 'requests run')} and {known[1]} wait."]
