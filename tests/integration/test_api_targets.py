"""Targets over the API: what is asked for, what is answered, what never comes out."""

import pytest
from fastapi.testclient import TestClient

from app.store.database import reading
from app.store.stores import Stores
from app.store.targets import address, get_target
from tests import make
from tests.integration.scripted_target import answers, scripted_target

NEW = {
    "name": "decode-a",
    "base_url": "http://10.0.0.7:30000",
    "token": "sk-user-secret",
    "headers": {"X-Route": "blue-secret"},
    "labels": {"team": "search"},
    "watch": True,
}


def test_a_target_is_registered_and_read_back_without_its_secrets(admin: TestClient) -> None:
    made = admin.post("/api/v1/targets", json=NEW)
    read = admin.get("/api/v1/targets/1")

    assert made.status_code == 201
    assert made.json() == read.json()
    assert "secret" not in made.text
    assert (read.json()["has_token"], read.json()["has_admin_token"]) == (True, False)
    assert (read.json()["has_headers"], read.json()["watch"]) == (True, True)
    assert read.json()["created_at"].endswith("Z")


@pytest.mark.parametrize(
    "change",
    [
        pytest.param({"base_url": "ftp://x"}, id="scheme"),
        pytest.param({"name": ""}, id="no name"),
        pytest.param({"name": "x" * 121}, id="a long name"),
        pytest.param({"token": "x" * 5000}, id="a long token"),
        pytest.param({"labels": {"a": 1}}, id="a label that is no text"),
        pytest.param({"colour": "red"}, id="an unknown field"),
        pytest.param({"ca_file": "/etc/passwd"}, id="a path for a certificate"),
        pytest.param({"headers": {"X A": "b"}}, id="a header name with a space"),
    ],
)
def test_what_cannot_be_registered_is_422_with_a_reason(
    admin: TestClient, change: dict[str, object]
) -> None:
    answer = admin.post("/api/v1/targets", json=NEW | change)

    assert answer.status_code == 422
    assert set(answer.json()) == {"error", "detail"}
    assert "sk-user-secret" not in answer.text


def test_only_what_was_sent_is_changed(admin: TestClient, stores: Stores) -> None:
    admin.post("/api/v1/targets", json=NEW)

    admin.patch("/api/v1/targets/1", json={"clean": True})
    with reading(stores.engine) as session:
        assert address(get_target(session, 1), stores.vault, stores.settings).token
    answer = admin.patch("/api/v1/targets/1", json={"token": None, "name": "decode-b"})

    assert (answer.json()["name"], answer.json()["clean"]) == ("decode-b", True)
    assert answer.json()["has_token"] is False
    assert admin.patch("/api/v1/targets/1", json={"name": None}).status_code == 422


def test_targets_come_in_pages(admin: TestClient, stores: Stores) -> None:
    for number in range(5):
        make.target(stores, f"t{number}")
    names, cursor = [], None
    while True:
        place: dict[str, str] = {"cursor": cursor} if cursor else {}
        page = admin.get("/api/v1/targets", params={"limit": 2, **place}).json()
        names += [one["name"] for one in page["items"]]
        cursor = page["next_cursor"]
        if cursor is None:
            break

    assert names == ["t0", "t1", "t2", "t3", "t4"]
    assert admin.get("/api/v1/targets?cursor=x").status_code == 422
    assert admin.get("/api/v1/targets?limit=0").status_code == 422


def test_a_deleted_target_is_gone_from_the_list_and_still_readable(
    admin: TestClient, stores: Stores
) -> None:
    make.target(stores)

    assert admin.delete("/api/v1/targets/1").status_code == 204

    assert admin.get("/api/v1/targets").json()["items"] == []
    assert admin.get("/api/v1/targets/1").json()["deleted_at"]
    assert admin.delete("/api/v1/targets/1").status_code == 409
    assert admin.delete("/api/v1/targets/9").status_code == 404


def test_a_probe_tells_how_the_connection_is(operator: TestClient, stores: Stores) -> None:
    with scripted_target({"/model_info": answers(b"", status="401 Unauthorized")}) as target:
        make.target(stores, base_url=target.base_url)
        told = operator.post("/api/v1/targets/1/probe").json()

    assert (told["outcome"], told["answers"]) == ("no access", False)
    assert "token is missing or not accepted" in told["says"]


def test_an_operator_looks_and_does_not_register(operator: TestClient, stores: Stores) -> None:
    make.target(stores)

    assert operator.get("/api/v1/targets").status_code == 200
    assert operator.post("/api/v1/targets", json=NEW).status_code == 403
    assert operator.patch("/api/v1/targets/1", json={"clean": True}).status_code == 403
    assert operator.delete("/api/v1/targets/1").status_code == 403


def test_nobody_looks_without_signing_in(anybody: TestClient) -> None:
    answer = anybody.get("/api/v1/targets")

    assert (answer.status_code, answer.json()["error"]) == (401, "unauthenticated")
