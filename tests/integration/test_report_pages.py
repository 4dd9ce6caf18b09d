"""The report's page and its twins: filled from evidence, edited by operators, nothing lost."""

import re
from datetime import timedelta

import pytest
from fastapi.testclient import TestClient
from sqlmodel import select

from app.domain.playbook import NoteAdded
from app.store import timeline
from app.store.database import writing
from app.store.stores import Stores
from app.store.tables import AuditEvent, BundleRow, IncidentTarget
from tests.integration import make

SUMMARY = {
    "collected_at": "2026-11-30T12:00:00Z",
    "version": "0.5.23",
    "model": {"model_path": "/srv/models/tiny-random", "served_model_name": "tiny-random"},
    "health": {"verdict": "wedged", "says": "Nothing moved for 72 s.", "probes": []},
    "load": {"per_rank": [], "totals": {"running": 16, "waiting": 14}},
    "signals": [
        {
            "id": "snapshot-stale",
            "says": "The load snapshot of DP0 is 72 s old <script>.",
            "status": "established",
            "level": "bad",
            "evidence": [{"artifact": "loads_all_1.json", "at": "/loads/0", "value": 72}],
        }
    ],
    "quiet": [{"id": "kv-pressure", "says": "KV cache 26% used.", "evidence": []}],
    "not_checked": [{"id": "rank-skew", "why": "One rank."}],
    "endpoints": [],
}


@pytest.fixture
def number(stores: Stores) -> int:
    """An incident of one target with one bundle."""
    incident_id = make.incident(stores, "decode-a hangs")
    target = make.target(stores, "http://gpu-14.prod.example:30000")
    assert target.id is not None
    with writing(stores.engine) as session:
        session.add(IncidentTarget(incident_id=incident_id, target_id=target.id))
        session.add(
            BundleRow(
                incident_id=incident_id,
                target_id=target.id,
                base_url=target.base_url,
                state="complete",
                collected_at=make.NOON,
                finished_at=make.NOON + timedelta(seconds=40),
                summary=SUMMARY,
            )
        )
        note = NoteAdded("see ```x```\n[click](http://evil.example)")
        timeline.record(session, note, incident_id=incident_id, actor=make.MIRA, at=make.NOON)
    return incident_id


def written(number: int, **fields: str) -> dict[str, str]:
    return {"revision": "0", "says": "The overlap schedule.", "status": "hypothesis", **fields}


def test_the_fields_fill_from_the_bundle_and_chips_jump_to_the_place(
    reader: TestClient, number: int
) -> None:
    page = reader.get(f"/reports/{number}")

    assert page.status_code == 200
    assert "Hang/timeout." in page.text
    assert "The load snapshot of DP0 is 72 s old &lt;script&gt;." in page.text
    assert 'href="/bundles/1/captures/loads_all_1?at=%2Floads%2F0"' in page.text
    assert "KV cache pressure: KV cache 26% used." in page.text
    assert "Not checked. One rank." in page.text


def test_without_evidence_the_class_is_not_decided_and_nothing_is_ruled_out(
    reader: TestClient, stores: Stores
) -> None:
    page = reader.get(f"/reports/{make.incident(stores)}")

    assert "Not decided." in page.text
    assert "No evidence yet." in page.text
    assert "report__field--open" in page.text


def test_an_incident_that_does_not_exist_has_no_report(reader: TestClient) -> None:
    assert reader.get("/reports/999").status_code == 404


def test_a_reader_sees_no_form_and_cannot_write(reader: TestClient, number: int) -> None:
    assert "<textarea" not in reader.get(f"/reports/{number}?edit=best_guess").text

    answer = reader.post(f"/reports/{number}/fields/best_guess", data=written(number))
    assert answer.status_code == 403


def test_a_claim_by_hand_says_so_and_stands_in_timeline_and_audit_log(
    operator: TestClient, stores: Stores, number: int
) -> None:
    answer = operator.post(f"/reports/{number}/fields/best_guess", data=written(number))

    assert answer.status_code == 303
    page = operator.get(answer.headers["location"]).text
    assert re.search(r"The overlap schedule\..*?written by operator", page, re.DOTALL)
    assert "revision 1" in page
    with writing(stores.engine) as session:
        [event] = [one for one in timeline.timeline(session, number) if one.kind == "ReportEdited"]
        assert event.says == "Edited the report: Best guess."
        edits = session.exec(select(AuditEvent).where(AuditEvent.action == "report.edit")).all()
        assert [edit.actor for edit in edits] == ["user:operator"]


def test_a_claim_that_says_more_than_its_evidence_is_refused_with_the_reason(
    operator: TestClient, number: int
) -> None:
    form = written(number, status="established")

    answer = operator.post(f"/reports/{number}/fields/best_guess", data=form)

    assert answer.status_code == 422
    assert "not established without evidence" in answer.text


def test_two_people_who_write_at_once_lose_nothing(operator: TestClient, number: int) -> None:
    url = f"/reports/{number}/fields/best_guess"
    operator.post(url, data=written(number, says="Mine came first."))

    clash = operator.post(url, data=written(number, says="Typed meanwhile."))

    assert clash.status_code == 409
    assert "Mine came first." in clash.text
    assert "Typed meanwhile.</textarea>" in clash.text
    again = operator.post(url, data=written(number, says="Typed meanwhile.", revision="1"))
    assert again.status_code == 303
    page = operator.get(f"/reports/{number}").text
    assert "Mine came first." in page
    assert "Typed meanwhile." in page


def test_a_clash_replaces_the_form_where_htmx_asked(operator: TestClient, number: int) -> None:
    url = f"/reports/{number}/fields/best_guess"
    operator.post(url, data=written(number))

    clash = operator.post(url, data=written(number), headers={"HX-Request": "true"})

    assert (clash.status_code, clash.headers["HX-Retarget"]) == (409, "#edit")
    assert clash.text.lstrip().startswith("<section")


def test_a_struck_claim_stays_in_sight_with_who_and_why(operator: TestClient, number: int) -> None:
    page = operator.get(f"/reports/{number}?edit=strongest_signal").text
    found = re.search(r'name="key" value="(snapshot-stale-[0-9a-f]{8})"', page)
    assert found

    form = {"key": found[1], "reason": "That clock is wrong."}
    assert operator.post(f"/reports/{number}/strike", data=form).status_code == 303

    page = operator.get(f"/reports/{number}").text
    assert "<s>The load snapshot of DP0 is 72 s old &lt;script&gt;.</s>" in page
    assert re.search(r"struck by operator, .*?: That clock is wrong\.", page, re.DOTALL)


def test_a_chosen_class_is_set_on_the_incident_and_the_evidence_stays_beside_it(
    operator: TestClient, number: int
) -> None:
    form = {"revision": "0", "says": "It dumped core.", "problem_class": "crash"}

    answer = operator.post(f"/reports/{number}/fields/problem_class", data=form)

    assert answer.status_code == 303
    page = operator.get(f"/reports/{number}").text
    assert "Crash." in page
    assert "It dumped core." in page
    assert "What the evidence alone says." in page
    assert operator.get(f"/incidents/{number}.json").json()["problem_class"] == "crash"


def test_a_field_that_is_none_cannot_be_written(operator: TestClient, number: int) -> None:
    answer = operator.post(f"/reports/{number}/fields/root_cause", data=written(number))

    assert answer.status_code == 404


def test_the_twins_carry_the_report_and_the_timeline(reader: TestClient, number: int) -> None:
    markdown = reader.get(f"/incidents/{number}.md")
    text = reader.get(f"/incidents/{number}.txt")
    document = reader.get(f"/incidents/{number}.json").json()

    assert markdown.headers["content-type"].startswith("text/markdown")
    assert f"# Incident {number}: decode-a hangs" in markdown.text
    assert r"72 s old \<script\>." in markdown.text
    assert "  ````text\n  see ```x```\n  [click](http://evil.example)\n  ````" in markdown.text
    assert "STRONGEST SIGNAL\n  established" in text.text
    assert document["problem_class"] == "hang/timeout"
    assert document["inputs"][0]["artifact"] == "bundle 1"
    assert document["timeline"][0]["actor"] == "mira"


@pytest.mark.parametrize("ending", ["md", "json", "txt"])
def test_a_twin_of_nothing_is_not_found(reader: TestClient, ending: str) -> None:
    assert reader.get(f"/incidents/999.{ending}").status_code == 404
