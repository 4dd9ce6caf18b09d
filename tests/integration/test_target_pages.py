"""Targets: registering, looking, checking the connection, editing, deleting."""

import re

import orjson
import pytest
from fastapi.testclient import TestClient
from sqlmodel import select

from app.store.database import reading
from app.store.stores import Stores
from app.store.tables import AuditEvent, Target
from app.store.targets import address, get_target, list_targets
from tests import make, situations
from tests.integration.scripted_target import answers, scripted_target
from tests.ports import free_port

FORM = {
    "name": "decode-a",
    "base_url": "http://10.0.0.7:30000/prefix/",
    "token": "sk-user-secret",
    "admin_token": "sk-admin-secret",
    "headers": "X-Route: blue-secret\nX-Team: search",
    "labels": "team=search",
}
SECRETS = ("sk-user-secret", "sk-admin-secret", "blue-secret")


def stored(stores: Stores, target_id: int = 1) -> Target:
    with reading(stores.engine) as session:
        return get_target(session, target_id)


def test_without_targets_the_page_says_what_one_is(admin: TestClient, reader: TestClient) -> None:
    assert "Register the first target" in admin.get("/targets").text
    assert "An admin registers targets." in reader.get("/targets").text


def test_a_registered_target_is_asked_with_what_was_typed(
    admin: TestClient, stores: Stores
) -> None:
    answer = admin.post("/targets/new", data=FORM)

    assert (answer.status_code, answer.headers["location"]) == (303, "/targets/1")
    target = address(stored(stores), stores.vault, stores.settings)
    assert target.base_url == "http://10.0.0.7:30000/prefix"
    assert (target.token, target.admin_token) == ("sk-user-secret", "sk-admin-secret")
    assert target.headers == {"X-Route": "blue-secret", "X-Team": "search"}


def test_no_page_and_no_row_shows_a_secret(admin: TestClient, stores: Stores) -> None:
    admin.post("/targets/new", data=FORM)

    shown = "".join(admin.get(path).text for path in ("/targets", "/targets/1", "/targets/1/edit"))
    kept = orjson.dumps(stored(stores).model_dump()).decode()
    with reading(stores.engine) as session:
        audited = "".join(str(line.detail) for line in session.exec(select(AuditEvent)))
    for secret in SECRETS:
        assert secret not in shown + kept + audited
    assert "X-Route" in shown


@pytest.mark.parametrize(
    ("change", "words"),
    [
        pytest.param({"base_url": "file:///etc/passwd"}, "Only http", id="a file"),
        pytest.param({"base_url": "http://u:p@host"}, "user or password", id="a password"),
        pytest.param({"base_url": "http://169.254.169.254"}, "never asked", id="metadata"),
        pytest.param({"name": " "}, "needs a name", id="no name"),
        pytest.param({"headers": "no colon"}, "Line 1", id="a header without value"),
        pytest.param({"headers": "X-A: a\x00b"}, "cannot be sent", id="a header with NUL"),
        pytest.param({"ca_pem": "hello"}, "not a PEM", id="no certificate"),
        pytest.param(
            {"ca_pem": "-----BEGIN CERTIFICATE-----\n-----BEGIN PRIVATE KEY-----"},
            "never a private key",
            id="a private key",
        ),
    ],
)
def test_what_cannot_be_asked_is_refused_in_words(
    admin: TestClient, stores: Stores, change: dict[str, str], words: str
) -> None:
    answer = admin.post("/targets/new", data=FORM | change)

    assert answer.status_code == 422
    assert words in answer.text
    with reading(stores.engine) as session:
        assert not list_targets(session)


def test_a_name_is_given_once(admin: TestClient) -> None:
    admin.post("/targets/new", data=FORM)

    assert admin.post("/targets/new", data=FORM).status_code == 409


def test_the_check_asks_once_and_generates_nothing(admin: TestClient) -> None:
    model = answers(b'{"model_path": "/models/r1"}')
    with scripted_target({"/model_info": model}) as target:
        admin.post("/targets/new", data={**FORM, "base_url": target.base_url, "check": "true"})

        assert target.paths() == ["/model_info"]
        assert target.asked[0][1]["authorization"] == "Bearer sk-user-secret"
    page = admin.get("/targets/1").text
    assert "Whether it serves was not asked." in page
    assert "decode-a was never asked" in page
    assert "mark--good" not in page


def test_a_target_that_is_not_there_is_registered_and_said_to_be_refused(
    admin: TestClient, operator: TestClient
) -> None:
    base_url = f"http://127.0.0.1:{free_port()}"
    admin.post("/targets/new", data={**FORM, "base_url": base_url})

    operator.post("/targets/1/check")

    assert "Nothing listens at this address." in operator.get("/targets/1").text


def test_a_secret_that_is_left_blank_stays_and_one_that_is_removed_goes(
    admin: TestClient, stores: Stores
) -> None:
    admin.post("/targets/new", data=FORM)
    blank = {"name": "decode-b", "base_url": FORM["base_url"]}

    admin.post("/targets/1/edit", data=blank)
    kept = address(stored(stores), stores.vault, stores.settings)
    admin.post("/targets/1/edit", data={**blank, "remove_token": "true", "remove_headers": "true"})
    left = address(stored(stores), stores.vault, stores.settings)

    assert (kept.token, kept.admin_token) == ("sk-user-secret", "sk-admin-secret")
    assert (left.token, left.admin_token, left.headers) == (None, "sk-admin-secret", {})
    assert stored(stores).name == "decode-b"


def test_a_deleted_target_leaves_the_list_and_forgets_its_secrets(
    admin: TestClient, stores: Stores
) -> None:
    admin.post("/targets/new", data=FORM)
    make.incident(stores, "Users wait", stored(stores))

    admin.post("/targets/1/delete")

    assert "decode-a" not in admin.get("/targets").text
    assert admin.get("/targets/1").status_code == 200
    assert stored(stores).token_sealed is None
    assert "decode-a" in admin.get("/incidents/1").text
    assert admin.post("/targets/new", data=FORM).status_code == 303


def test_a_target_is_not_deleted_under_a_job(admin: TestClient, operator: TestClient) -> None:
    admin.post("/targets/new", data=FORM)
    operator.post("/incidents/new", data={"title": "x", "target_id": "1", "collect": "true"})

    answer = admin.post("/targets/1/delete")

    assert answer.status_code == 409
    assert "Cancel it or wait" in answer.text


def test_the_worst_target_stands_first(reader: TestClient, stores: Stores) -> None:
    for name, captures in (
        ("a", situations.healthy),
        ("b", situations.quiet),
        ("c", situations.gone),
    ):
        target = make.target(stores, name)
        make.bundle(stores, make.incident(stores, name, target), target, captures())
    make.target(stores, "d")

    page = reader.get("/targets").text

    assert re.findall(r'id="target-(\d)"', page) == ["3", "2", "4", "1"]
    assert "1 of 4 targets did not serve when last asked" in page


def test_only_an_admin_registers_and_edits(operator: TestClient, stores: Stores) -> None:
    make.target(stores)

    assert operator.get("/targets/new").status_code == 403
    assert operator.get("/targets/1/edit").status_code == 403
    for path in ("new", "1/edit", "1/delete"):
        assert operator.post(f"/targets/{path}", data=FORM).status_code == 403
    assert "Register a target" not in operator.get("/targets").text


def test_a_reader_does_not_check_connections(reader: TestClient, stores: Stores) -> None:
    make.target(stores)

    assert reader.post("/targets/1/check").status_code == 403
