"""Every route that changes something, asked by somebody who may not."""

import re

import pytest
from fastapi import FastAPI
from fastapi.routing import APIRoute, iter_route_contexts
from fastapi.testclient import TestClient

from app.web.access import OPEN
from app.web.origin import SAFE_METHODS
from tests.conftest import BASE_URL

FOR_EVERYONE = ("/logout", "/settings/password", *OPEN)  # or about nobody but oneself


def changing(app: FastAPI) -> list[tuple[str, str]]:
    """(method, path) of every route that changes something and asks who it is."""
    return sorted(
        (method, re.sub(r"\{[^}]*\}", "1", context.path or ""))
        for context in iter_route_contexts(app.routes)
        if isinstance(context.original_route, APIRoute)
        for method in set(context.methods or ()) - SAFE_METHODS
        if not (context.path or "").startswith(FOR_EVERYONE)
    )


def test_a_reader_can_press_nothing(app: FastAPI, reader: TestClient) -> None:
    routes = changing(app)
    statuses = {route: reader.request(*route).status_code for route in routes}

    assert len(routes) > 30
    assert [route for route, status in statuses.items() if status != 403] == []


def test_a_stranger_can_press_nothing(app: FastAPI, anybody: TestClient) -> None:
    let_in = [
        route for route in changing(app) if anybody.request(*route).status_code not in (401, 303)
    ]

    assert let_in == []


@pytest.mark.parametrize("kind", ["text/plain", "application/x-www-form-urlencoded", "text/html"])
def test_another_site_can_press_nothing_as_an_admin_who_is_signed_in(
    app: FastAPI, admin: TestClient, kind: str
) -> None:
    headers = {"Content-Type": kind, "Sec-Fetch-Site": "cross-site", "Origin": "http://evil.test"}
    statuses = {
        route: admin.request(*route, headers=headers, content=b"name=x").status_code
        for route in [*changing(app), ("POST", "/logout")]
    }

    assert [route for route, status in statuses.items() if status != 403] == []
    assert admin.get(f"{BASE_URL}/settings").status_code == 200
