"""The same Idempotency-Key and the same request act once."""

from concurrent.futures import ThreadPoolExecutor
from datetime import UTC, datetime, timedelta

import pytest
from fastapi.testclient import TestClient
from sqlmodel import func, select

from app.errors import Conflict
from app.store import idempotency
from app.store.database import reading, writing
from app.store.idempotency import KeptAnswer, KeyedRequest
from app.store.stores import Stores
from app.store.tables import ApiToken, Idempotency

NOW = datetime(2026, 11, 30, 3, tzinfo=UTC)
KEY = {"Idempotency-Key": "deploy-17"}
NEW = {"name": "pager", "role": "reader"}


def _tokens(stores: Stores) -> int:
    with reading(stores.engine) as session:
        return session.exec(select(func.count()).select_from(ApiToken)).one()


def test_a_repeated_request_gets_the_first_answer_and_acts_once(
    admin: TestClient, stores: Stores
) -> None:
    first = admin.post("/api/v1/tokens", json=NEW, headers=KEY)
    again = admin.post("/api/v1/tokens", json=NEW, headers=KEY)

    assert (first.status_code, again.status_code) == (201, 201)
    assert again.json() == first.json()
    assert again.headers["idempotent-replayed"] == "true"
    assert _tokens(stores) == 1


def test_the_kept_answer_is_sealed_as_it_may_hold_a_token(
    admin: TestClient, stores: Stores
) -> None:
    token = admin.post("/api/v1/tokens", json=NEW, headers=KEY).json()["token"]

    with reading(stores.engine) as session:
        [row] = session.exec(select(Idempotency)).all()
        assert token not in str(row.answer)


def test_another_request_under_the_same_key_is_a_conflict(
    admin: TestClient, stores: Stores
) -> None:
    admin.post("/api/v1/tokens", json=NEW, headers=KEY)

    other = admin.post("/api/v1/tokens", json={**NEW, "name": "other"}, headers=KEY)

    assert other.status_code == 409
    assert "used for another request" in other.json()["detail"]
    assert _tokens(stores) == 1


def test_keys_of_different_actors_do_not_meet(
    admin: TestClient, operator: TestClient, stores: Stores
) -> None:
    admin.post("/api/v1/tokens", json=NEW, headers=KEY)

    assert operator.post("/api/v1/tokens", json=NEW, headers=KEY).status_code == 403


def test_a_refused_request_may_be_repaired_under_its_key(admin: TestClient, stores: Stores) -> None:
    refused = admin.post("/api/v1/tokens", json={**NEW, "role": "root"}, headers=KEY)
    assert refused.status_code == 422

    assert admin.post("/api/v1/tokens", json=NEW, headers=KEY).status_code == 201
    assert _tokens(stores) == 1


def test_many_at_once_act_once(admin: TestClient, stores: Stores) -> None:
    def send(_: int) -> int:
        status: int = admin.post("/api/v1/tokens", json=NEW, headers=KEY).status_code
        return status

    with ThreadPoolExecutor(8) as pool:
        told = sorted(pool.map(send, range(16)))

    assert _tokens(stores) == 1
    assert set(told) <= {201, 409}
    assert 201 in told


@pytest.mark.parametrize("key", ["", "x" * 201])
def test_a_key_that_cannot_be_kept_is_refused(admin: TestClient, key: str) -> None:
    answer = admin.post("/api/v1/tokens", json=NEW, headers={"Idempotency-Key": key})

    assert answer.status_code == 422


def test_a_request_at_work_is_a_conflict_until_it_must_have_been_cut_off(
    any_stores: Stores,
) -> None:
    request = KeyedRequest("user:mira", "k", "hash")

    def begin(at: datetime) -> KeptAnswer | None:
        with writing(any_stores.engine) as session:
            return idempotency.begin(session, any_stores.vault, request, at=at)

    assert begin(NOW) is None
    with pytest.raises(Conflict):
        begin(NOW + timedelta(minutes=9))
    assert begin(NOW + timedelta(minutes=11)) is None


def test_an_answer_is_kept_for_a_day(any_stores: Stores) -> None:
    request = KeyedRequest("user:mira", "k", "hash")
    answer = KeptAnswer(201, '{"id": 7}', "/api/v1/incidents/7")
    with writing(any_stores.engine) as session:
        idempotency.begin(session, any_stores.vault, request, at=NOW)
        idempotency.keep(session, any_stores.vault, request, answer)

    for after, kept in ((timedelta(hours=24), answer), (timedelta(hours=25), None)):
        with writing(any_stores.engine) as session:
            found = idempotency.begin(session, any_stores.vault, request, at=NOW + after)
            assert found == kept
