"""What an incident's page shows, gathered from the stores: its newest evidence speaks for it."""

from collections.abc import Mapping, Sequence
from datetime import datetime
from typing import Any

from sqlmodel import Session, col, select

from app.domain.dump_findings import REPLAY_ADVICE
from app.domain.urgency import VERDICT, Judgement, Summary, finding, verdict_of
from app.store.dump_tables import Dump
from app.store.evidence import artifacts_of
from app.store.incidents import jobs_at_work, judged_now, recent_bundles, targets_of
from app.store.same_faults import same_faults
from app.store.tables import BundleRow, Diagnostic, DiagnosticItem, Incident, Job, Target
from app.store.targets import topology_told
from app.web.incident_dumps import incident_dumps
from app.web.incident_replays import incident_replays
from app.web.ladder import ladder
from app.web.next_steps import Standing, steps_told
from app.web.recordings import recordings_told
from app.web.views import Shell
from app.web.views.bundle_told import changes_told
from app.web.views.evidence import EvidenceRow, evidence_rows
from app.web.views.incident_list import health_told, level_of
from app.web.views.incidents import (
    IncidentPage,
    LastBundle,
    Said,
    SinceHealthy,
    StepTold,
    VerdictTold,
)
from app.web.views.jobs import JobTold
from app.web.views.same_faults import SameFaultsTold
from app.web.views.signals import chips
from app.web.views.timeline import Story
from app.web.vitals import vitals

MOST_CHANGES = 4
NOTHING_ASKED = "Nothing was asked of a target yet: its health is not known."
LOOKED_WEDGED = "Nothing moves: that is what was found on its hosts."
LOOKED_BAD = "What was found on its hosts weighs more than what the server answers."
STOOD_STILL = "Requests are in the server, and nothing moved between the last two bundles."
_PANELS = {"bad": "bad", "unknown": "unknown"}


def incident_page(
    session: Session, shell: Shell, story: Story, server: str | None = None
) -> IncidentPage:
    """The page of an incident; *story* is the part of its timeline that was asked for.

    *server* is the key of the linked server that the ladder is about.
    """
    incident = story.incident
    assert incident.id is not None
    targets = targets_of(session, incident.id)
    bundles = recent_bundles(session, incident.id)
    judged = judged_now(session, incident.id, bundles)
    bundle = next((one for one in bundles if one.summary is judged.about), None)
    jobs = [_told(job, targets, shell.now) for job in jobs_at_work(session, incident.id)]
    told = ladder(session, incident.id, chosen=server, now=shell.now)
    replays = incident_replays(session, incident.id)
    here = [target for target in targets if target.deleted_at is None]
    at = Standing(incident.id, bundle, told, server, shell.role, has_target=bool(here))
    return IncidentPage(
        shell=shell,
        incident=incident,
        finding=_finding(incident, judged, bundle, targets),
        level=level_of(incident),
        health=health_told(incident),
        setup=_setup(judged.about or {}),
        verdict=_verdict(incident, judged, bundle),
        vitals=vitals(judged.about),
        steps=_steps(session, judged, at, is_offered=replays.offer is not None),
        bundle=_last(session, bundle) if bundle else None,
        targets=here,
        job=jobs[0] if jobs else None,
        more_jobs=jobs[1:],
        may_act=shell.may_act,
        story=story,
        now=shell.now,
        evidence=_evidence(session, incident.id),
        ladder=told,
        recordings=recordings_told(session, incident.id),
        dumps=incident_dumps(session, incident.id),
        replays=replays,
        same_faults=SameFaultsTold(same_faults(session, incident.id)),
    )


def _steps(
    session: Session, judged: Judgement, at: Standing, *, is_offered: bool
) -> list[StepTold]:
    """Without the replay, where the offer of one, which has a form filled in, says it already."""
    steps = steps_told(session, judged.next_steps, at)
    return [one for one in steps if not (is_offered and one.text.startswith(REPLAY_ADVICE))]


def _evidence(session: Session, incident_id: int) -> list[EvidenceRow]:
    query = (
        select(DiagnosticItem.artifact_id, DiagnosticItem.diagnostic_id)
        .join(Diagnostic, col(Diagnostic.id) == DiagnosticItem.diagnostic_id)
        .where(Diagnostic.incident_id == incident_id, DiagnosticItem.state != "here-already")
    )
    taken = {number: one for number, one in session.exec(query) if number is not None}
    read = select(Dump.artifact_id, Dump.id).where(Dump.incident_id == incident_id)
    dumps = {number: one for number, one in session.exec(read) if one is not None}
    return evidence_rows(artifacts_of(session, incident_id), taken, dumps)


def _finding(
    incident: Incident, judged: Judgement, bundle: BundleRow | None, targets: Sequence[Target]
) -> str:
    claim = judged.strongest
    if judged.looked and claim:
        return str(claim["says"]).partition(". ")[0].rstrip(".")
    if bundle is None or judged.about is None:
        return incident.title
    return finding(judged.about, _name(bundle, targets), judged.verdict)


def _name(bundle: BundleRow, targets: Sequence[Target]) -> str:
    return next((one.name for one in targets if one.id == bundle.target_id), bundle.base_url)


def _told(job: Job, targets: Sequence[Target], now: datetime) -> JobTold:
    name = next((one.name for one in targets if one.id == job.target_id), None)
    return JobTold.of(job, target=name, bundle_id=None, now=now)


def _setup(summary: Summary) -> str:
    model, version = summary.get("model") or {}, summary.get("version")
    told = (
        model.get("served_model_name") or model.get("model_path"),
        topology_told(summary.get("topology")),
        f"sglang {version}" if version else None,
    )
    return " · ".join(str(part) for part in told if part)


def _verdict(incident: Incident, judged: Judgement, bundle: BundleRow | None) -> VerdictTold:
    claim = judged.strongest
    if claim and claim["id"] == VERDICT:  # the line says it already
        claim = None
    said = Said(claim["says"], claim["status"], chips(claim)) if claim else None
    if not judged.looked and (bundle is None or judged.about is None):
        return VerdictTold(level="unknown", mark="unknown", line=NOTHING_ASKED, strongest=said)
    mark = level_of(incident)
    return VerdictTold(level=_PANELS.get(mark, ""), mark=mark, line=_line(judged), strongest=said)


def _line(judged: Judgement) -> str:
    """What the bundle says, or what knows more than it does."""
    if judged.looked:
        return LOOKED_WEDGED if judged.verdict == "wedged" else LOOKED_BAD
    if judged.verdict != verdict_of(judged.about):
        return STOOD_STILL
    says = ((judged.about or {}).get("health") or {}).get("says")
    return str(says or f"The verdict is {judged.verdict}.")


def _last(session: Session, bundle: BundleRow) -> LastBundle:
    assert bundle.id is not None
    spent = bundle.finished_at - bundle.collected_at if bundle.finished_at else None
    return LastBundle(
        id=bundle.id,
        at=bundle.collected_at,
        seconds=spent.total_seconds() if spent else None,
        since_healthy=_since_healthy(session, (bundle.summary or {}).get("changed_since_healthy")),
    )


def _since_healthy(session: Session, told: Mapping[str, Any] | None) -> SinceHealthy | None:
    healthy = session.get(BundleRow, told["bundle_id"]) if told else None
    if told is None or healthy is None or healthy.id is None:
        return None
    return SinceHealthy(
        bundle_id=healthy.id,
        at=healthy.collected_at,
        changes=changes_told(told["changes"][:MOST_CHANGES]),
        more=max(0, told["changes_total"] - MOST_CHANGES),
        alike=told["alike"],
    )
