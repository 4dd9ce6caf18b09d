"""From bundles, stacks and coredumps to a report: class, guess, ruled out, next steps.

The class stays None while the evidence does not decide. "Ruled out" comes only from rules that
looked and stayed quiet. Two bundles of one server, a minute apart, with work inside and no
counter moved, are a wedge.
"""

from collections.abc import Mapping, Sequence
from typing import Any

from app.domain.advice import best_guess, next_steps, production_risk
from app.domain.claims import ProblemClass
from app.domain.figures import table
from app.domain.findings import TELLING, Finding, claims_of, is_failing
from app.domain.findings import class_of as class_of_findings
from app.domain.findings import ruled_out as ruled_out_by
from app.domain.two_bundles import between_bundles

Summary = Mapping[str, Any]
Document = dict[str, Any]

_LEVELS = ("bad", "warn", "note")
_STATUSES = ("established", "supported", "hypothesis", "unknown")
# What says most about an incident, first; rules not named here come after.
_TELLING = (
    *TELLING,
    "wedged-between-bundles",
    "counters-frozen",
    "rank-without-progress",
    "snapshot-stale",
    "scheduler-silent",
    "generate-fails-health-ok",
    "blocked-after-loads",
    "went-away-while-collecting",
    "retraction",
    "ttft-high-queue-short",
    "rank-skew",
    "queue-build-up",
    "kv-pressure",
    "restart-between-bundles",
    "counter-reset",
    "not-one-server",
    "sessions-held-open",
    "partial-ranks",
    "proxy-answered",
)
_SLOW = ("retraction", "ttft-high-queue-short", "rank-skew", "queue-build-up", "kv-pressure")
_SILENT = ("scheduler-silent", "snapshot-stale", "blocked-after-loads")
# What a quiet rule rules out, in the words of a report.
_RULES_OUT = {
    "idle-capture": "Idle",
    "queue-build-up": "Queueing",
    "kv-pressure": "KV cache pressure",
    "retraction": "Retraction",
    "scheduler-silent": "A silent scheduler",
    "snapshot-stale": "A scheduler that stopped publishing",
    "rank-skew": "One rank with most of the work",
    "counter-reset": "A restart in the window",
    "not-one-server": "Several servers behind the address",
}
_UP = "http-down"
_NEVER_PROVEN = frozenset(("not-one-server", "rank-skew"))  # agreeing answers are no proof
# Figures of load are of the last publication: over a server that stands still, of long ago.
_OF_LOAD = frozenset(("queue-build-up", "kv-pressure", "retraction", "rank-skew"))
_STANDING_STILL = frozenset(("snapshot-stale", "counters-frozen"))


def diagnose(summaries: Sequence[Summary], findings: Sequence[Finding] = ()) -> Document:
    """The findings of one incident from its bundles' *summaries*, in any order.

    *findings* are those of looks into its hosts, newest first: what they prove gives the class.
    Else the newest bundle that decides does; what an older one showed stays a claim.
    """
    ordered = sorted(summaries, key=lambda one: str(one.get("collected_at") or ""), reverse=True)
    across = between_bundles(ordered)
    looked = claims_of(findings)
    claims = [*across, *(claim for one in ordered for claim in one.get("signals") or ()), *looked]
    strongest = _strongest(claims)
    current = [*looked, *across, *(ordered[0].get("signals") or () if ordered else ())]
    newest: Summary = ordered[0] if ordered else {}
    found = class_of_findings(findings) or _class_of_all(ordered, across)
    return {
        "problem_class": found.value if found else None,
        "strongest_signal": strongest,
        "best_guess": best_guess(newest, found, strongest),
        "ruled_out": [*ruled_out_by(findings), *_ruled_out(newest, claims)],
        "checked": [*_checked(newest), *_looked(looked)],
        "next_steps": _steps(findings, next_steps(newest, current)),
        "production_risk": production_risk(newest, current),
        "claims": claims,
    }


def _strongest(claims: Sequence[Mapping[str, Any]]) -> Document | None:
    """The most severe claim about the incident itself, best proven first, newest first."""
    telling = [one for one in claims if one["id"] in _TELLING]
    best = min(telling, key=_order, default=None)
    return dict(best) if best else None


def _order(claim: Mapping[str, Any]) -> tuple[int, int, int, int]:
    level, status = claim.get("level", "note"), claim.get("status", "unknown")
    return (
        _LEVELS.index(level) if level in _LEVELS else len(_LEVELS),
        _TELLING.index(claim["id"]),
        _STATUSES.index(status) if status in _STATUSES else len(_STATUSES),
        -len(claim.get("evidence") or ()),
    )


def _class_of_all(
    ordered: Sequence[Summary], across: Sequence[Mapping[str, Any]]
) -> ProblemClass | None:
    if any(one["id"] == "wedged-between-bundles" for one in across):
        return ProblemClass.HANG
    return next((found for one in ordered if (found := class_of(one)) is not None), None)


def class_of(summary: Summary) -> ProblemClass | None:
    """The problem class that one bundle decides; None where it does not."""
    health = table(summary.get("health"))
    verdict, row = health.get("verdict"), health.get("row")
    fired = {one["id"]: one for one in summary.get("signals") or ()}
    silent = any(name in fired for name in _SILENT)
    if verdict == "wedged" or (verdict == "false green" and row != "green-cannot-generate"):
        return ProblemClass.HANG
    # Two things that need the scheduler failed, each in its own way.
    if silent and _probe_failed(summary):
        return ProblemClass.HANG
    if verdict in ("gone", "false red", "starting", "false green"):
        return ProblemClass.DOWN
    if verdict in ("healthy", "busy") and any(_proven(fired.get(name)) for name in _SLOW):
        return ProblemClass.LATENCY
    return None


def _probe_failed(summary: Summary) -> bool:
    probes = table(summary.get("health")).get("probes") or ()
    return any(one.get("name") != "ready" and one.get("status") == 503 for one in probes)


def _proven(claim: Mapping[str, Any] | None) -> bool:
    return claim is not None and claim.get("status") in ("established", "supported")


def _ruled_out(summary: Summary, claims: Sequence[Mapping[str, Any]]) -> list[Document]:
    """What the newest bundle's quiet rules exclude; never what another bundle claims."""
    fired = {one["id"] for one in claims}
    out = [
        _excluded(summary, quiet, _RULES_OUT[quiet["id"]])
        for quiet in summary.get("quiet") or ()
        if quiet["id"] in _RULES_OUT and quiet["id"] not in fired and quiet.get("rules_out", True)
    ]
    frozen = next(
        (one for one in summary.get("quiet") or () if one["id"] == "counters-frozen"), None
    )
    if frozen and table(summary.get("progress")).get("moved") is True:
        out.insert(0, _excluded(summary, frozen, "A hang of the whole scheduler"))
    return [*out, *_http_up(summary)]


def _excluded(summary: Summary, quiet: Mapping[str, Any], what: str) -> Document:
    fired = {one["id"] for one in summary.get("signals") or ()}
    weak = quiet["id"] in _NEVER_PROVEN or (quiet["id"] in _OF_LOAD and fired & _STANDING_STILL)
    return {
        "id": quiet["id"],
        "says": f"{what}: {quiet['says']}",
        "status": "supported" if weak else "established",
        "evidence": _placed(summary, quiet.get("evidence") or ()),
    }


def _placed(summary: Summary, evidence: Sequence[Mapping[str, Any]]) -> list[Document]:
    """*evidence* named with its bundle where the summary says which one it is."""
    bundle = summary.get("artifact")
    return [
        {**one, "artifact": f"{bundle}/{one['artifact']}" if bundle else one["artifact"]}
        for one in evidence
    ]


def _http_up(summary: Summary) -> list[Document]:
    """That the HTTP side answered at all: said only where something else is wrong."""
    if table(summary.get("health")).get("verdict") in ("healthy", "busy"):
        return []
    good = [one for one in summary.get("endpoints") or () if one.get("status") == 200]
    if not good:
        return []
    paths = sorted({str(one.get("path")).partition("?")[0] for one in good})
    evidence = [{"artifact": one["name"], "at": "status", "value": 200} for one in good[:4]]
    says = f"An HTTP server that was down at the start: {', '.join(paths[:4])} answered 200."
    return [
        {
            "id": _UP,
            "says": says,
            "status": "established",
            "evidence": _placed(summary, evidence),
        }
    ]


def _checked(summary: Summary) -> list[Document]:
    """The verdict, then each rule that could look, then those that could not."""
    health = table(summary.get("health"))
    rows = []
    if health:
        rows.append(_row("health", f"{health.get('verdict')}. {health.get('says')}", summary, ()))
    rows += [
        _row(one["id"], one["says"], {}, one.get("evidence") or ())
        for one in summary.get("signals") or ()
    ]
    rows += [
        _row(one["id"], one["says"], summary, one.get("evidence") or ())
        for one in summary.get("quiet") or ()
    ]
    unseen = summary.get("not_checked") or ()
    return rows + [_row(one["id"], f"not checked. {one['why']}", summary, ()) for one in unseen]


def _looked(claims: Sequence[Mapping[str, Any]]) -> list[Document]:
    """What was looked at on the hosts."""
    return [_row(one["id"], one["says"], {}, one["evidence"]) for one in claims]


def _steps(findings: Sequence[Finding], steps: Sequence[Document]) -> list[Document]:
    """*steps*, with what would settle what the hosts left open: first where that is bad."""
    bad = [one for one in findings if is_failing([one])]
    rest = [one for one in findings if not is_failing([one])]
    found = [*_open(bad), *steps, *_open(rest)]
    return list({step["text"]: step for step in reversed(found)}.values())[::-1]


def _open(findings: Sequence[Finding]) -> list[Document]:
    return [dict(step) for one in findings for step in one["settles"]]


def _row(
    what: str, result: str, summary: Summary, evidence: Sequence[Mapping[str, Any]]
) -> Document:
    return {"what": what, "result": result, "evidence": _placed(summary, evidence)}
