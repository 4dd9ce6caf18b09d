"""Gathers the evidence ladder of an incident: linked servers, readiness, and the last runs."""

import shlex
from collections.abc import Sequence
from datetime import datetime

from sqlmodel import Session

from app.domain.counting import counted
from app.domain.ladder import RUNGS, Rung
from app.store.diagnostics import items_of, last_of_kind
from app.store.incidents import targets_of
from app.store.tables import Diagnostic, Target
from app.web.candidates import Candidate, candidates
from app.web.formats import span
from app.web.host_page import called
from app.web.rungs import NOT_LINKED, Looked, ready_told
from app.web.views.diagnostic_finding import finding
from app.web.views.hosts import HostTold
from app.web.views.ladder import Choice, LadderTold, LastRun, RungTold
from app.web.views.readiness import RestartTold


def ladder(session: Session, incident_id: int, *, chosen: str | None, now: datetime) -> LadderTold:
    """The ladder for the server *chosen* by its key; the first one where none is."""
    targets = [one for one in targets_of(session, incident_id) if one.deleted_at is None]
    found = candidates(session, targets)
    one = next((one for one in found if one.key == chosen), found[0] if found else None)
    linked = {candidate.target.id for candidate in found}
    last = last_of_kind(session, incident_id)
    looked = [Looked.at(host, server) for host, server in one.found] if one else []
    return LadderTold(
        rungs=[_rung(rung, one, looked, _last(session, last.get(rung.kind))) for rung in RUNGS],
        choices=[_choice(candidate, now) for candidate in found],
        chosen=_choice(one, now) if one else None,
        unlinked=[target for target in targets if target.id not in linked],
        profile_command=_profile(one.target if one else targets[0]) if targets else None,
        restarts=[RestartTold(part.host.name, card) for part in looked for card in part.restarts()],
    )


def _rung(
    rung: Rung, one: Candidate | None, looked: Sequence[Looked], last: LastRun | None
) -> RungTold:
    ready = ready_told(rung.kind, looked) if one else NOT_LINKED
    pressable = bool(looked) and ready.level != "bad"
    return RungTold(rung=rung, ready=ready, last=last, pressable=pressable)


def _last(session: Session, row: Diagnostic | None) -> LastRun | None:
    if row is None or row.id is None:
        return None
    return LastRun(row.id, row.asked_at, finding(row, items_of(session, row.id)))


def _choice(one: Candidate, now: datetime) -> Choice:
    ranks = one.ranks()
    name = one.target.name
    if one.several:
        name = f"{name}, {one.servers[0].server.name if one.servers[0].server else one.key}"
    used = [use.used_bytes for _, process in ranks for use in process.gpus or ()]
    known = [count for count in used if count is not None]
    level, says = _reached(one, now)
    return Choice(
        key=one.key,
        name=name,
        hosts=one.hosts,
        processes=[
            (process.id, f"{called(process)}, pid {process.pid} on {host.name}")
            for host, process in ranks
        ],
        gpu_bytes=sum(known) if known and len(known) == len(used) else None,
        level=level,
        says=says,
    )


def _reached(one: Candidate, now: datetime) -> tuple[str, str]:
    """The mark and the words for how the server was last seen."""
    lost = next((server for server in one.servers if server.server is None), None)
    if lost:
        return "unknown", f"not found on {lost.host.name}: {lost.says}"
    silent = next((h for h in _hosts(one, now) if h.level != "good"), None)
    if silent:
        return silent.level, f"{silent.name} {silent.says}"
    count = len(one.ranks())
    heard = max(now - host.heard_at for host in _hosts(one, now) if host.heard_at)
    ago = span(max(1, round(heard.total_seconds())))
    return "good", f"{counted(count, 'rank')}, heard {ago} ago"


def _hosts(one: Candidate, now: datetime) -> list[HostTold]:
    return [HostTold.of(server.host, now) for server in one.servers]


def _profile(target: Target) -> str:
    """SGLang's own profiler: 5 steps of CPU and GPU, to files on the server's host."""
    body = '{"num_steps": 5, "activities": ["CPU", "GPU"]}'
    url = shlex.quote(f"{target.base_url}/start_profile")
    return f"curl -X POST -H 'Content-Type: application/json' -d '{body}' {url}"
