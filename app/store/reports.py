"""Living reports: drafted from an incident's evidence at each reading, edited by people."""

from collections.abc import Sequence
from datetime import datetime
from typing import Any

from sqlmodel import Session, col, select

from app.domain.diagnosis import diagnose
from app.domain.playbook import ReportEdited
from app.domain.report import Document, draft
from app.domain.report_edits import Change, ChooseClass, artifacts_of, changed, field_of
from app.domain.report_entries import FIELDS
from app.domain.report_parts import Input, Source, Subject
from app.errors import Conflict, Rejected
from app.store import audit, evidence, timeline
from app.store.audit import Actor
from app.store.incidents import RULES, change_incident, targets_of
from app.store.looked import findings_of
from app.store.same_faults import same_faults
from app.store.tables import BundleRow, Incident, Job, Report

BUNDLE = "bundle"
MOST_BUNDLES = 50  # that one report reads; a summary is about 20 kB


def report_of(session: Session, incident: Incident, *, at: datetime) -> Document:
    """The report of an incident as it is now, in the shape of interface §2."""
    row = _row(session, incident)
    edits = row.edits if row else {}
    bundles = bundles_of(session, incident)
    document = draft(
        _subject(session, incident, edits),
        bundles,
        diagnose([one.placed for one in bundles], findings_of(session, _number(incident))),
        edits,
        inputs=_inputs(session, incident),
        revision=row.revision if row else 0,
        at=at,
    )
    elsewhere = same_faults(session, _number(incident))  # not of its own evidence: no claim
    return document | {"same_faults": [one.as_json() for one in elsewhere]}


def revision_of(session: Session, incident: Incident) -> int:
    """How often people have edited the report."""
    row = _row(session, incident)
    return row.revision if row else 0


def edit(
    session: Session,
    incident: Incident,
    changes: Sequence[Change],
    *,
    revision: int | None,
    actor: Actor,
    at: datetime,
) -> int:
    """Apply *changes*, all or none; the new revision.

    Raises Conflict when *revision* is given and somebody edited the report since, Rejected for
    a claim that says more than its evidence.
    """
    row = _row(session, incident) or Report(
        incident_id=_number(incident), edits={}, updated_at=at, updated_by=actor.name
    )
    if revision is not None and revision != row.revision:
        raise Conflict(
            f"The report is at revision {row.revision}; the change was made on {revision}.",
            why=f"{row.updated_by} edited it meanwhile. Nothing of the change was applied.",
            fix="Read the report again and send the change with its revision.",
        )
    names: list[str] = []
    for change in changes:
        document = report_of(session, incident, at=at)
        _check_in_hand(session, document, change)
        fields = document["fields"]
        names.append(FIELDS[field_of(change, fields)])
        row.edits = changed(row.edits, change, fields, by=actor.name, at=at)
        session.add(row)
        session.flush()
        if isinstance(change, ChooseClass):
            choice = change.problem_class
            change_incident(session, incident, {"problem_class": choice}, actor=actor, at=at)
    _close(session, incident, row, names, actor=actor, at=at)
    return row.revision


def bundles_of(session: Session, incident: Incident) -> list[Source]:
    """The newest finished bundles of an incident, newest first."""
    query = (
        select(BundleRow)
        .where(BundleRow.incident_id == incident.id, col(BundleRow.finished_at).is_not(None))
        .order_by(col(BundleRow.collected_at).desc(), col(BundleRow.id).desc())
        .limit(MOST_BUNDLES)
    )
    names = {target.id: target.name for target in targets_of(session, _number(incident))}
    return [
        _source(row, names.get(row.target_id) or row.base_url)
        for row in session.exec(query)
        if row.summary is not None
    ]


def _check_in_hand(session: Session, document: Document, change: Change) -> None:
    """Raise Rejected where *change* rests on something that this incident does not have."""
    number = document["incident"]["number"]
    jobs = session.exec(select(Job.id).where(Job.incident_id == number))
    in_hand = {one["artifact"] for one in document["inputs"]} | {f"job {one}" for one in jobs}
    for missing in sorted(artifacts_of(change) - in_hand):
        raise Rejected(
            f"Incident {number} has no {missing}.", fix="Name evidence of this incident."
        )


def _close(
    session: Session,
    incident: Incident,
    row: Report,
    names: Sequence[str],
    *,
    actor: Actor,
    at: datetime,
) -> None:
    row.revision += 1
    row.updated_at, row.updated_by = at, actor.name
    event = ReportEdited(row.revision, tuple(dict.fromkeys(names)))
    timeline.record(session, event, incident_id=row.incident_id, actor=actor, at=at)
    subject = f"incident:{incident.id}"
    audit.note(session, actor, "report.edit", subject, at=at, fields=list(event.fields))


def _row(session: Session, incident: Incident) -> Report | None:
    return session.get(Report, incident.id)


def _number(incident: Incident) -> int:
    assert incident.id is not None
    return incident.id


def _subject(session: Session, incident: Incident, edits: dict[str, Any]) -> Subject:
    by = incident.problem_class_by if incident.problem_class_by != RULES else None
    choices = edits.get("classes") or [{}]
    of_report = choices[-1].get("problem_class") == incident.problem_class
    return Subject(
        number=_number(incident),
        title=incident.title,
        severity=incident.severity,
        state=incident.state,
        opened_at=incident.opened_at,
        started_at=incident.started_at,
        resolved_at=incident.resolved_at,
        targets=tuple(target.name for target in targets_of(session, _number(incident))),
        problem_class=incident.problem_class if by else None,
        problem_class_by=by,
        problem_class_why=choices[-1].get("reason") if by and of_report else None,
    )


def _source(row: BundleRow, target: str) -> Source:
    assert row.id is not None
    has_archive = row.artifact_id is not None
    return Source(
        bundle_id=row.id,
        target=target,
        path=f"/api/v1/artifacts/{row.artifact_id}/content"
        if has_archive
        else f"/bundles/{row.id}",
        collected_at=row.collected_at,
        summary=row.summary or {},
    )


def _inputs(session: Session, incident: Incident) -> list[Input]:
    return [
        Input(one.id, one.kind, one.name, one.taken_at, one.kind != evidence.NOT_RECOGNISED)
        for one in evidence.artifacts_of(session, _number(incident))
        if one.kind != BUNDLE and one.id is not None
    ]
