"""API: hosts, their processes, and diagnostics there."""

from collections.abc import Iterator
from typing import Any

import pytest
from fastapi.testclient import TestClient

from app.store.stores import Stores
from tests.integration import diagnosing
from tests.integration.agent_double import KEY, Double, agent_double
from tests.integration.diagnosing import ROOT, TP0

HOSTS = "/api/v1/hosts"


@pytest.fixture
def double() -> Iterator[Double]:
    told = diagnosing.processes(diagnosing.server())
    with agent_double(Double(says={"GET /processes": lambda _: told})) as running:
        yield running


def register(admin: TestClient, double: Double) -> dict[str, Any]:
    sent = {"name": "gpu-14", "agent_url": double.url, "key": KEY.hex()}
    answer = admin.post(HOSTS, json=sent)
    assert answer.status_code == 201
    found: dict[str, Any] = answer.json()
    return found


def test_a_host_is_registered_read_and_removed(
    admin: TestClient, reader: TestClient, double: Double
) -> None:
    host = register(admin, double)
    assert KEY.hex() not in str(host)
    assert (host["heard_at"], host["agent_id"]) == (None, None)
    assert reader.get(f"{HOSTS}/{host['id']}").json() == host
    assert [one["name"] for one in reader.get(HOSTS).json()["items"]] == ["gpu-14"]
    assert admin.delete(f"{HOSTS}/{host['id']}").status_code == 204
    assert reader.get(HOSTS).json()["items"] == []


def test_only_an_admin_registers_a_host(
    operator: TestClient, reader: TestClient, double: Double
) -> None:
    sent = {"name": "gpu-14", "agent_url": double.url, "key": KEY.hex()}
    assert [one.post(HOSTS, json=sent).status_code for one in (operator, reader)] == [403, 403]


def test_processes_are_asked_live_and_otherwise_the_last_that_are_known(
    admin: TestClient, reader: TestClient, double: Double
) -> None:
    url = f"{HOSTS}/{register(admin, double)['id']}/processes"
    live = reader.get(url).json()
    assert (live["servers"][0]["id"], live["problem"]) == (ROOT, None)
    assert double.asked[-1].actor == "reader"
    double.says.clear()
    old = reader.get(url).json()
    assert (old["servers"], old["heard_at"]) == (live["servers"], live["heard_at"])
    assert old["problem"] == "The double has no answer."
    assert old["age_seconds"] >= 0


def test_what_was_never_told_is_not_made_up(
    admin: TestClient, reader: TestClient, double: Double
) -> None:
    answer = reader.get(f"{HOSTS}/{register(admin, double)['id']}/preflight")
    assert answer.status_code == 404
    assert "has told nothing of it so far" in answer.json()["detail"]


def _linked(admin: TestClient, double: Double) -> tuple[dict[str, Any], dict[str, Any]]:
    """A host, and a target that is its server."""
    host = register(admin, double)
    admin.get(f"{HOSTS}/{host['id']}/processes")
    servers = [{"host_id": host["id"], "server_id": ROOT}]
    sent = {"name": "decode-a", "base_url": "http://127.0.0.1:30000", "servers": servers}
    answer = admin.post("/api/v1/targets", json=sent)
    assert answer.status_code == 201
    return host, answer.json()


def test_a_target_is_linked_with_its_servers_and_unlinked(
    admin: TestClient, double: Double
) -> None:
    host, target = _linked(admin, double)
    [link] = target["servers"]
    assert (link["host"], link["server_id"], link["port"], link["confirmed_by"]) == (
        host["name"],
        ROOT,
        30000,
        "admin",
    )
    url = f"/api/v1/targets/{target['id']}"
    assert admin.patch(url, json={"watch": True}).json()["servers"] == [link]
    assert admin.patch(url, json={"servers": []}).json()["servers"] == []


def test_an_operator_links_servers_and_changes_nothing_else(
    admin: TestClient, operator: TestClient, reader: TestClient, double: Double
) -> None:
    host, target = _linked(admin, double)
    url = f"/api/v1/targets/{target['id']}"
    servers = [{"host_id": host["id"], "server_id": ROOT}]
    assert reader.patch(url, json={"servers": []}).status_code == 403
    assert operator.patch(url, json={"servers": []}).json()["servers"] == []
    for more in ({"watch": True}, {"name": "x"}, {"token": None}):
        assert operator.patch(url, json={"servers": servers} | more).status_code == 403
    assert operator.patch(url, json={}).status_code == 403
    assert admin.get(url).json()["servers"] == [], "what was refused linked nothing"
    [link] = operator.patch(url, json={"servers": servers}).json()["servers"]
    assert (link["server_id"], link["confirmed_by"]) == (ROOT, "operator")
    admin.delete(url)
    assert operator.patch(url, json={"servers": servers}).status_code == 409


def test_a_diagnostic_is_asked_for_and_read(
    admin: TestClient, operator: TestClient, reader: TestClient, double: Double, stores: Stores
) -> None:
    host, target = _linked(admin, double)
    sent = {"title": "It hangs", "target_ids": [target["id"]]}
    url = f"/api/v1/incidents/{operator.post('/api/v1/incidents', json=sent).json()['id']}"
    assert reader.post(f"{url}/diagnostics", json={"kind": "stacks"}).status_code == 403
    answer = operator.post(f"{url}/diagnostics", json={"kind": "stacks", "samples": 3})
    assert answer.status_code == 202
    told = answer.json()
    assert (told["job"]["kind"], told["job"]["state"]) == ("diagnose", "queued")
    read = reader.get(f"/api/v1/diagnostics/{told['diagnostic']['id']}").json()
    assert (read["kind"], read["state"], read["items"]) == ("stacks", "queued", [])
    assert (read["hosts"][0]["name"], read["target_id"]) == (host["name"], target["id"])
    listed = reader.get(f"{url}/diagnostics").json()["items"]
    assert [one["id"] for one in listed] == [read["id"]]


@pytest.mark.parametrize(
    ("sent", "status", "says"),
    [
        pytest.param({"kind": "coredump"}, 409, "would ask 2 processes on gpu-14", id="unsure"),
        pytest.param({"kind": "stacks", "samples": 6}, 422, "samples", id="too-many"),
        pytest.param({"kind": "gdb"}, 422, "kind", id="unknown-kind"),
        pytest.param({"kind": "stacks", "process_ids": ["1"]}, 422, "process_ids", id="no-id"),
        pytest.param({"kind": "stacks", "target_id": 77}, 404, "not about target", id="other"),
        pytest.param({"kind": "stacks", "host_ids": [77]}, 404, "no host 77", id="no-host"),
        pytest.param(
            {"kind": "coredump", "process_ids": [TP0], "confirm": "gpu-15"},
            409,
            "name of each host: gpu-14",
            id="another-host",
        ),
    ],
)
def test_what_cannot_be_asked_for_says_why(
    admin: TestClient,
    operator: TestClient,
    double: Double,
    sent: dict[str, Any],
    status: int,
    says: str,
) -> None:
    _, target = _linked(admin, double)
    opened = {"title": "It hangs", "target_ids": [target["id"]]}
    url = f"/api/v1/incidents/{operator.post('/api/v1/incidents', json=opened).json()['id']}"
    answer = operator.post(f"{url}/diagnostics", json=sent)
    assert (answer.status_code, says in answer.json()["detail"]) == (status, True), answer.text


def test_processes_of_another_target_are_not_written_down_as_this_ones(
    admin: TestClient, double: Double
) -> None:
    host, _ = _linked(admin, double)
    other = {"name": "decode-b", "base_url": "http://127.0.0.1:31000"}
    target_id = admin.post("/api/v1/targets", json=other).json()["id"]
    opened = {"title": "It hangs", "target_ids": [target_id]}
    url = f"/api/v1/incidents/{admin.post('/api/v1/incidents', json=opened).json()['id']}"
    sent = {"kind": "stacks", "target_id": target_id, "process_ids": [TP0]}
    answer = admin.post(f"{url}/diagnostics", json=sent | {"host_ids": [host["id"]]})
    assert answer.status_code == 409
    assert "linked with another target than decode-b" in answer.json()["detail"]
