"""What every answer carries, and how long it may be kept."""

import re

import pytest
from fastapi.testclient import TestClient

from app.web.links import fingerprint


@pytest.mark.parametrize("path", ["/login", "/settings", "/nothing", "/api/v1/nothing", "/healthz"])
def test_every_answer_has_the_security_headers(operator: TestClient, path: str) -> None:
    headers = operator.get(path).headers
    policy = headers["content-security-policy"]

    assert "default-src 'self'" in policy
    assert "object-src 'none'" in policy
    assert "frame-ancestors 'none'" in policy
    assert "unsafe" not in policy
    assert headers["x-content-type-options"] == "nosniff"
    assert headers["referrer-policy"] == "same-origin"
    assert headers["cross-origin-opener-policy"] == "same-origin"
    assert headers["cross-origin-resource-policy"] == "same-origin"
    assert headers["cache-control"] == "no-store"
    assert "camera=()" in headers["permissions-policy"]
    assert "server" not in headers
    assert "strict-transport-security" not in headers


def test_a_page_names_its_files_by_their_hash(anybody: TestClient) -> None:
    page = anybody.get("/login").text
    files = re.findall(r'(?:src|href)="(/static/[^"]+)"', page)

    assert len(files) >= 4
    for file in files:
        answer = anybody.get(file)
        assert answer.status_code == 200
        assert answer.headers["cache-control"] == "public, max-age=31536000, immutable"


@pytest.mark.parametrize("query", ["", "?v=", "?v=000000000000"])
def test_without_the_right_hash_a_file_is_asked_for_again(anybody: TestClient, query: str) -> None:
    assert fingerprint("console.css") != "000000000000"
    answer = anybody.get(f"/static/console.css{query}")

    assert answer.headers["cache-control"] == "no-cache"
    again = anybody.get(
        f"/static/console.css{query}", headers={"If-None-Match": answer.headers["etag"]}
    )
    assert again.status_code == 304


@pytest.mark.parametrize(
    "path",
    ["/static/../pyproject.toml", "/static/%2e%2e/pyproject.toml", "/static//etc/passwd"],
)
def test_nothing_outside_the_folder_is_served(anybody: TestClient, path: str) -> None:
    answer = anybody.get(path)

    assert answer.status_code in (303, 404)
    assert "incident-console" not in answer.text


@pytest.mark.parametrize(
    ("cookie", "told"), [("dark", 'data-theme="dark"'), ("light", 'data-theme="light"')]
)
def test_the_theme_is_printed_from_a_cookie(anybody: TestClient, cookie: str, told: str) -> None:
    anybody.cookies.set("theme", cookie)
    assert told in anybody.get("/login").text


def test_a_theme_that_is_none_is_not_printed(anybody: TestClient) -> None:
    anybody.cookies.set("theme", "x onload")
    assert "data-theme" not in anybody.get("/login").text
    assert "onload" not in anybody.get("/login").text
