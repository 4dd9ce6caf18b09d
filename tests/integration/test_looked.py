"""What was found on hosts beside the bundles of an incident: what holds, and for how long."""

from datetime import timedelta
from typing import Any

import pytest
from fastapi.testclient import TestClient

from app.domain.claims import Claim, Evidence, Level, ProblemClass, Status
from app.domain.findings import Conclusion
from app.store.database import reading, writing
from app.store.incidents import Changes, change_incident, get_incident, take_in
from app.store.reports import report_of
from app.store.stores import Stores
from app.store.tables import Diagnostic, Incident, Target
from tests import make, situations
from tests.integration import make as queued
from tests.make import NOON

STUCK = Conclusion(
    (
        Claim(
            "rank-divergence",
            "7 of 8 wait in all_reduce; TP3 is not there. Nothing moved: stuck.",
            Status.SUPPORTED,
            (Evidence("artifact 1", "TP3: evict (radix_cache.py:498)", "Python code"),),
            Level.BAD,
        ),
    ),
    problem_class=ProblemClass.HANG,
    wedged=True,
    ranks=8,
)
MOVES = Conclusion(
    (Claim("no-rank-apart", "8 of 8 ranks move on together.", Status.ESTABLISHED),), ranks=8
)


@pytest.fixture
def target(stores: Stores) -> Target:
    return make.target(stores)


@pytest.fixture
def incident(stores: Stores, target: Target) -> Incident:
    return make.incident(stores, "It hangs", target)


def found(
    stores: Stores,
    incident: Incident,
    target: Target | None,
    conclusion: Conclusion,
    minutes: float = 0,
    kind: str = "stacks",
) -> None:
    """A diagnostic of *incident* that came to *conclusion* so many minutes after noon."""
    at = NOON + timedelta(minutes=minutes)
    assert incident.id is not None
    job_id = queued.job(stores, incident_id=incident.id)
    with writing(stores.engine) as session:
        row = Diagnostic(
            incident_id=incident.id,
            target_id=target.id if target else None,
            job_id=job_id,
            kind=kind,
            state="done",
            says="Stacks of 8 processes on gpu-14.",
            asked_by="mira",
            asked_at=at,
            finished_at=at,
            hosts=[{"host_id": 1, "name": "gpu-14", "process_ids": [], "ranks": {}}],
            answer={"found": conclusion.as_json() | {"at": at.isoformat()}},
        )
        session.add(row)
        session.flush()
        take_in(session, incident.id, at=at)


def now(stores: Stores, incident: Incident) -> Incident:
    with reading(stores.engine) as session:
        return get_incident(session, incident.id or 0)


def report(stores: Stores, incident: Incident) -> dict[str, Any]:
    with reading(stores.engine) as session:
        return report_of(session, get_incident(session, incident.id or 0), at=NOON)


def test_stacks_that_stand_still_fail_an_incident_that_has_no_bundle(
    stores: Stores, incident: Incident, target: Target
) -> None:
    found(stores, incident, target, STUCK)
    row = now(stores, incident)
    assert (row.verdict, row.rank, row.problem_class) == ("wedged", 0, "hang/timeout")


def test_they_weigh_more_than_an_earlier_bundle_whose_own_verdict_stays(
    stores: Stores, incident: Incident, target: Target
) -> None:
    bundle = make.bundle(stores, incident, target, situations.healthy())
    found(stores, incident, target, STUCK, minutes=1)
    assert now(stores, incident).verdict == "wedged"
    assert bundle.verdict == "healthy"
    assert report(stores, incident)["facts"]["health"]["verdict"] == "healthy"


def test_a_later_bundle_that_serves_ends_them_and_the_report_keeps_them(
    stores: Stores, incident: Incident, target: Target
) -> None:
    found(stores, incident, target, STUCK)
    make.bundle(stores, incident, target, situations.healthy(), at=NOON + timedelta(minutes=5))
    assert now(stores, incident).verdict == "healthy"
    assert report(stores, incident)["strongest_signal"]["id"] == "rank-divergence"


def test_a_later_bundle_that_hangs_too_ends_nothing(
    stores: Stores, incident: Incident, target: Target
) -> None:
    found(stores, incident, target, STUCK)
    make.bundle(stores, incident, target, situations.stuck(), at=NOON + timedelta(minutes=5))
    row = now(stores, incident)
    assert row.headline is not None
    assert (row.verdict, row.headline["id"]) == ("wedged", "rank-divergence")


def test_a_bundle_of_another_target_ends_nothing(stores: Stores, target: Target) -> None:
    other = make.target(stores, "rollout-3")
    incident = make.incident(stores, "Both hang", target, other)
    found(stores, incident, target, STUCK)
    make.bundle(stores, incident, other, situations.healthy(), at=NOON + timedelta(minutes=5))
    assert now(stores, incident).verdict == "wedged"


def test_a_later_look_at_as_many_ranks_replaces_an_earlier_one(
    stores: Stores, incident: Incident, target: Target
) -> None:
    found(stores, incident, target, STUCK)
    found(stores, incident, target, MOVES, minutes=1)
    row = now(stores, incident)
    assert row.headline is not None
    assert (row.verdict, row.headline["id"]) == ("unknown", "no-rank-apart")


def test_a_later_look_at_fewer_ranks_replaces_nothing(
    stores: Stores, incident: Incident, target: Target
) -> None:
    found(stores, incident, target, STUCK)
    found(stores, incident, target, Conclusion(MOVES.claims, ranks=1), minutes=1)
    assert now(stores, incident).verdict == "wedged"


def test_the_class_that_a_person_chose_stays(
    stores: Stores, incident: Incident, target: Target
) -> None:
    with writing(stores.engine) as session:
        row = get_incident(session, incident.id or 0)
        chosen: Changes = {"problem_class": "latency/throughput"}
        change_incident(session, row, chosen, actor=make.MIRA, at=NOON)
    found(stores, incident, target, STUCK)
    assert now(stores, incident).problem_class == "latency/throughput"


@pytest.mark.parametrize("with_bundle", [False, True], ids=["no bundle", "a bundle"])
def test_the_page_tells_the_rank_and_leads_to_its_file(
    stores: Stores,
    incident: Incident,
    target: Target,
    reader: TestClient,
    with_bundle: bool,
) -> None:
    if with_bundle:
        make.bundle(stores, incident, target, situations.stuck())
    found(stores, incident, target, STUCK, minutes=1)
    page = reader.get(f"/incidents/{incident.id}").text
    assert "<h1>7 of 8 wait in all_reduce; TP3 is not there</h1>" in page
    assert '<a class="chip" href="/artifacts/1">TP3: evict (radix_cache.py:498)</a>' in page
    assert "Nothing moves: that is what was found on its hosts." in page


def test_the_list_tells_it_as_the_strongest_signal(
    stores: Stores, incident: Incident, target: Target, reader: TestClient
) -> None:
    found(stores, incident, target, STUCK)
    assert "TP3 is not there" in reader.get("/").text


def test_the_page_of_the_report_tells_it_with_its_place(
    stores: Stores, incident: Incident, target: Target, reader: TestClient
) -> None:
    found(stores, incident, target, STUCK)
    page = reader.get(f"/reports/{incident.id}").text
    assert "TP3 is not there" in page
    assert "/artifacts/1" in page
