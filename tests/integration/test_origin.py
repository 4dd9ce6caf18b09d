"""Requests that another site or a wrong host name brings are refused."""

import json
from pathlib import Path

import pytest
from fastapi.testclient import TestClient

from app.main import create_app
from app.settings import Settings
from app.store import api_tokens
from app.store.audit import CLI
from app.store.database import writing
from app.store.stores import Stores
from app.web.origin import is_trusted
from tests.conftest import BASE_URL, PASSWORD
from tests.integration.test_access import NOW

pytestmark = pytest.mark.slow

ATTACKS = Path(__file__).parents[3] / "shared" / "attacks" / "http" / "host_headers.json"
LOGIN = {"name": "operator", "password": PASSWORD}


@pytest.fixture
def browser(operator: TestClient) -> TestClient:
    """A signed-in browser that says only what a test lets it say."""
    del operator.headers["Sec-Fetch-Site"]
    return operator


@pytest.mark.parametrize(
    "told",
    [
        pytest.param({"Sec-Fetch-Site": "same-origin"}, id="our-page"),
        pytest.param({"Sec-Fetch-Site": "none"}, id="typed-by-the-reader"),
        pytest.param({"Origin": BASE_URL}, id="plain-http-with-our-origin"),
        pytest.param({"Referer": f"{BASE_URL}/settings"}, id="old-browser-with-our-referer"),
        pytest.param({}, id="no-browser"),
    ],
)
def test_our_own_pages_and_programs_may_post(browser: TestClient, told: dict[str, str]) -> None:
    assert browser.post("/logout", headers=told).status_code == 303


@pytest.mark.parametrize("method", ["POST", "PUT", "PATCH", "DELETE", "QUERY", "MOVE"])
@pytest.mark.parametrize(
    "told",
    [
        pytest.param({"Sec-Fetch-Site": "cross-site"}, id="another-site"),
        pytest.param({"Sec-Fetch-Site": "same-site"}, id="a-sub-domain-of-ours"),
        pytest.param(
            {"Sec-Fetch-Site": "cross-site", "Origin": BASE_URL, "HX-Request": "true"},
            id="another-site-with-forged-rest",
        ),
        pytest.param({"Origin": "http://evil.example"}, id="plain-http-from-elsewhere"),
        pytest.param({"Origin": "null"}, id="a-frame-without-origin"),
        pytest.param({"Origin": f"{BASE_URL}:8443"}, id="another-port"),
        pytest.param({"Origin": "http://127.0.0.1.evil.example"}, id="a-name-that-begins-alike"),
        pytest.param({"Referer": "http://evil.example/127.0.0.1"}, id="only-a-foreign-referer"),
    ],
)
def test_another_site_cannot_change_anything(
    browser: TestClient, told: dict[str, str], method: str
) -> None:
    answer = browser.request(method, "/logout", headers=told)

    assert answer.status_code == 403
    assert browser.get("/settings").status_code == 200  # still signed in


def test_another_site_cannot_sign_somebody_in(browser: TestClient) -> None:
    answer = browser.post("/login", data=LOGIN, headers={"Sec-Fetch-Site": "cross-site"})

    assert answer.status_code == 403
    assert "set-cookie" not in answer.headers


def test_a_bearer_token_needs_no_origin(anybody: TestClient, stores: Stores) -> None:
    with writing(stores.engine) as session:
        _, token = api_tokens.create_token(session, "ci", role="admin", actor=CLI, at=NOW)
    headers = {"Authorization": f"Bearer {token}", "Sec-Fetch-Site": "cross-site"}

    made = anybody.post("/api/v1/tokens", json={"name": "x", "role": "reader"}, headers=headers)

    assert made.status_code == 201


def test_reading_from_a_link_on_another_site_is_fine(browser: TestClient) -> None:
    assert browser.get("/settings", headers={"Sec-Fetch-Site": "cross-site"}).status_code == 200


@pytest.mark.parametrize("path", ["/logout", "/settings/tokens", "/settings/users"])
def test_a_get_changes_nothing(browser: TestClient, path: str) -> None:
    assert browser.get(path).status_code == 405
    assert browser.get("/settings").status_code == 200


@pytest.mark.parametrize(
    ("host", "trusted"),
    [
        ("localhost:8000", True),
        ("LOCALHOST", True),
        ("127.0.0.1", True),
        ("[::1]:8000", True),
        ("a.example.org", True),
        ("example.org", False),
        ("evil.example", False),
        ("localhost.evil.example", False),
        ("127.0.0.1:8000@evil", False),
        ("a\tb", False),
        ("localhost:port", False),
        ("localhost/", False),
        ("", False),
    ],
)
def test_a_host_is_trusted_by_its_whole_name(host: str, trusted: bool) -> None:
    ours = ("localhost", "127.0.0.1", "[::1]", "*.example.org")

    assert is_trusted(host, ours) is trusted


def test_an_unknown_host_is_answered_400_whatever_is_asked(anybody: TestClient) -> None:
    for path in ("/login", "/static/console.css", "/healthz", "/api/v1/tokens"):
        answer = anybody.get(path, headers={"Host": "evil.example"})
        assert answer.status_code == 400
        assert "does not answer to that host name" in answer.text
        assert "evil" not in answer.text


def test_the_public_address_is_trusted(anybody: TestClient, settings: Settings) -> None:
    public = settings.model_copy(update={"public_url": "https://console.example.org:8443"})
    with TestClient(create_app(public), "http://console.example.org:8443") as client:
        assert client.get("/healthz").status_code == 200
        assert client.get("/healthz", headers={"Host": "other.example.org"}).status_code == 400


def test_collected_host_header_attacks_gain_nothing(anybody: TestClient) -> None:
    if not ATTACKS.exists():
        pytest.skip("the shared collection of attacks is not here")
    plain = anybody.get("/login")
    for attack in json.loads(ATTACKS.read_text()):
        answer = anybody.get("/login", headers=attack)
        if "Host" in attack:
            assert answer.status_code == 400
        else:  # forwarded headers are not believed
            assert answer.status_code == 200
            assert "evil" not in answer.text
            assert "strict-transport-security" not in answer.headers
    assert plain.status_code == 200


def test_a_redirect_never_names_a_host(anybody: TestClient) -> None:
    answer = anybody.get("/settings", headers={"X-Forwarded-Host": "evil.example"})

    assert answer.headers["location"].startswith("/login")
