"""Odd characters, numbers, cursors and sizes: never a 500, on either database."""

import base64
import tempfile
from collections.abc import Iterator
from datetime import UTC, datetime
from pathlib import Path

import pytest
from fastapi.testclient import TestClient

from app.main import create_app
from app.store import api_tokens
from app.store.audit import CLI
from app.store.database import reading, writing
from app.store.stores import Stores
from app.store.tables import BundleRow, Incident
from app.web.bodies import MAX_BYTES
from tests.conftest import BASE_URL
from tests.integration import make

pytestmark = pytest.mark.slow

JSON = {"Content-Type": "application/json"}
BEYOND = 10**30  # more than 64 bits
PATHS = (
    "/api/v1/incidents/{}",
    "/api/v1/bundles/{}",
    "/api/v1/bundles/1/diff/{}",
    "/api/v1/jobs/{}/events",
    "/api/v1/artifacts/{}",
    "/api/v1/targets/{}",
    "/incidents/{}",
    "/reports/{}",
    "/jobs/{}",
)
LISTS = (
    "/api/v1/incidents",
    "/api/v1/incidents?state=open",
    "/api/v1/incidents/1/timeline",
    "/api/v1/targets",
    "/api/v1/tokens",
    "/api/v1/users",
    "/api/v1/audit",
)


@pytest.fixture
def console(any_stores: Stores) -> Iterator[TestClient]:
    """An admin's program at a console on each database in turn, with one incident."""
    with writing(any_stores.engine) as session:
        _, token = api_tokens.create_token(
            session, "attacker", role="admin", actor=CLI, at=datetime.now(UTC)
        )
    make.incident(any_stores)
    with TestClient(create_app(any_stores.settings), BASE_URL, follow_redirects=False) as client:
        client.headers["Authorization"] = f"Bearer {token}"
        yield client


def test_a_number_that_no_row_has_is_not_found(console: TestClient) -> None:
    told = {
        path.format(number): console.get(path.format(number)).status_code
        for path in PATHS
        for number in (2**63 - 1, 2**63, BEYOND, -1)
    }
    assert [path for path, status in told.items() if status != 404] == []


def test_a_forged_cursor_is_refused_or_ends_the_list(console: TestClient) -> None:
    places = ("[]", "[true]", "[null]", f"[{BEYOND}]", '["x"]', '["\\u0000"]', "[[1]]", "[1,2,3]")
    told = {}
    for path in LISTS:
        for place in places:
            cursor = base64.urlsafe_b64encode(place.encode()).decode().rstrip("=")
            answer = console.get(path, params={"cursor": cursor})
            told[path, place] = answer.status_code
    assert [asked for asked, status in told.items() if status not in (200, 404, 422)] == []


@pytest.mark.parametrize(
    "body",
    [
        pytest.param('{"title": "a\\u0000b"}', id="nul"),
        pytest.param('{"title": "a\\ud800b"}', id="lone-surrogate"),
        pytest.param('{"\\ud800": 1, "title": "x"}', id="lone-surrogate-as-a-name"),
        pytest.param('{"title": NaN}', id="nan"),
        pytest.param(f'{{"title": "x", "target_ids": [{BEYOND}]}}', id="number-beyond-64-bits"),
        pytest.param('{"title": "x", "tags": ["a\\u0000"]}', id="nul-in-a-tag"),
        pytest.param('{"title": ' + "[" * 5000 + "]" * 5000 + "}", id="deep"),
        pytest.param('{"title": "x", "' + "k" * 10**6 + '": 1}', id="name-of-a-megabyte"),
    ],
)
def test_odd_text_is_kept_or_refused(console: TestClient, body: str) -> None:
    answer = console.post("/api/v1/incidents", content=body.encode(), headers=JSON)

    assert answer.status_code in (201, 404, 422)
    assert console.get("/").status_code == 200
    assert console.get("/?q=%00").status_code == 200


@pytest.mark.parametrize("moment", ["0001-01-01T00:00:00+14:00", "9999-12-31T23:59:59-14:00"])
def test_a_time_outside_of_all_calendars_is_malformed(operator: TestClient, moment: str) -> None:
    opened = operator.post("/api/v1/incidents", json={"title": "x", "started_at": moment})
    assert opened.status_code == 422

    operator.post("/api/v1/incidents", json={"title": "x"})
    note = {"text": "x", "occurred_at": moment}
    assert operator.post("/api/v1/incidents/1/timeline", json=note).status_code == 422


@pytest.mark.parametrize("moment", ["0001-01-01T00:00:00Z", "9999-12-31T23:59:59Z"])
def test_pages_bear_the_first_and_the_last_moment(operator: TestClient, moment: str) -> None:
    operator.post("/api/v1/incidents", json={"title": "x", "started_at": moment})
    operator.post("/api/v1/incidents/1/timeline", json={"text": "x", "occurred_at": moment})

    for path in ("/", "/incidents/1", "/incidents/1.md", "/incidents/1.json", "/reports/1"):
        assert operator.get(path).status_code == 200


def test_infinity_in_a_document_is_kept_as_not_known(any_stores: Stores) -> None:
    row = BundleRow(
        base_url="http://a\0b", collected_at=make.NOON, summary={"x": [float("inf"), float("nan")]}
    )
    with writing(any_stores.engine) as session:
        session.add(row)
        session.add(
            Incident(title="a\0b", tags=["\0"], opened_by="m", opened_at=make.NOON,
                     changed_at=make.NOON)
        )  # fmt: skip
    with reading(any_stores.engine) as session:
        assert session.get_one(BundleRow, row.id).summary == {"x": [None, None]}


@pytest.mark.parametrize("path", ["/login", "/setup/x", "/s/x"])
@pytest.mark.parametrize(
    "kind", ["multipart/form-data; boundary=B", "application/octet-stream", "application/gzip"]
)
def test_a_stranger_cannot_fill_memory_or_disk(
    anybody: TestClient, path: str, kind: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    head = b'--B\r\nContent-Disposition: form-data; name="name"; filename="f"\r\n\r\n'

    def body() -> Iterator[bytes]:
        yield head
        for _ in range(2 * MAX_BYTES // 2**16):
            yield bytes(2**16)
        yield b"\r\n--B--\r\n"

    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))  # the folder of nobody else
    answer = anybody.post(path, content=body(), headers={"Content-Type": kind})

    assert answer.status_code in ((413,) if kind.startswith("multipart") else (404, 413, 422))
    kept = sum(file.stat().st_size for file in tmp_path.rglob("*") if file.is_file())
    assert kept < 2 * MAX_BYTES


@pytest.mark.parametrize("kind", ["application/octet-stream", "multipart/form-data; boundary=B"])
def test_the_api_reads_no_more_than_its_limit_whatever_the_body_says_it_is(
    operator: TestClient, kind: str
) -> None:
    headers = {"Content-Type": kind, "Idempotency-Key": "once"}
    body = (bytes(2**16) for _ in range(2 * MAX_BYTES // 2**16))

    answer = operator.post("/api/v1/incidents", content=body, headers=headers)

    assert answer.status_code == 413


def test_a_later_token_of_the_same_name_is_not_told_what_the_earlier_one_was(
    admin: TestClient, anybody: TestClient
) -> None:
    def token(role: str) -> tuple[int, dict[str, str]]:
        made = admin.post("/api/v1/tokens", json={"name": "ci", "role": role}).json()
        return made["id"], {"Authorization": f"Bearer {made['token']}", "Idempotency-Key": "one"}

    first_id, first = token("admin")
    wanted = {"name": "minted", "role": "admin"}
    assert anybody.post("/api/v1/tokens", json=wanted, headers=first).status_code == 201
    admin.delete(f"/api/v1/tokens/{first_id}")

    _, later = token("reader")
    answer = anybody.post("/api/v1/tokens", json=wanted, headers=later)

    assert answer.status_code == 409
    assert "token" not in answer.json()
