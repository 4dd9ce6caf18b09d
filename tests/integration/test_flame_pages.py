"""A CPU profile as a flame graph: who may see it, and what its page may do."""

import re
from typing import Any

import pytest
from fastapi.testclient import TestClient

from app.store.audit import newest
from app.store.database import reading, writing
from app.store.evidence import attach, purge
from app.store.stores import Stores
from app.store.tables import Artifact, Incident
from app.web.views.flames import MOST_PROFILE_BYTES, SLOW_BYTES
from tests import hosts, make

PROFILE = hosts.PROFILE.read_bytes()
HOSTILE = "<img src=x onerror=alert(1)>"


@pytest.fixture
def incident(stores: Stores) -> Incident:
    return make.incident(stores)


def profile(stores: Stores, incident: Incident, data: bytes = PROFILE, **given: Any) -> int:
    values = {"name": "TP5-41876.speedscope.json", "kind": "cpu profile", "tier": "T1", **given}
    assert incident.id is not None
    with writing(stores.engine) as session:
        row = attach(
            session,
            stores.artifacts.put(data),
            incident_id=incident.id,
            actor=make.MIRA,
            taken_from="host gpu-14",
            at=make.NOON,
            **values,
        )
    assert row.id is not None
    return row.id


def sized(stores: Stores, artifact_id: int, size_bytes: int) -> None:
    """Say that the artifact has *size_bytes*: nobody reads them before that is checked."""
    with writing(stores.engine) as session:
        session.get_one(Artifact, artifact_id).size_bytes = size_bytes


def test_the_page_frames_speedscope_with_a_way_back_and_the_download(
    reader: TestClient, stores: Stores, incident: Incident
) -> None:
    number = profile(stores, incident)
    page = reader.get(f"/artifacts/{number}/flame")

    assert page.status_code == 200
    assert "unsafe" not in page.headers["content-security-policy"]
    assert f'<iframe class="flame" src="/artifacts/{number}/flame/speedscope"' in page.text
    assert f'href="/artifacts/{number}"' in page.text
    assert f'href="/artifacts/{number}/content" download' in page.text
    assert "<h1>TP5-41876.speedscope.json as a flame graph</h1>" in page.text
    assert "<noscript>" in page.text


def test_speedscope_may_run_its_two_scripts_and_ask_this_console_alone(
    reader: TestClient, stores: Stores, incident: Incident
) -> None:
    path = f"/artifacts/{profile(stores, incident)}/flame/speedscope"
    first, second = reader.get(path), reader.get(path)
    told = first.headers["content-security-policy"].split("; ")
    policy = {name: rest for name, _, rest in (part.partition(" ") for part in told)}
    [nonce] = set(re.findall(r'nonce="([^"]+)"', first.text))

    assert policy["script-src"] == f"'nonce-{nonce}' 'wasm-unsafe-eval'"
    assert policy["style-src"].startswith(f"'nonce-{nonce}' 'sha256-")
    assert policy["connect-src"] == "'self'"
    assert policy["font-src"] == "'self'"
    assert policy["frame-ancestors"] == "'self'"
    for closed in ("default-src", "base-uri", "form-action"):
        assert policy[closed] == "'none'"
    assert len(re.findall(r"<script src=", first.text)) == first.text.count("<script") == 2
    assert nonce not in second.text
    assert first.headers["cache-control"] == "no-store"


def test_what_speedscope_loads_is_there_and_names_this_profile(
    reader: TestClient, stores: Stores, incident: Incident
) -> None:
    number = profile(stores, incident)
    page = reader.get(f"/artifacts/{number}/flame/speedscope").text
    files = re.findall(r'(?:src|href)="(/static/[^"]+)"', page)
    data = re.search(r'data-profile="([^"]+)"', page)

    assert len(files) == 3
    assert {reader.get(file).status_code for file in files} == {200}
    assert data
    assert data[1] == f"/artifacts/{number}/flame/profile.speedscope.json"
    answer = reader.get(data[1])
    assert answer.content == PROFILE
    assert answer.headers["content-type"] == "application/octet-stream"
    assert answer.headers["content-disposition"].startswith("attachment")
    assert answer.headers["x-content-type-options"] == "nosniff"


def test_it_is_opened_from_its_diagnostic_and_its_artifact_and_leads_back(
    reader: TestClient, stores: Stores, incident: Incident
) -> None:
    says = "99 samples in 2 s, idle threads included."
    item = hosts.item(5, sample=None, kind="cpu profile", says=says)
    hosts.diagnostic(
        stores, incident, hosts.host(stores), [item], kind="cpu profile", bodies=[PROFILE]
    )
    page = reader.get("/artifacts/1/flame").text

    assert 'href="/artifacts/1/flame">Open the flame graph' in reader.get("/diagnostics/1").text
    assert 'href="/artifacts/1/flame">Open the flame graph' in reader.get("/artifacts/1").text
    assert "<h1>TP5: 99 samples in 2 s, idle threads included</h1>" in page
    assert 'href="/diagnostics/1">cpu profile 1</a>' in page


def test_a_profile_that_was_attached_by_hand_is_known_by_its_name(
    reader: TestClient, stores: Stores, incident: Incident
) -> None:
    number = profile(stores, incident, kind="not recognised yet")

    assert reader.get(f"/artifacts/{number}/flame").status_code == 200


def test_raw_evidence_is_for_operators_and_each_reading_is_noted(
    reader: TestClient, operator: TestClient, stores: Stores, incident: Incident
) -> None:
    number = profile(stores, incident, tier="T2")
    page = reader.get(f"/artifacts/{number}/flame").text
    data = f"/artifacts/{number}/flame/profile.speedscope.json"

    assert "an operator may read it" in page
    assert "<iframe" not in page
    assert "download>" not in page
    assert reader.get(data).status_code == 403
    assert operator.get(data).content == PROFILE
    with reading(stores.engine) as session:
        assert "artifact.read" in [line.action for line in newest(session, limit=5)]


def test_nobody_who_is_not_signed_in_sees_anything(
    anybody: TestClient, stores: Stores, incident: Incident
) -> None:
    number = profile(stores, incident)

    for path in ("flame", "flame/speedscope", "flame/profile.speedscope.json"):
        assert anybody.get(f"/artifacts/{number}/{path}").status_code in (303, 401)


def test_a_profile_that_is_too_large_is_offered_for_download(
    reader: TestClient, stores: Stores, incident: Incident
) -> None:
    number = profile(stores, incident)
    sized(stores, number, MOST_PROFILE_BYTES + 1)
    page = reader.get(f"/artifacts/{number}/flame").text

    assert "<iframe" not in page
    assert "a browser shows 67.1 MB at most" in page
    assert f'href="/artifacts/{number}/content" download' in page
    assert reader.get(f"/artifacts/{number}/flame/profile.speedscope.json").status_code == 413


def test_a_large_one_is_shown_and_said_to_be_slow(
    reader: TestClient, stores: Stores, incident: Incident
) -> None:
    number = profile(stores, incident)
    usual = reader.get(f"/artifacts/{number}/flame").text
    sized(stores, number, SLOW_BYTES + 1)
    large = reader.get(f"/artifacts/{number}/flame").text

    assert "half a minute" not in usual
    assert "half a minute" in large
    assert "<iframe" in large


def test_purged_bytes_are_told_to_be_gone(
    reader: TestClient, stores: Stores, incident: Incident
) -> None:
    number = profile(stores, incident)
    purge(stores, number, actor=make.ADA, reason="asked for by legal", at=make.NOON)
    page = reader.get(f"/artifacts/{number}/flame").text

    assert "Its bytes are purged." in page
    assert "<iframe" not in page
    assert "download>" not in page
    assert reader.get(f"/artifacts/{number}/flame/profile.speedscope.json").status_code == 409


@pytest.mark.parametrize("path", ["flame", "flame/speedscope", "flame/profile.speedscope.json"])
def test_what_is_no_profile_has_no_flame_graph(
    reader: TestClient, stores: Stores, incident: Incident, path: str
) -> None:
    number = profile(stores, incident, name="dmesg.txt", kind="log tail")

    assert reader.get(f"/artifacts/{number}/{path}").status_code == 404
    assert reader.get(f"/artifacts/{number + 1}/{path}").status_code == 404
    assert "flame" not in reader.get(f"/artifacts/{number}").text


def test_a_name_becomes_no_markup(reader: TestClient, stores: Stores, incident: Incident) -> None:
    number = profile(stores, incident, name=f"{HOSTILE}.speedscope.json")

    assert "<img" not in reader.get(f"/artifacts/{number}/flame").text
    assert "<img" not in reader.get(f"/artifacts/{number}/flame/speedscope").text
