"""Opening and changing incidents, and what the list shows of them, on both databases."""

from datetime import timedelta

import pytest
from sqlmodel import select

from app.domain.finder import read_filter
from app.domain.playbook import NoteAdded
from app.domain.urgency import Rank
from app.errors import Conflict, NotFound, Rejected
from app.store import timeline
from app.store.database import reading, writing
from app.store.incident_list import Listing, count_tabs, known_targets, list_incidents
from app.store.incidents import Changes, change_incident, count_failing, get_incident
from app.store.stores import Stores
from app.store.tables import AuditEvent, Incident
from tests import make, situations


@pytest.fixture
def stores(any_stores: Stores) -> Stores:
    """On SQLite and on PostgreSQL."""
    return any_stores


def change(stores: Stores, incident: Incident, **changes: object) -> Incident:
    assert incident.id is not None
    with writing(stores.engine) as session:
        row = get_incident(session, incident.id)
        wanted = Changes(**changes)  # type: ignore[typeddict-item]
        change_incident(session, row, wanted, actor=make.MIRA, at=make.NOON)
        return row


def titles(stores: Stores, tab: str = "open", text: str = "", me: str = "mira") -> list[str]:
    """The titles of a whole list, read two at a time."""
    found, after = [], None
    listing = Listing(tab, me, read_filter(text))
    with reading(stores.engine) as session:
        while True:
            rows, after = list_incidents(session, listing, limit=2, after=after)
            found += [row.title for row in rows]
            if after is None:
                return found


def story(stores: Stores, incident: Incident) -> list[str]:
    assert incident.id is not None
    with reading(stores.engine) as session:
        return [one.says for one in timeline.timeline(session, incident.id)]


def test_a_new_incident_is_unknown_until_something_was_asked(stores: Stores) -> None:
    incident = make.incident(stores, "Users wait", make.target(stores))

    assert (incident.rank, incident.verdict) == (Rank.UNKNOWN, None)
    assert incident.targets_told == "decode-a"
    assert story(stores, incident) == ["Opened: Users wait"]


def test_an_incident_on_a_target_that_is_not_there_is_refused(stores: Stores) -> None:
    with pytest.raises(Rejected, match="no target 7"):
        make.incident(stores, "Users wait", target_ids=(7,))


@pytest.mark.parametrize(
    ("captures", "rank", "verdict"),
    [
        pytest.param(situations.stuck, Rank.FAILING, "wedged", id="wedged fails"),
        pytest.param(situations.gone, Rank.FAILING, "gone", id="gone fails"),
        pytest.param(situations.quiet, Rank.UNKNOWN, "unknown", id="silence is unknown"),
        pytest.param(situations.slow, Rank.SLOW, "healthy", id="late first tokens are slow"),
        pytest.param(situations.healthy, Rank.QUIET, "healthy", id="healthy is quiet"),
    ],
)
def test_a_bundle_ranks_its_incident(
    stores: Stores, captures: situations.Maker, rank: Rank, verdict: str
) -> None:
    target = make.target(stores)
    incident = make.incident(stores, "Users wait", target)

    make.bundle(stores, incident, target, captures())

    assert incident.id is not None
    with reading(stores.engine) as session:
        row = get_incident(session, incident.id)
        assert (row.rank, row.verdict) == (rank, verdict)
        assert row.headline is not None
        assert count_failing(session) == (rank is Rank.FAILING)


def test_a_healthy_target_does_not_hide_a_wedged_one(stores: Stores) -> None:
    bad, good = make.target(stores, "bad"), make.target(stores, "good")
    incident = make.incident(stores, "Users wait", bad, good)

    make.bundle(stores, incident, bad, situations.stuck(), at=make.NOON)
    make.bundle(stores, incident, good, situations.healthy(), at=make.NOON + timedelta(minutes=1))

    assert incident.id is not None
    with reading(stores.engine) as session:
        assert get_incident(session, incident.id).verdict == "wedged"
        assert [one.failing for one in known_targets(session)] == [True, True]


def test_a_target_that_recovered_lets_its_incident_rest(stores: Stores) -> None:
    target = make.target(stores)
    incident = make.incident(stores, "Users wait", target)

    make.bundle(stores, incident, target, situations.stuck(), at=make.NOON)
    make.bundle(stores, incident, target, situations.healthy(), at=make.NOON + timedelta(hours=1))

    assert incident.id is not None
    with reading(stores.engine) as session:
        assert get_incident(session, incident.id).rank == Rank.QUIET


def test_a_problem_class_that_a_person_chose_stays(stores: Stores) -> None:
    target = make.target(stores)
    incident = make.incident(stores, "Users wait", target)
    change(stores, incident, problem_class="crash")

    make.bundle(stores, incident, target, situations.stuck())

    assert incident.id is not None
    with reading(stores.engine) as session:
        row = get_incident(session, incident.id)
        assert (row.problem_class, row.problem_class_by) == ("crash", "mira")


def test_late_evidence_does_not_bring_a_resolved_incident_back(stores: Stores) -> None:
    target = make.target(stores)
    incident = make.incident(stores, "Users wait", target)
    change(stores, incident, state="resolved")

    make.bundle(stores, incident, target, situations.stuck())

    with reading(stores.engine) as session:
        assert count_failing(session) == 0


def test_states_go_forward_and_each_step_is_told_once(stores: Stores) -> None:
    incident = make.incident(stores)

    for state in ("acknowledged", "acknowledged", "resolved"):
        change(stores, incident, state=state)

    assert story(stores, incident)[:-1] == ["Resolved.", "Acknowledged."]
    with pytest.raises(Conflict, match="does not go back to open"):
        change(stores, incident, state="open")


def test_every_change_is_in_the_audit_log_with_who_made_it(stores: Stores) -> None:
    incident = make.incident(stores)

    change(stores, incident, severity="sev1", assignee="jonas")

    with reading(stores.engine) as session:
        lines = session.exec(select(AuditEvent).where(AuditEvent.action == "incident.change")).all()
    assert [line.actor for line in lines] == ["user:mira"]
    assert lines[0].detail["changes"]["severity"] == [None, "sev1"]
    assert story(stores, incident)[0] == "Severity sev1. Assignee jonas."


@pytest.mark.parametrize("number", [0, -1, 7, 2**63, 10**30])
def test_a_number_without_an_incident_is_not_found(stores: Stores, number: int) -> None:
    with reading(stores.engine) as session, pytest.raises(NotFound):
        get_incident(session, number)


def test_failing_comes_first_then_unacknowledged_then_young(stores: Stores) -> None:
    bad = make.target(stores, "bad")
    make.incident(stores, "old")
    acknowledged = make.incident(stores, "acknowledged")
    failing = make.incident(stores, "failing", bad)
    make.incident(stores, "young")
    change(stores, acknowledged, state="acknowledged")
    make.bundle(stores, failing, bad, situations.gone())

    assert titles(stores) == ["failing", "young", "old", "acknowledged"]
    assert titles(stores, "unacknowledged") == ["failing", "young", "old"]
    assert titles(stores, "all") == ["young", "failing", "acknowledged", "old"]


def test_the_tabs_are_counted_in_one_go(stores: Stores) -> None:
    for number in range(5):
        make.incident(stores, f"incident {number}", assignee="mira" if number < 2 else None)
    change(stores, make.incident(stores, "over", assignee="mira"), state="resolved")

    with reading(stores.engine) as session:
        counts = count_tabs(session, "mira")

    assert counts.tabs == {"open": 5, "unacknowledged": 5, "mine": 2, "resolved": 1, "all": 6}
    assert titles(stores, "mine") == ["incident 1", "incident 0"]
    assert titles(stores, "resolved") == ["over"]


@pytest.mark.parametrize(
    ("text", "found"),
    [
        pytest.param("class:hang", ["B"], id="class by its beginning"),
        pytest.param("class:?", ["C", "A"], id="class not set"),
        pytest.param("target:code", ["A"], id="part of a target's name"),
        pytest.param("sev:1", ["A"], id="severity by its digit"),
        pytest.param("sev:?", ["C"], id="severity not set"),
        pytest.param("state:acknowledged", ["C"], id="state"),
        pytest.param("b", ["B"], id="a word of the title"),
        pytest.param("#2", ["B"], id="a number"),
        pytest.param("100%", [], id="a percent sign is a percent sign"),
        pytest.param("nightly", ["C"], id="a tag"),
        pytest.param("class:hang sev:1", [], id="all of it must hold"),
        pytest.param("host:gpu-14", [], id="an unknown prefix is a word"),
    ],
)
def test_the_filter_finds(stores: Stores, text: str, found: list[str]) -> None:
    make.incident(stores, "A", make.target(stores, "decode-a"), severity="sev1")
    b = make.incident(stores, "B", severity="sev2")
    change(stores, b, problem_class="hang/timeout")
    c = make.incident(stores, "C", tags=("nightly",))
    change(stores, c, state="acknowledged")

    assert sorted(titles(stores, text=text)) == sorted(found)


def test_a_note_of_earlier_stands_in_its_place_and_is_still_new(stores: Stores) -> None:
    incident = make.incident(stores)
    assert incident.id is not None
    with writing(stores.engine) as session:
        known = timeline.newest_id(session, incident.id)
        timeline.record(
            session,
            NoteAdded("It began here."),
            incident_id=incident.id,
            actor=make.MIRA,
            at=make.NOON,
            occurred_at=make.NOON - timedelta(hours=1),
        )

    with reading(stores.engine) as session:
        newer = timeline.timeline(session, incident.id, after=known)
        all_of_it = timeline.timeline(session, incident.id)
        older = timeline.timeline(session, incident.id, before=all_of_it[0].id)
    assert [one.says for one in newer] == ["It began here."]
    assert [one.says for one in all_of_it] == ["Opened: TTFT is up", "It began here."]
    assert [one.says for one in older] == ["It began here."]
