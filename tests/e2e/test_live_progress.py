"""Progress that is followed live: what the page does when it cannot be, and after a crash."""

import re
from collections.abc import Callable
from pathlib import Path

import pytest
from playwright.sync_api import Page, Route, StorageState, expect

from tests.e2e.browsing import PASSWORD, Visits, sign_in
from tests.e2e.wedged import slow_to_tell
from tests.integration.command_line import run
from tests.integration.processes import kill
from tests.integration.test_serve import serving
from tests.ports import free_port
from tests.waiting import until

pytestmark = pytest.mark.browser

SERVES = "A probe produced a token"
# What Chromium and htmx write when a connection is refused or breaks: here it should.
BROKEN = ("net::ERR_", "Failed to fetch", "network error")
QUIET = {"INCIDENT_CONSOLE_LOG_LEVEL": "error"}


def collecting(page: Page, name: str, base_url: str) -> None:
    """Register a target and have its bundle collected."""
    page.goto("/targets/new")
    page.get_by_label("Name", exact=True).fill(name)
    page.get_by_label("Base URL").fill(base_url)
    page.get_by_role("button", name="Register the target").click()
    page.get_by_role("link", name="Open an incident").first.click()
    page.get_by_label("What is wrong").fill(f"{name} is slow to tell")
    page.get_by_role("button", name="Open the incident").click()


@pytest.mark.parametrize(
    "spoil",
    [
        pytest.param(lambda route: route.abort(), id="the-connection-breaks"),
        pytest.param(
            lambda route: route.fulfill(status=502, body="<h1>Bad gateway</h1>"),
            id="a-proxy-answers-instead",
        ),
    ],
)
def test_without_a_stream_the_page_asks_and_says_so(
    visits: Visits,
    console: str,
    cookies: dict[str, StorageState],
    spoil: Callable[[Route], None],
) -> None:
    page = visits.page(console, storage_state=cookies["mira"])
    page.route("**/jobs/*/events", spoil)
    with slow_to_tell(4.5) as target:
        collecting(page, f"without-a-stream-{target.port}", target.base_url)
        progress = page.locator("#progress")
        expect(progress).to_contain_text("asked every 3 s: live updates cannot be had")
        expect(page.get_by_role("region", name="Verdict")).to_contain_text(SERVES)
    visits.forgive(*BROKEN, "status of 502")


def test_a_server_that_is_killed_and_started_again_loses_nothing(
    visits: Visits, tmp_path: Path
) -> None:
    run(tmp_path, "user", "create", "mira", "--role", "admin", "--password-stdin", stdin=PASSWORD)
    port = str(free_port())
    with slow_to_tell(4.5) as target:
        with serving(tmp_path, "--port", port, **QUIET) as (process, printed):
            page = visits.page(printed[0].split()[-1].rstrip("/"))
            page.goto("/login")
            sign_in(page, "mira")
            collecting(page, "gpu-15", target.base_url)
            cancel = page.get_by_role("button", name="Cancel the job")
            cancel.focus()
            expect(page.locator("#progress")).to_contain_text(re.compile(r"[3-9] of 10 done"))
            expect(cancel).to_be_focused()  # the part around it was drawn anew meanwhile
            until(lambda: "/server_info" in target.paths())
            kill(process)
        with serving(tmp_path, "--port", port, **QUIET):
            verdict = page.get_by_role("region", name="Verdict")
            expect(verdict).to_contain_text(SERVES)
            page.context.close()
    asked = [path.partition("?")[0] for path in target.paths()]
    assert asked.count("/ready") == 1
    assert asked.count("/server_info") in (1, 2), "again where no answer had come before the kill"
    visits.forgive(*BROKEN)
