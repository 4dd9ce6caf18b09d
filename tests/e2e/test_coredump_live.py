"""A CUDA coredump in a real browser: the name is typed, the file grows and is whole, live."""

from pathlib import Path

import httpx
import pytest
from playwright.sync_api import Page, expect

from tests.e2e.browsing import PASSWORD, Visits, sign_in
from tests.integration.command_line import run
from tests.integration.story import HOST, Console, Dumping, dumping, quick_agent, sha256_of
from tests.integration.test_serve import serving

pytestmark = pytest.mark.browser

MARK, IS_MARKED = "window.seen = true", "window.seen === true"


def test_a_coredump_is_confirmed_watched_and_downloaded(visits: Visits, tmp_path: Path) -> None:
    data_dir = tmp_path / "data"
    run(data_dir, "user", "create", "mira", "--role", "admin", "--password-stdin", stdin=PASSWORD)
    with (
        serving(data_dir, "--no-agent", INCIDENT_CONSOLE_LOG_LEVEL="error") as (_, printed),
        quick_agent(tmp_path / "agent") as agent,
        dumping(tmp_path / "server", "held") as server,
    ):
        url = printed[0].split()[-1].rstrip("/")
        page = visits.page(url)
        page.goto("/login")
        sign_in(page, "mira")
        page.wait_for_url(f"{url}/")
        with _as_the_browser(page, url) as client:
            console = Console(client)
            incident_id = console.incident(console.register(agent), server)
            page.goto(f"/incidents/{incident_id}")
            _type_the_name(page)
            _see_it_grow_and_end(page, server)
            assert server.said("received") == ["received 1"]
            [kept] = console.artifacts(incident_id)
            assert console.downloaded_sha256(kept["id"]) == sha256_of(server.dumps[0])
        page.get_by_role("link", name=f"artifact {kept['id']}").first.click()
        expect(page.locator("main")).to_contain_text(kept["sha256"])


def _as_the_browser(page: Page, url: str) -> httpx.Client:
    cookies = {str(one["name"]): str(one["value"]) for one in page.context.cookies()}
    headers = {"Origin": url}
    return httpx.Client(base_url=url, cookies=cookies, headers=headers, trust_env=False)


def _type_the_name(page: Page) -> None:
    """Another name is refused with this one; the right one leads to the diagnostic."""
    asked = page.locator("#confirm-coredump")
    asked.locator("summary").click()
    expect(asked).to_contain_text(HOST)
    typed = asked.get_by_label("Type the host name to go on")
    typed.fill("gpu-elsewhere")
    asked.get_by_role("button", name="Take the coredump").click()
    expect(page.locator("#notice")).to_contain_text(f"on {HOST} for a CUDA coredump")
    typed.fill(HOST)
    asked.get_by_role("button", name="Take the coredump").click()
    page.wait_for_url("**/diagnostics/1")


def _see_it_grow_and_end(page: Page, server: Dumping) -> None:
    """It grows on the page as it was loaded; once it has ended the page is drawn anew."""
    page.evaluate(MARK)
    row = page.locator("#coredumps tbody tr")
    expect(row).to_contain_text("growing")
    expect(row).to_contain_text("Still growing:")
    assert page.evaluate(IS_MARKED)
    server.let_end()
    expect(row).to_contain_text("complete")
    expect(page.locator("h1")).to_contain_text("Coredump of TP0: complete")
