"""Errors are told in the form that the asker can read, and tell nothing of the inside."""

import json
import logging

import pytest
from fastapi import FastAPI
from fastapi.testclient import TestClient

from app.errors import NoSpace, NotFound

HTMX = {"HX-Request": "true"}
JSON = {"Accept": "application/json"}


@pytest.fixture
def broken(app: FastAPI, operator: TestClient) -> TestClient:
    """A console with routes that go wrong."""

    @app.get("/incidents/{incident_id}/wrong")
    def wrong() -> None:
        raise ZeroDivisionError("the secret of the inside")

    @app.get("/full")
    def full() -> None:
        raise NoSpace("1 GiB must stay free.", why="Artifacts fill it.", command="df -h")

    @app.get("/huge/{number}")
    def huge(number: int) -> None:
        raise OverflowError(number)

    @app.post("/api/v1/sum")
    def total(numbers: list[int]) -> int:
        return sum(numbers)

    return operator


def test_a_browser_gets_a_page_whose_title_says_what_happened(broken: TestClient) -> None:
    answer = broken.get("/full")

    assert answer.status_code == 507
    assert "<title>1 GiB must stay free. · incident console</title>" in answer.text
    assert "Artifacts fill it." in answer.text
    assert "<code>df -h</code>" in answer.text


def test_htmx_gets_a_notice_for_the_place_of_errors(broken: TestClient) -> None:
    answer = broken.get("/full", headers=HTMX)

    assert answer.status_code == 507
    assert answer.headers["hx-retarget"] == "#notice"
    assert answer.headers["hx-reswap"] == "outerHTML"
    assert 'id="notice"' in answer.text
    assert "<html" not in answer.text
    assert "<dt>why</dt><dd>Artifacts fill it.</dd>" in answer.text


@pytest.mark.parametrize(
    ("path", "headers"), [("/full", JSON), ("/api/v1/nothing", {}), ("/api/v1/nothing", HTMX)]
)
def test_a_program_gets_code_and_detail(
    broken: TestClient, path: str, headers: dict[str, str]
) -> None:
    answer = broken.get(path, headers=headers)

    assert answer.status_code >= 400
    assert set(answer.json()) == {"error", "detail"}
    assert answer.json()["error"] in ("no-space", "not-found")


def test_a_mistake_of_ours_shows_its_number_and_nothing_of_the_inside(
    broken: TestClient, caplog: pytest.LogCaptureFixture
) -> None:
    with caplog.at_level(logging.ERROR):
        answer = broken.get("/incidents/142/wrong", headers={"X-Request-ID": "proxy-17"})

    assert answer.status_code == 500
    assert "proxy-17" in answer.text
    assert answer.headers["x-request-id"] == "proxy-17"
    assert answer.headers["content-security-policy"]
    for inside in ("ZeroDivisionError", "secret of the inside", "Traceback"):
        assert inside not in answer.text


def test_a_mistake_of_ours_is_json_for_programs(broken: TestClient) -> None:
    answer = broken.get("/incidents/142/wrong", headers=JSON)

    assert answer.status_code == 500
    assert answer.json()["error"] == "error"
    assert "secret" not in answer.text


def test_a_number_beyond_the_database_is_not_found(broken: TestClient) -> None:
    assert broken.get(f"/huge/{10**30}").status_code == 404


def test_a_wrong_method_tells_the_right_ones(broken: TestClient) -> None:
    answer = broken.get("/logout")

    assert answer.status_code == 405
    assert answer.headers["allow"] == "POST"
    assert "This address does not take that: Method Not Allowed." in answer.text


def test_invalid_input_is_told_by_place_and_never_repeated(broken: TestClient) -> None:
    answer = broken.post("/api/v1/sum", json=[1, "my-secret-key", 3])

    assert answer.status_code == 422
    assert answer.json()["error"] == "malformed"
    assert answer.json()["detail"].startswith("The request cannot be read: 1: ")
    assert "my-secret-key" not in answer.text


@pytest.mark.parametrize(
    "body",
    ["{", "\xff", "[1, 2", "NaN", pytest.param("[" * 5000, id="deep")],
)
def test_json_that_is_none_is_told_as_such(broken: TestClient, body: str) -> None:
    headers = {"Content-Type": "application/json"}
    answer = broken.post("/api/v1/sum", content=body, headers=headers)

    assert answer.status_code == 422
    assert answer.json()["error"] == "malformed"


@pytest.mark.parametrize("told_length", [True, False], ids=["told", "streamed"])
def test_a_body_that_is_too_large_is_refused(broken: TestClient, told_length: bool) -> None:
    piece = b" " * 1024 * 1024
    content = piece * 5 if told_length else iter([piece] * 5)
    headers = {"Content-Type": "application/json"}
    answer = broken.post("/api/v1/sum", content=content, headers=headers)

    assert answer.status_code == 413
    assert answer.json()["error"] == "too-large"


def test_a_stranger_is_turned_away_whatever_the_body_is(anybody: TestClient) -> None:
    headers = {"Content-Type": "multipart/form-data; boundary=x"}
    answer = anybody.post("/api/v1/tokens", content=b"not a form at all", headers=headers)

    assert answer.status_code == 401


def test_a_session_that_ended_is_told_beside_the_text_being_written(
    anybody: TestClient,
) -> None:
    stands_in = {"HX-Current-URL": "http://127.0.0.1/incidents/7?tab=notes"}
    answer = anybody.post("/settings/password", headers=HTMX | stands_in)

    assert answer.status_code == 401
    assert answer.headers["hx-retarget"] == "#notice"
    assert 'href="/login?next=/incidents/7%3Ftab%3Dnotes"' in answer.text


def test_a_role_that_is_too_low_is_told_with_both_roles(reader: TestClient) -> None:
    assert "This needs the role admin; reader is reader." in reader.get("/audit").text


@pytest.mark.parametrize(
    ("given", "kept"),
    [
        ("abc-123", True),
        ("a" * 64, True),
        ("a" * 65, False),
        ("x y", False),
        ('"},{"event":"forged', False),
        ("", False),
    ],
)
def test_a_request_keeps_a_plain_number_from_the_proxy_and_no_other(
    anybody: TestClient, given: str, kept: bool
) -> None:
    told = anybody.get("/healthz", headers={"X-Request-ID": given}).headers["x-request-id"]

    assert (told == given) is kept
    assert told


def test_the_errors_of_the_store_pass_through_unchanged(app: FastAPI, reader: TestClient) -> None:
    @app.get("/api/v1/gone")
    def gone() -> None:
        raise NotFound("Incident 7 does not exist.", fix="Look at the list.")

    assert json.loads(reader.get("/api/v1/gone").text) == {
        "error": "not-found",
        "detail": "Incident 7 does not exist. Look at the list.",
    }
