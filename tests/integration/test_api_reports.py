"""Reports and shares over the API."""

import json
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest
from fastapi.testclient import TestClient

from app.store.database import writing
from app.store.stores import Stores
from app.store.tables import Artifact
from tests.integration import make


@pytest.fixture
def number(stores: Stores) -> int:
    return make.incident(stores, "decode-a hangs")


def patch(client: TestClient, number: int, **body: Any) -> Any:
    return client.patch(f"/api/v1/incidents/{number}/report", json=body)


def test_a_report_has_every_key_of_the_contract(reader: TestClient, number: int) -> None:
    report = reader.get(f"/api/v1/incidents/{number}/report").json()

    assert set(report) >= {
        "inputs",
        "why_bundle_and_dump_not_enough",
        "problem_class",
        "checked",
        "strongest_signal",
        "best_guess",
        "ruled_out",
        "next_steps",
        "production_risk",
        "claims",
        "facts",
        "unrecognised",
        "generated_at",
    }
    assert report["problem_class"] is None
    assert report["generated_at"].endswith("Z")


def test_claims_are_added_as_hypotheses_and_answered_with_the_report(
    operator: TestClient, stores: Stores, number: int
) -> None:
    with writing(stores.engine) as session:
        session.add(
            Artifact(
                incident_id=number,
                kind="not recognised yet",
                name="dmesg.txt",
                sha256="0" * 64,
                size_bytes=1,
                taken_by="mira",
                taken_at=make.NOON,
                taken_from="upload",
            )
        )

    answer = patch(
        operator,
        number,
        revision=0,
        best_guess="The overlap schedule.",
        ruled_out=[{"says": "GPU", "status": "established", "evidence": ["artifact 1 line 2"]}],
        production_risk={"says": "High."},
        problem_class="hang/timeout",
    )

    report = answer.json()
    assert answer.status_code == 200, report
    assert report["revision"] == 1
    assert report["best_guess"]["status"] == "hypothesis"
    assert report["best_guess"]["by"] == "operator"
    assert report["ruled_out"][0]["evidence"][0]["at"] == "line 2"
    assert "High." in report["production_risk"]
    assert report["problem_class"] == "hang/timeout"


def test_a_claim_rests_on_evidence_of_its_own_incident(operator: TestClient, number: int) -> None:
    claim = {"says": "It is.", "status": "established", "evidence": ["bundle 999/health"]}

    answer = patch(operator, number, best_guess=claim)

    assert answer.status_code == 422
    assert f"Incident {number} has no bundle 999." in answer.json()["detail"]


def test_a_change_on_an_old_revision_is_a_conflict_and_changes_nothing(
    operator: TestClient, number: int
) -> None:
    patch(operator, number, revision=0, best_guess="First.")

    answer = patch(operator, number, revision=0, best_guess="Second.")

    assert (answer.status_code, answer.json()["error"]) == (409, "conflict")
    report = operator.get(f"/api/v1/incidents/{number}/report").json()
    assert [one["says"] for one in report["fields"]["best_guess"]] == ["First."]


def test_all_of_a_change_is_applied_or_nothing(operator: TestClient, number: int) -> None:
    answer = patch(operator, number, best_guess="Fine.", ruled_out="No check ran.")

    assert answer.status_code == 422
    report = operator.get(f"/api/v1/incidents/{number}/report").json()
    assert (report["revision"], report["fields"]["best_guess"]) == (0, [])


def test_a_claim_is_struck_by_its_key(operator: TestClient, number: int) -> None:
    key = patch(operator, number, best_guess="Wrong.").json()["best_guess"]["key"]

    report = patch(operator, number, strike=[{"key": key, "reason": "Disproved."}]).json()

    assert report["best_guess"] is None
    assert report["fields"]["best_guess"][0]["struck"]["reason"] == "Disproved."


@pytest.mark.parametrize(
    "body",
    [
        pytest.param({}, id="nothing"),
        pytest.param({"problem_class": "root cause"}, id="no-such-class"),
        pytest.param({"root_cause": "x"}, id="no-such-field"),
        pytest.param({"best_guess": {"says": "x", "status": "proven"}}, id="no-such-status"),
    ],
)
def test_what_makes_no_sense_is_refused(
    operator: TestClient, number: int, body: dict[str, Any]
) -> None:
    assert patch(operator, number, **body).status_code == 422


def test_a_reader_reads_and_writes_nothing(reader: TestClient, number: int) -> None:
    assert reader.get(f"/api/v1/incidents/{number}/report").status_code == 200
    assert patch(reader, number, best_guess="x").status_code == 403
    assert reader.post(f"/api/v1/incidents/{number}/shares", json={}).status_code == 403


def test_a_share_lives_a_week_and_its_link_is_told_once(
    operator: TestClient, anybody: TestClient, number: int
) -> None:
    made = operator.post(f"/api/v1/incidents/{number}/shares", json={})

    share = made.json()
    assert made.status_code == 201
    assert set(share) == {"id", "url", "tier", "expires_at"}
    left = datetime.fromisoformat(share["expires_at"]) - datetime.now(UTC)
    assert timedelta(days=6, hours=23) < left <= timedelta(days=7)
    assert anybody.get(share["url"]).status_code == 200
    listed = operator.get(f"/api/v1/incidents/{number}/shares").json()["items"]
    assert [(one["id"], one["opened_count"]) for one in listed] == [(share["id"], 1)]
    assert share["url"].rpartition("/")[2] not in json.dumps(listed)


def test_the_preview_is_what_the_share_freezes(
    operator: TestClient, anybody: TestClient, number: int
) -> None:
    preview = operator.get(f"/api/v1/incidents/{number}/shares/preview").json()

    assert preview["tier"] == "T0"
    assert preview["fields"]["problem_class"][0]["says"].startswith("Not decided.")


@pytest.mark.parametrize(
    "terms",
    [
        pytest.param({"tier": "T1"}, id="tier-T1"),
        pytest.param({"tier": "T2"}, id="tier-T2"),
        pytest.param({"expires_in_seconds": 299}, id="too-short"),
        pytest.param({"expires_in_seconds": 30 * 86_400 + 1}, id="too-long"),
        pytest.param({"password": "short"}, id="a-short-password"),
    ],
)
def test_terms_that_are_not_offered_are_refused(
    operator: TestClient, number: int, terms: dict[str, Any]
) -> None:
    answer = operator.post(f"/api/v1/incidents/{number}/shares", json=terms)

    assert answer.status_code == 422
    assert operator.get(f"/api/v1/incidents/{number}/shares").json()["items"] == []


def test_a_revoked_share_opens_no_more_and_revoking_again_changes_nothing(
    operator: TestClient, anybody: TestClient, number: int
) -> None:
    share = operator.post(f"/api/v1/incidents/{number}/shares", json={}).json()

    first = operator.delete(f"/api/v1/shares/{share['id']}")
    [listed] = operator.get(f"/api/v1/incidents/{number}/shares").json()["items"]
    second = operator.delete(f"/api/v1/shares/{share['id']}")
    [again] = operator.get(f"/api/v1/incidents/{number}/shares").json()["items"]

    assert (first.status_code, second.status_code) == (204, 204)
    assert listed["revoked_at"] == again["revoked_at"] is not None
    assert anybody.get(share["url"]).status_code == 404


def test_the_same_idempotency_key_makes_one_share(operator: TestClient, number: int) -> None:
    url, headers = f"/api/v1/incidents/{number}/shares", {"Idempotency-Key": "once"}

    first = operator.post(url, json={}, headers=headers)
    second = operator.post(url, json={}, headers=headers)

    assert first.json() == second.json()
    assert len(operator.get(url).json()["items"]) == 1


@pytest.mark.parametrize(
    ("method", "path"),
    [
        pytest.param("GET", "/api/v1/incidents/999/report", id="report"),
        pytest.param("GET", "/api/v1/incidents/999/shares", id="shares"),
        pytest.param("DELETE", "/api/v1/shares/999", id="a-share"),
    ],
)
def test_what_does_not_exist_is_not_found(operator: TestClient, method: str, path: str) -> None:
    assert operator.request(method, path).status_code == 404
