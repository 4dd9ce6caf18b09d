"""A coredump's fingerprint links incidents, both ways, and only for people who are signed in."""

from collections.abc import Iterator, Sequence
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest
from fastapi.testclient import TestClient
from sqlalchemy import Engine
from sqlmodel import col, select

from app.store import migrations, shares
from app.store.database import open_database, reading, writing
from app.store.incidents import change_incident, get_incident
from app.store.same_faults import MOST_INCIDENTS, same_faults
from app.store.stores import Stores
from app.store.tables import Diagnostic, DiagnosticItem, Incident, Job
from tests import make
from tests.compared import BUSY, FAULT, inspected
from tests.integration import make as queued
from tests.make import NOON

DUMP = inspected(FAULT)
PRINT = str(DUMP["fingerprint"])
OTHER_PRINT = "0123456789abcdef"


def dumped(
    stores: Stores, incident: Incident, *fingerprints: str | None, document: Any = DUMP
) -> int:
    """A diagnostic of *incident* with one coredump for each fingerprint."""
    assert incident.id is not None
    job_id = queued.job(stores, incident_id=incident.id)
    with writing(stores.engine) as session:
        row = Diagnostic(
            incident_id=incident.id,
            job_id=job_id,
            kind="coredump",
            state="done",
            asked_by="mira",
            asked_at=NOON,
            finished_at=NOON,
            hosts=[{"host_id": 1, "name": "gpu-14", "process_ids": [], "ranks": {}}],
        )
        session.add(row)
        session.flush()
        assert row.id is not None
        for number, fingerprint in enumerate(fingerprints):
            session.add(
                DiagnosticItem(
                    diagnostic_id=row.id,
                    host_name="gpu-14",
                    pid=700 + number,
                    rank=f"TP{number}",
                    state="complete",
                    kind="coredump",
                    detail={"inspected": {**document, "fingerprint": fingerprint}},
                    fingerprint=fingerprint,
                )
            )
        return row.id


@pytest.fixture
def earlier(stores: Stores) -> Incident:
    """Incident 1, which was resolved."""
    row = make.incident(stores, "topk faults on decode-a")
    dumped(stores, row, PRINT, PRINT)
    with writing(stores.engine) as session:
        one = get_incident(session, row.id or 0)
        change_incident(
            session,
            one,
            {"state": "resolved", "problem_class": "crash"},
            actor=make.MIRA,
            at=NOON + timedelta(hours=2),
        )
    return row


@pytest.fixture
def later(stores: Stores, earlier: Incident) -> Incident:
    """Incident 2 with the same fault, still open."""
    row = make.incident(stores, "It crashed again")
    dumped(stores, row, PRINT)
    return row


def numbers(stores: Stores, incident: Incident) -> list[tuple[str, list[int], int]]:
    with reading(stores.engine) as session:
        return [
            (one.fingerprint, [at.incident_id for at in one.incidents], one.more)
            for one in same_faults(session, incident.id or 0)
        ]


def test_each_of_two_incidents_leads_to_the_other(
    stores: Stores, earlier: Incident, later: Incident
) -> None:
    assert numbers(stores, later) == [(PRINT, [1], 0)]
    assert numbers(stores, earlier) == [(PRINT, [2], 0)]


@pytest.mark.parametrize(
    "fingerprints", [(), (None,), (OTHER_PRINT,)], ids=["no dump", "a hang", "another fault"]
)
def test_other_dumps_lead_nowhere(
    stores: Stores, later: Incident, fingerprints: Sequence[str | None]
) -> None:
    apart = make.incident(stores, "Something else")
    if fingerprints:
        dumped(stores, apart, *fingerprints)
    assert numbers(stores, apart) == []
    assert numbers(stores, later) == [(PRINT, [1], 0)]


def test_a_fault_that_comes_every_night_is_listed_in_part_and_counted_whole(
    stores: Stores, later: Incident
) -> None:
    for night in range(MOST_INCIDENTS + 2):
        dumped(stores, make.incident(stores, f"night {night}"), PRINT)
    [(_, listed, more)] = numbers(stores, later)
    assert listed == [9, 8, 7, 6, 5]
    assert more == 3


def test_the_incident_tells_what_became_of_the_earlier_one_and_does_not_call_it_the_cause(
    reader: TestClient, earlier: Incident, later: Incident
) -> None:
    page = reader.get(f"/incidents/{later.id}").text
    assert "The same fault is in incident 1" in page
    assert '<a href="/incidents/1">1: topk faults on decode-a</a>' in page
    assert "does not prove the same cause" in page
    assert "before this one" in page
    assert "resolved" in page
    assert "crash" in page
    back = reader.get(f"/incidents/{earlier.id}").text
    assert '<a href="/incidents/2">2: It crashed again</a>' in back
    assert "after this one" in back
    assert "open, not over" in back


def test_the_card_leads_to_the_incidents_that_have_its_fingerprint(
    stores: Stores, reader: TestClient, later: Incident
) -> None:
    number = dumped(stores, later, PRINT, OTHER_PRINT)
    page = reader.get(f"/diagnostics/{number}").text
    assert page.count("also in 1 other incident<") == 1
    assert '<a href="/incidents/1">1: topk faults on decode-a</a>' in page


def test_the_api_tells_it_of_a_diagnostic_and_of_the_report(
    stores: Stores, reader: TestClient, earlier: Incident, later: Incident
) -> None:
    number = dumped(stores, later, PRINT)
    diagnostic = reader.get(f"/api/v1/diagnostics/{number}").json()
    report = reader.get(f"/api/v1/incidents/{later.id}/report").json()
    assert [item["fingerprint"] for item in diagnostic["items"]] == [PRINT]
    assert diagnostic["same_faults"] == report["same_faults"]
    [fault] = report["same_faults"]
    [one] = fault["incidents"]
    assert fault["fingerprint"] == PRINT
    assert (one["number"], one["title"], one["problem_class"], one["earlier"]) == (
        1,
        "topk faults on decode-a",
        "crash",
        True,
    )
    assert one["ended_at"] == "2026-11-30T14:00:00Z"


@pytest.mark.parametrize("form", ["md", "txt", "json"])
def test_the_twins_of_the_report_tell_it(
    reader: TestClient, earlier: Incident, later: Incident, form: str
) -> None:
    told = reader.get(f"/incidents/{later.id}.{form}").text
    assert "topk faults on decode" in told
    assert PRINT in told


def test_the_page_of_the_report_tells_it(
    reader: TestClient, earlier: Incident, later: Incident
) -> None:
    assert "1: topk faults on decode-a" in reader.get(f"/reports/{later.id}").text


def test_nothing_of_other_incidents_leaves_the_house(
    stores: Stores, earlier: Incident, later: Incident
) -> None:
    with reading(stores.engine) as session:
        copy = shares.copy_of(session, get_incident(session, later.id or 0), stores.vault, at=NOON)
    assert "same_faults" not in copy
    assert "topk" not in str(copy)
    assert PRINT not in str(copy)


@pytest.fixture(params=[pytest.param("sqlite", id="sqlite"), pytest.param("pg", id="postgres")])
def engine(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Engine]:
    sqlite = request.param == "sqlite"
    url = f"sqlite:///{tmp_path}/a.sqlite" if sqlite else request.getfixturevalue("postgres_url")
    made = open_database(url)
    migrations.upgrade(made)
    yield made
    made.dispose()


def test_dumps_that_were_read_before_fingerprints_were_kept_are_found(engine: Engine) -> None:
    documents: list[dict[str, Any]] = [
        {"inspected": DUMP},
        {"inspected": inspected(BUSY)},
        {"over": False},
    ]
    with writing(engine) as session:
        session.add(
            Incident(id=1, title="old", opened_by="mira", tags=[], **_at("opened", "changed"))
        )
        session.flush()
        job = Job(
            id=1, key="k", kind="diagnose", partition="p", arguments={}, requested_by="mira",
            **_at("created"),
        )  # fmt: skip
        session.add(job)
        session.flush()
        session.add(
            Diagnostic(
                id=1,
                incident_id=1,
                job_id=1,
                kind="coredump",
                asked_by="mira",
                hosts=[],
                **_at("asked"),
            )
        )
        session.flush()
        for detail in documents:
            session.add(
                DiagnosticItem(
                    diagnostic_id=1, host_name="h", state="complete", kind="coredump", detail=detail
                )
            )
    migrations.downgrade(engine, "0002")
    migrations.upgrade(engine)
    with reading(engine) as session:
        found = session.exec(select(DiagnosticItem.fingerprint).order_by(col(DiagnosticItem.id)))
        assert list(found) == [PRINT, None, None]


def _at(*moments: str) -> dict[str, Any]:
    return {f"{one}_at": NOON for one in moments}
