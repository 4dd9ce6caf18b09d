"""Signing in: the cookie, the way back, and slow guessing."""

import time
from concurrent.futures import ThreadPoolExecutor
from datetime import UTC, datetime, timedelta

import pytest
from fastapi.testclient import TestClient
from sqlmodel import select

from app.errors import Throttled
from app.main import create_app
from app.settings import Settings
from app.store import passwords, throttle
from app.store.database import reading, writing
from app.store.stores import Stores
from app.store.tables import LoginThrottle, WebSession
from app.web.login import own_path
from tests.conftest import PASSWORD

NOW = datetime(2026, 11, 30, 3, tzinfo=UTC)
FORM = {"name": "operator", "password": PASSWORD}


def test_a_user_signs_in_and_goes_on_to_where_they_wanted(anybody: TestClient) -> None:
    answer = anybody.post("/login", data={**FORM, "next": "/settings"})

    assert (answer.status_code, answer.headers["location"]) == (303, "/settings")
    assert "operator is signed in as operator" in anybody.get("/settings").text


def test_the_cookie_is_out_of_reach_of_scripts_and_other_sites(anybody: TestClient) -> None:
    cookie = anybody.post("/login", data=FORM).headers["set-cookie"]

    assert cookie.startswith("session=")
    assert "HttpOnly" in cookie
    assert "SameSite=lax" in cookie
    assert "Secure" not in cookie  # plain http: the browser would not send it back


def test_over_https_the_cookie_is_bound_to_the_host(anybody: TestClient) -> None:
    answer = anybody.post("https://127.0.0.1/login", data=FORM)

    assert answer.headers["set-cookie"].startswith("__Host-session=")
    assert "Secure" in answer.headers["set-cookie"]
    assert "max-age" in answer.headers["strict-transport-security"]


def test_behind_a_proxy_with_https_the_cookie_is_bound_as_well(
    anybody: TestClient, settings: Settings
) -> None:
    public = settings.model_copy(update={"public_url": "https://console.example.org"})
    with TestClient(create_app(public), "http://console.example.org") as client:
        answer = client.post("/login", data=FORM, follow_redirects=False)

    assert answer.headers["set-cookie"].startswith("__Host-session=")


def test_a_session_cookie_of_plain_http_is_no_session_over_https(
    operator: TestClient,
) -> None:
    assert operator.get("https://127.0.0.1/settings").status_code == 303


@pytest.mark.parametrize(
    "form",
    [
        pytest.param({**FORM, "password": "wrong wrong wrong"}, id="wrong-password"),
        pytest.param({**FORM, "name": "stranger"}, id="unknown-name"),
        pytest.param({**FORM, "name": "stranger\x00\x1b[2J"}, id="control-characters"),
    ],
)
def test_a_failed_try_does_not_say_what_was_wrong(
    anybody: TestClient, form: dict[str, str]
) -> None:
    answer = anybody.post("/login", data=form)

    assert answer.status_code == 422
    assert "Name and password do not fit." in answer.text
    assert "set-cookie" not in answer.headers
    assert PASSWORD not in answer.text


def test_a_disabled_user_cannot_sign_in_and_is_told_the_same(
    anybody: TestClient, admin: TestClient
) -> None:
    admin.post("/settings/users/operator/disable")

    assert "Name and password do not fit." in anybody.post("/login", data=FORM).text


def test_an_unknown_name_takes_as_long_as_a_known_one() -> None:
    password_hash = passwords.hashed(PASSWORD)

    def seconds(against: str | None) -> float:
        started = time.process_time()
        assert not passwords.fits("wrong wrong wrong", against)
        return time.process_time() - started

    seconds(None)  # makes the stand-in once
    pairs = [(seconds(password_hash), seconds(None)) for _ in range(5)]
    known, unknown = map(min, zip(*pairs, strict=True))
    assert 0.2 < unknown / known < 5, "without the stand-in it would be a thousandth"


@pytest.mark.parametrize(
    "to",
    [
        "https://evil.example/",
        "//evil.example/",
        "/\\evil.example",
        "\\\\evil.example",
        "/\t/evil.example",
        "javascript:alert(1)",
        "",
    ],
)
def test_nobody_is_sent_on_to_another_site(to: str) -> None:
    assert own_path(to, "/") == "/"


def test_a_path_of_ours_is_kept_with_its_query() -> None:
    assert own_path("/audit?before=7", "/") == "/audit?before=7"


@pytest.mark.parametrize(
    ("failures", "wait"),
    [(0, 0), (4, 0), (5, 1), (6, 2), (10, 32), (11, 60), (500, 60)],
)
def test_the_wait_doubles_with_each_failure_up_to_its_limit(failures: int, wait: int) -> None:
    assert throttle.wait_seconds(failures, 60) == wait


def test_guessing_one_name_is_slow_from_any_address(any_stores: Stores) -> None:
    def tries(number: int, at: datetime) -> None:
        with writing(any_stores.engine) as session:
            throttle.count_try(session, "admin", f"10.0.0.{number}", at=at)

    for number in range(throttle.FREE_TRIES):
        tries(number, NOW)
    with pytest.raises(Throttled) as refused:
        tries(99, NOW)
    assert refused.value.retry_after_seconds == 1
    tries(99, NOW + timedelta(seconds=1))


def test_guessing_many_names_from_one_address_is_slow(any_stores: Stores) -> None:
    with writing(any_stores.engine) as session:
        for number in range(throttle.FREE_TRIES):
            throttle.count_try(session, f"name{number}", "10.0.0.1", at=NOW)
        with pytest.raises(Throttled):
            throttle.count_try(session, "another", "10.0.0.1", at=NOW)
        throttle.count_try(session, "another", "10.0.0.2", at=NOW)


def test_many_tries_at_once_gain_nothing(any_stores: Stores) -> None:
    def is_taken(_: int) -> bool:
        try:
            with writing(any_stores.engine) as session:
                throttle.count_try(session, "admin", "10.0.0.1", at=NOW)
        except Throttled:
            return False
        return True

    with ThreadPoolExecutor(8) as pool:
        taken = sum(pool.map(is_taken, range(24)))

    assert taken == throttle.FREE_TRIES


def test_a_throttled_sign_in_is_told_when_to_come_back(anybody: TestClient, stores: Stores) -> None:
    wrong = {**FORM, "password": "wrong wrong wrong"}
    with writing(stores.engine) as session:
        now = datetime.now(UTC)
        session.add(LoginThrottle(subject="name:operator", failures=9, last_failed_at=now))

    answer = anybody.post("/login", data=wrong)

    assert answer.status_code == 429
    assert 1 <= int(answer.headers["retry-after"]) <= 16
    assert "The next try is taken in" in answer.text
    assert anybody.post("/login", data=FORM).status_code == 429  # the right one waits as well


def test_a_right_password_forgets_the_failures_of_the_name(
    anybody: TestClient, stores: Stores
) -> None:
    for _ in range(3):
        anybody.post("/login", data={**FORM, "password": "wrong wrong wrong"})
    anybody.post("/login", data=FORM)

    with reading(stores.engine) as session:
        rows = session.exec(select(LoginThrottle)).all()
        assert {row.subject: row.failures for row in rows} == {"address:testclient": 3}


def test_sessions_that_are_over_are_swept_out_at_the_next_sign_in(
    anybody: TestClient, stores: Stores
) -> None:
    long_ago = datetime(2026, 1, 1, tzinfo=UTC)
    with writing(stores.engine) as session:
        session.add(
            WebSession(token_hash="old", user_id=1, created_at=long_ago, expires_at=long_ago)
        )
    anybody.post("/login", data=FORM)

    with reading(stores.engine) as session:
        assert session.get(WebSession, "old") is None
