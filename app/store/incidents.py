"""Opening, changing and reading incidents; the list's figures are copied onto their rows."""

from collections.abc import Sequence
from dataclasses import asdict, dataclass
from datetime import datetime
from typing import TypedDict

from sqlmodel import Session, col, func, select

from app.domain.claims import ProblemClass
from app.domain.findings import Finding
from app.domain.playbook import Event, FactsChanged, IncidentOpened, StateChanged
from app.domain.urgency import Judgement, Rank, Summary, judge
from app.errors import Conflict, NotFound, Rejected
from app.store import audit, looked, timeline
from app.store.audit import Actor
from app.store.tables import BundleRow, Incident, IncidentTarget, Job, Target

STATES = ("open", "acknowledged", "mitigated", "resolved")
SEVERITIES = ("sev1", "sev2", "sev3", "sev4")
TITLE_MAX_LENGTH = 300
LARGEST_ID = 2**63  # beyond it a database cannot look
RULES = "rules"  # stands for the person where nobody chose the problem class
# Built once: every page asks it, and building it costs as much as asking.
_FAILING = select(func.count()).select_from(Incident).where(Incident.rank == Rank.FAILING)


@dataclass(frozen=True, slots=True)
class OpenIncident:
    """What is known when an incident is opened. *collect* asks for a bundle of each target."""

    title: str
    severity: str | None = None
    target_ids: tuple[int, ...] = ()
    started_at: datetime | None = None
    tags: tuple[str, ...] = ()
    assignee: str | None = None
    collect: bool = True

    @property
    def event(self) -> IncidentOpened:
        return IncidentOpened(self.title, self.target_ids, self.collect)


class Changes(TypedDict, total=False):
    """What a person may set; a field that is absent stays as it is."""

    state: str
    title: str
    severity: str | None
    assignee: str | None
    tags: list[str]
    problem_class: str | None


def count_failing(session: Session) -> int:
    """How many open incidents are about something that does not serve."""
    return session.exec(_FAILING).one()


def get_incident(session: Session, incident_id: int) -> Incident:
    """The incident of that number; raises NotFound."""
    incident = session.get(Incident, incident_id) if incident_id < LARGEST_ID else None
    if incident is None:
        raise NotFound(f"There is no incident {incident_id}.")
    return incident


def targets_of(session: Session, incident_id: int) -> Sequence[Target]:
    """The targets that an incident is about, deleted ones included, by name."""
    query = (
        select(Target)
        .join(IncidentTarget, col(IncidentTarget.target_id) == col(Target.id))
        .where(IncidentTarget.incident_id == incident_id)
        .order_by(col(Target.name))
    )
    return session.exec(query).all()


def recent_bundles(session: Session, incident_id: int) -> Sequence[BundleRow]:
    """The newest two whole bundles of each address that the incident asked, newest first."""
    age = (
        func.row_number()
        .over(
            partition_by=col(BundleRow.base_url),
            order_by=(col(BundleRow.collected_at).desc(), col(BundleRow.id).desc()),
        )
        .label("age")
    )
    whole = (BundleRow.incident_id == incident_id, BundleRow.state == "complete")
    aged = select(BundleRow.id, age).where(*whole).subquery()
    query = select(BundleRow).join(aged, aged.c.id == col(BundleRow.id)).where(aged.c.age <= 2)
    newest = (col(BundleRow.collected_at).desc(), col(BundleRow.id).desc())
    return session.exec(query.order_by(*newest)).all()


def incidents_of_target(session: Session, target_id: int, *, limit: int) -> Sequence[Incident]:
    """The incidents that a target is or was part of, newest first."""
    query = (
        select(Incident)
        .join(IncidentTarget, col(IncidentTarget.incident_id) == col(Incident.id))
        .where(IncidentTarget.target_id == target_id)
        .order_by(col(Incident.id).desc())
        .limit(limit)
    )
    return session.exec(query).all()


def jobs_at_work(session: Session, incident_id: int) -> Sequence[Job]:
    """The jobs of an incident that wait or run, newest first; recordings wait by design."""
    query = select(Job).where(
        Job.incident_id == incident_id,
        col(Job.state).in_(("queued", "running")),
        Job.kind != "record",
    )
    return session.exec(query.order_by(col(Job.id).desc())).all()


def target_ids_of(session: Session, incident_ids: Sequence[int]) -> dict[int, list[int]]:
    """The targets of several incidents at once; an incident without any is absent."""
    query = select(IncidentTarget).where(col(IncidentTarget.incident_id).in_(incident_ids))
    found: dict[int, list[int]] = {}
    for link in session.exec(query.order_by(col(IncidentTarget.target_id))):
        found.setdefault(link.incident_id, []).append(link.target_id)
    return found


def open_incident(
    session: Session, wanted: OpenIncident, *, actor: Actor, at: datetime
) -> Incident:
    """The new incident with its first event. What it calls for is queued by the caller."""
    _check(title=wanted.title, severity=wanted.severity)
    targets = _known_targets(session, wanted.target_ids)
    incident = Incident(
        title=wanted.title.strip(),
        severity=wanted.severity,
        assignee=wanted.assignee or None,
        tags=list(wanted.tags),
        opened_by=actor.name,
        opened_at=at,
        started_at=wanted.started_at,
        changed_at=at,
        rank=Rank.UNKNOWN,
        targets_told=", ".join(target.name for target in targets),
    )
    session.add(incident)
    session.flush()
    assert incident.id is not None
    session.add_all(
        IncidentTarget(incident_id=incident.id, target_id=target.id)
        for target in targets
        if target.id is not None
    )
    _tell(session, incident, wanted.event, "incident.open", actor=actor, at=at)
    return incident


def change_incident(
    session: Session, incident: Incident, changes: Changes, *, actor: Actor, at: datetime
) -> None:
    """Set what *changes* names, each real change with its event; raises Conflict, Rejected."""
    _check(title=changes.get("title"), severity=changes.get("severity"))
    _check_class(changes.get("problem_class"))
    _change_facts(session, incident, changes, actor=actor, at=at)
    if "state" in changes:
        _change_state(session, incident, changes["state"], actor=actor, at=at)


def take_in_bundle(session: Session, incident_id: int, bundle: BundleRow) -> None:
    """Copy what the list shows from the newest evidence of the incident."""
    take_in(session, incident_id, at=bundle.finished_at or bundle.collected_at)


def take_in(session: Session, incident_id: int, *, at: datetime) -> None:
    """Judge the incident anew by its bundles and by what was found on its hosts."""
    session.flush()  # a bundle counts as soon as its row is complete
    incident = get_incident(session, incident_id)
    judged = judged_now(session, incident_id, recent_bundles(session, incident_id))
    incident.verdict, incident.headline = judged.verdict, judged.strongest
    incident.changed_at = max(incident.changed_at, at)
    if incident.state != "resolved":
        incident.rank = judged.rank
    if incident.problem_class_by in (None, RULES):
        incident.problem_class = judged.problem_class
        incident.problem_class_by = RULES if judged.problem_class else None


def judged_now(session: Session, incident_id: int, bundles: Sequence[BundleRow]) -> Judgement:
    """What *bundles* of ``recent_bundles`` and the hosts say of the incident now."""
    return judgement(bundles, looked.findings_now(session, incident_id, bundles))


def judgement(bundles: Sequence[BundleRow], findings: Sequence[Finding] = ()) -> Judgement:
    """What the *bundles* of ``recent_bundles`` and *findings* say of the incident."""
    newest: dict[str, Summary] = {}
    before: list[Summary] = []
    for bundle in bundles:
        if bundle.summary is not None:
            first = newest.setdefault(bundle.base_url, bundle.summary)
            before += [bundle.summary] if first is not bundle.summary else []
    return judge(list(newest.values()), before, findings)


def _known_targets(session: Session, target_ids: Sequence[int]) -> Sequence[Target]:
    query = select(Target).where(col(Target.id).in_(target_ids), col(Target.deleted_at).is_(None))
    targets = session.exec(query.order_by(col(Target.name))).all()
    missing = set(target_ids) - {target.id for target in targets}
    if missing:
        raise Rejected(
            f"There is no target {', '.join(map(str, sorted(missing)))}.",
            fix="Choose registered targets, or register it first.",
        )
    return targets


def _check(*, title: str | None, severity: str | None) -> None:
    if title is not None and not 0 < len(title.strip()) <= TITLE_MAX_LENGTH:
        raise Rejected(f"An incident needs a title of 1 to {TITLE_MAX_LENGTH} characters.")
    if severity is not None and severity not in SEVERITIES:
        raise Rejected(f"There is no severity {severity}.", fix="Use sev1, sev2, sev3 or sev4.")


def _check_class(problem_class: str | None) -> None:
    if problem_class is not None and problem_class not in set(ProblemClass):
        raise Rejected(
            f"There is no problem class {problem_class}.",
            fix=f"Use one of: {', '.join(ProblemClass)}.",
        )


def _change_facts(
    session: Session, incident: Incident, changes: Changes, *, actor: Actor, at: datetime
) -> None:
    told: dict[str, tuple[str | None, str | None]] = {}
    for name, value in changes.items():
        before = getattr(incident, name)
        if name != "state" and value != before:
            setattr(incident, name, value)
            told[name] = (_words(before), _words(value))
    if "problem_class" in changes:
        incident.problem_class_by = actor.name
    if told:
        _tell(session, incident, FactsChanged(told), "incident.change", actor=actor, at=at)


def _words(value: object) -> str | None:
    if isinstance(value, list):
        return ", ".join(map(str, value)) or None
    return str(value) if value else None


def _change_state(
    session: Session, incident: Incident, state: str, *, actor: Actor, at: datetime
) -> None:
    if state not in STATES:
        raise Rejected(f"There is no state {state}.", fix=f"Use one of: {', '.join(STATES)}.")
    before = incident.state
    if state == before:
        return
    if STATES.index(state) < STATES.index(before):
        raise Conflict(
            f"Incident {incident.id} is {before}; it does not go back to {state}.",
            fix="If it came back, open a new incident." if before == "resolved" else None,
        )
    incident.state = state
    setattr(incident, f"{state}_at", at)
    if state == "resolved":
        incident.rank = Rank.RESOLVED
    _tell(session, incident, StateChanged(before, state), "incident.state", actor=actor, at=at)


def _tell(
    session: Session, incident: Incident, event: Event, action: str, *, actor: Actor, at: datetime
) -> None:
    assert incident.id is not None
    timeline.record(session, event, incident_id=incident.id, actor=actor, at=at)
    detail = {} if isinstance(event, IncidentOpened) else asdict(event)
    audit.note(session, actor, action, f"incident:{incident.id}", at=at, **detail)
