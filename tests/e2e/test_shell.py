"""The shell in a real browser, under the real content security policy."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.integration.test_cli_users import run
from tests.integration.test_serve import serving

playwright = pytest.importorskip("playwright.sync_api", reason="playwright is not installed")
CHROMIUM = Path("/usr/bin/chromium")
FLAGS = ["--no-sandbox", "--disable-gpu", "--no-first-run", "--disable-background-networking"]

pytestmark = [
    pytest.mark.browser,
    pytest.mark.skipif(not CHROMIUM.exists(), reason="there is no Chromium here"),
]


@pytest.fixture(scope="module")
def console(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    folder = tmp_path_factory.mktemp("data")
    stdin = "correct horse battery\n"
    run(folder, "user", "create", "mira", "--role", "admin", "--password-stdin", stdin=stdin)
    with serving(folder, "--no-worker") as (_, printed):
        yield printed[0].split()[-1].rstrip("/")


def test_the_shell_works_by_keys_and_without_one_complaint_of_the_browser(console: str) -> None:
    complaints: list[str] = []
    with playwright.sync_playwright() as play:
        browser = play.chromium.launch(executable_path=str(CHROMIUM), args=FLAGS)
        page = browser.new_page(viewport={"width": 390, "height": 844})
        page.on("console", lambda told: complaints.append(told.text))
        page.on("pageerror", lambda error: complaints.append(str(error)))

        page.goto(f"{console}/settings")
        page.fill("#name", "mira")
        page.fill("#password", "correct horse battery")
        page.keyboard.press("Enter")
        page.wait_for_url(f"{console}/settings")
        assert page.evaluate("document.documentElement.scrollWidth <= innerWidth")

        page.keyboard.press("?")
        assert page.locator("#keys dl").inner_text().count("g i") == 1
        page.keyboard.press("Escape")
        page.keyboard.press("g")
        page.keyboard.press("a")
        page.wait_for_url(f"{console}/audit")

        page.click("[data-act=theme]")
        chosen = page.evaluate("document.documentElement.dataset.theme")
        page.reload()
        assert page.locator("html").get_attribute("data-theme") == chosen
        browser.close()

    errors = [told for told in complaints if "[DOM]" not in told]
    assert errors == []


def test_an_error_lands_in_its_place_and_goes_away_by_key(console: str) -> None:
    with playwright.sync_playwright() as play:
        browser = play.chromium.launch(executable_path=str(CHROMIUM), args=FLAGS)
        page = browser.new_page()
        page.goto(f"{console}/login?next=/settings")
        page.fill("#name", "mira")
        page.fill("#password", "correct horse battery")
        page.click("text=Sign in >> nth=-1")
        page.wait_for_url(f"{console}/settings")

        page.fill("#present", "not the present one")
        page.fill("#fresh", "battery staple horse")
        page.click("text=Change my password")
        notice = page.locator("#notice[role=alert]")
        notice.wait_for()
        assert "The present password does not fit." in notice.inner_text()
        assert page.input_value("#fresh") == "battery staple horse"  # nothing typed is lost

        page.locator("h1").click()
        page.keyboard.press("Escape")
        assert page.locator("#notice").inner_text().strip() == ""
        browser.close()
