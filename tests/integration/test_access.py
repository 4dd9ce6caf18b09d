"""Who gets in where, and that being shut out takes effect at once."""

from datetime import UTC, datetime, timedelta

import pytest
from fastapi import FastAPI
from fastapi.routing import APIRoute, iter_route_contexts
from fastapi.testclient import TestClient
from sqlmodel import select

from app.store import accounts, api_tokens
from app.store.audit import CLI
from app.store.database import reading, writing
from app.store.sign_in import session_actor
from app.store.stores import Stores
from app.store.tables import ApiToken, WebSession
from app.web.access import OPEN
from tests.conftest import Prepared

NOW = datetime.now(UTC)


def _token(stores: Stores, role: str = "admin") -> tuple[int, dict[str, str]]:
    with writing(stores.engine) as session:
        row, token = api_tokens.create_token(session, "pager", role=role, actor=CLI, at=NOW)
        assert row.id is not None
        return row.id, {"Authorization": f"Bearer {token}"}


def test_every_route_that_is_not_listed_as_open_is_closed_to_strangers(
    app: FastAPI, anybody: TestClient
) -> None:
    paths = {
        (method, (context.path or "").replace("{", "").replace("}", ""))
        for context in iter_route_contexts(app.routes)
        if isinstance(context.original_route, APIRoute)
        for method in context.methods or ()
        if not (context.path or "").startswith(OPEN)
    }

    let_in = [
        f"{method} {path}"
        for method, path in sorted(paths)
        if anybody.request(method, path).status_code not in (401, 303)
    ]

    assert len(paths) > 20
    assert let_in == []


def test_a_stranger_is_sent_to_sign_in_and_comes_back_to_the_page(anybody: TestClient) -> None:
    answer = anybody.get("/audit?before=7")

    assert answer.status_code == 303
    assert answer.headers["location"] == "/login?next=/audit%3Fbefore%3D7"


def test_a_program_without_token_is_told_how_to_get_in(anybody: TestClient) -> None:
    answer = anybody.get("/api/v1/tokens")

    assert answer.status_code == 401
    assert answer.headers["www-authenticate"] == "Bearer"
    assert answer.json()["error"] == "unauthenticated"


@pytest.mark.parametrize("path", ["/audit", "/api/v1/tokens", "/api/v1/users", "/api/v1/audit"])
def test_what_is_for_admins_is_refused_to_operators_and_readers(
    reader: TestClient, operator: TestClient, admin: TestClient, path: str
) -> None:
    told = [client.get(path).status_code for client in (reader, operator, admin)]

    assert told == [403, 403, 200]


@pytest.mark.parametrize(
    ("path", "form"),
    [
        ("/settings/users", {"name": "eve", "role": "admin", "password": "a long password"}),
        ("/settings/users/admin/disable", {}),
        ("/settings/tokens", {"name": "eve", "role": "admin"}),
        ("/settings/tokens/1/revoke", {}),
    ],
)
def test_an_operator_cannot_change_who_has_access(
    operator: TestClient, stores: Stores, path: str, form: dict[str, str]
) -> None:
    assert operator.post(path, data=form).status_code == 403
    with reading(stores.engine) as session:
        assert [user.name for user in accounts.list_users(session)] == sorted(accounts.ROLES)
        assert session.exec(select(ApiToken)).all() == []


def test_a_disabled_user_is_out_at_once(admin: TestClient, operator: TestClient) -> None:
    assert operator.get("/settings").status_code == 200

    admin.post("/settings/users/operator/disable")

    assert operator.get("/settings").status_code == 303


def test_the_last_admin_cannot_be_disabled(admin: TestClient) -> None:
    answer = admin.post("/settings/users/admin/disable")

    assert answer.status_code == 409
    assert "last admin" in answer.text


def test_an_expired_session_is_nobody_and_is_swept_out(stores: Stores, prepared: Prepared) -> None:
    later = NOW + timedelta(days=2)
    with writing(stores.engine) as session:
        cookie = prepared.cookies["reader"]
        assert session_actor(session, cookie, address=None, at=NOW) is not None
        assert session_actor(session, cookie, address=None, at=later) is None


def test_a_token_works_with_its_role_until_it_is_revoked(
    anybody: TestClient, stores: Stores
) -> None:
    token_id, bearer = _token(stores)
    assert anybody.get("/api/v1/tokens", headers=bearer).status_code == 200

    assert anybody.delete(f"/api/v1/tokens/{token_id}", headers=bearer).status_code == 204

    answer = anybody.get("/api/v1/tokens", headers=bearer)
    assert answer.status_code == 401
    assert "revoked" in answer.json()["detail"]


def test_a_wrong_token_is_refused_even_beside_a_good_cookie(admin: TestClient) -> None:
    answer = admin.get("/settings", headers={"Authorization": "Bearer nonsense"})

    assert answer.status_code == 303


def test_the_use_of_a_token_is_noted_at_most_once_a_minute(stores: Stores) -> None:
    token_id, bearer = _token(stores)
    secret = bearer["Authorization"].removeprefix("Bearer ")

    def used(after_seconds: int) -> datetime | None:
        at = NOW + timedelta(seconds=after_seconds)
        api_tokens.token_actor(stores.engine, secret, address=None, at=at)
        with reading(stores.engine) as session:
            return session.get_one(ApiToken, token_id).last_used_at

    assert used(0) == NOW
    assert used(59) == NOW
    assert used(60) == NOW + timedelta(seconds=60)


def test_neither_sessions_nor_tokens_are_kept_in_clear(stores: Stores, prepared: Prepared) -> None:
    _, bearer = _token(stores)
    stores.engine.dispose()
    kept = b"".join(path.read_bytes() for path in stores.settings.data_dir.glob("console.sqlite*"))

    assert prepared.cookies["admin"].encode() not in kept
    assert bearer["Authorization"].removeprefix("Bearer ").encode() not in kept


def test_signing_out_ends_the_session_for_good(
    operator: TestClient, stores: Stores, prepared: Prepared
) -> None:
    answer = operator.post("/logout")

    assert answer.headers["location"] == "/login"
    with reading(stores.engine) as session:
        assert session_actor(session, prepared.cookies["operator"], address=None, at=NOW) is None


def test_changing_the_own_password_ends_all_other_sessions_but_not_this_one(
    anybody: TestClient, operator: TestClient, stores: Stores
) -> None:
    form = {"name": "operator", "password": "correct horse battery"}
    anybody.post("/login", data=form)  # a second browser of the same person
    assert anybody.get("/settings").status_code == 200

    change = {"present": "correct horse battery", "fresh": "battery staple horse"}
    assert operator.post("/settings/password", data=change).status_code == 303

    assert operator.get("/settings").status_code == 200
    assert anybody.get("/settings").status_code == 303
    with reading(stores.engine) as session:
        owner = accounts.get_user(session, "operator")
        left = select(WebSession).where(WebSession.user_id == owner.id)
        assert len(session.exec(left).all()) == 1


def test_the_own_password_changes_only_for_who_knows_the_present_one(
    operator: TestClient,
) -> None:
    change = {"present": "not the present one", "fresh": "battery staple horse"}
    answer = operator.post("/settings/password", data=change, headers={"HX-Request": "true"})

    assert answer.status_code == 422
    assert "does not fit" in answer.text


def test_a_token_is_shown_once_to_the_admin_who_makes_it(admin: TestClient) -> None:
    made = admin.post("/settings/tokens", data={"name": "bastion", "role": "operator"})
    assert made.status_code == 201
    assert "shown this once" in made.text

    again = admin.get("/settings")
    assert "bastion" in again.text
    assert "shown this once" not in again.text


def test_every_change_of_access_stands_in_the_audit_log(admin: TestClient) -> None:
    admin.post(
        "/settings/users", data={"name": "eve", "role": "reader", "password": "eve eve eve eve"}
    )
    admin.post("/settings/users/eve/disable")

    page = admin.get("/audit").text
    lines = admin.get("/api/v1/audit?limit=2").json()["items"]
    assert [(line["actor"], line["action"], line["subject"]) for line in lines] == [
        ("user:admin", "user.disable", "user:eve"),
        ("user:admin", "user.create", "user:eve"),
    ]
    assert "user.disable by user:admin" in page
    assert "eve eve" not in page
