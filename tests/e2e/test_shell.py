"""The shell in a real browser, under the real content security policy."""

import pytest
from playwright.sync_api import expect

from tests.e2e.conftest import Open

pytestmark = pytest.mark.browser


def test_the_shell_works_by_keys_and_remembers_the_theme(opened: Open) -> None:
    page = opened("/settings", viewport={"width": 390, "height": 844})

    page.keyboard.press("?")
    expect(page.get_by_role("dialog")).to_be_visible()
    assert page.locator("#keys dl").inner_text().count("g i") == 1
    page.keyboard.press("Escape")
    page.keyboard.press("g")
    page.keyboard.press("a")
    page.wait_for_url("**/audit")

    page.click("[data-act=theme]")
    chosen = page.evaluate("document.documentElement.dataset.theme")
    page.reload()
    expect(page.locator("html")).to_have_attribute("data-theme", chosen)


def test_an_error_lands_in_its_place_and_goes_away_by_key(opened: Open) -> None:
    page = opened("/settings")

    page.fill("#present", "not the present one")
    page.fill("#fresh", "battery staple horse")
    page.click("text=Change my password")
    notice = page.locator("#notice[role=alert]")
    notice.wait_for()
    assert "The present password does not fit." in notice.inner_text()
    assert page.input_value("#fresh") == "battery staple horse"  # nothing typed is lost

    page.locator("h1").click()
    page.keyboard.press("Escape")
    expect(page.locator("#notice")).to_have_text("")


@pytest.mark.parametrize("width", [730, 800, 1000, 1130])
def test_the_masthead_breaks_into_lines_rather_than_push_the_page_sideways(
    opened: Open, width: int
) -> None:
    page = opened("/replays", viewport={"width": width, "height": 800})

    assert page.evaluate("document.documentElement.scrollWidth - innerWidth") == 0
    expect(page.get_by_role("button", name="Sign out")).to_be_in_viewport()
