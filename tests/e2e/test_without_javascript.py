"""The same path where scripts are forbidden: every button is a form, every part a page."""

import re

import pytest
from playwright.sync_api import Page, StorageState, expect

from tests.e2e.browsing import Visits
from tests.e2e.wedged import slow_to_tell

pytestmark = pytest.mark.browser


def test_an_incident_is_worked_through_without_javascript(
    visits: Visits, console: str, cookies: dict[str, StorageState]
) -> None:
    page = visits.page(console, storage_state=cookies["mira"], java_script_enabled=False)
    with slow_to_tell(0) as target:
        incident = open_an_incident(page, target.base_url)
        collect(page)
    read_the_bundle(page)
    page.goto(incident)
    note(page)
    page.goto(share(page))
    expect(page.locator("article")).to_contain_text("shared copy, read only")


def test_the_heaviest_step_asks_for_the_name_of_the_host_without_javascript(
    visits: Visits, console: str, cookies: dict[str, StorageState]
) -> None:
    page = visits.page(console, storage_state=cookies["mira"], java_script_enabled=False)
    page.goto("/incidents/2")
    rung = page.locator("#rung-coredump")
    expect(rung.get_by_role("button", name="Take the coredump")).to_be_hidden()

    rung.get_by_text("Take…").click()
    expect(rung).to_contain_text("the process may end")
    rung.get_by_label("Type the host name").fill("gpu-41")
    rung.get_by_role("button", name="Take the coredump").click()

    expect(page.locator("main")).to_contain_text("on gpu-14 for a CUDA coredump")
    expect(page.locator("main")).to_contain_text("a process may end")


def open_an_incident(page: Page, base_url: str) -> str:
    """The URL of the incident, opened on a target that is registered first."""
    page.goto("/targets/new")
    page.get_by_label("Name", exact=True).fill("no-script")
    page.get_by_label("Base URL").fill(base_url)
    page.get_by_role("button", name="Register the target").click()
    page.get_by_role("link", name="Open an incident").first.click()
    page.get_by_label("What is wrong").fill("No script, no trouble")
    page.get_by_label("Collect a bundle of each at once").uncheck()
    page.get_by_role("button", name="Open the incident").click()
    page.wait_for_url(re.compile(r"/incidents/\d+$"))
    return page.url


def collect(page: Page) -> None:
    """Press the button, then load again until the bundle is whole."""
    page.locator("#ladder").get_by_role("button", name="Collect").click()
    verdict = page.get_by_role("region", name="Verdict")
    again = page.get_by_role("link", name="Load again to see how far it is")
    while not verdict.is_visible():
        expect(verdict.or_(again).first).to_be_visible()
        if again.is_visible():
            with page.expect_navigation():
                again.click()


def read_the_bundle(page: Page) -> None:
    verdict = page.get_by_role("region", name="Verdict")
    expect(verdict).to_contain_text("A probe produced a token")
    page.get_by_role("region", name="What answered").get_by_role("link").first.click()
    expect(page.get_by_role("heading", level=1)).to_contain_text("said this")


def note(page: Page) -> None:
    page.get_by_label("Note", exact=True).fill("Told without a script.")
    page.get_by_role("button", name="Add note").click()
    expect(page.locator("#timeline")).to_contain_text("Told without a script.")


def share(page: Page) -> str:
    """The link, as shown once."""
    page.get_by_role("link", name="Report").first.click()
    page.get_by_role("link", name="Share…").click()
    page.get_by_role("button", name="Make the link").click()
    return page.get_by_label("Link", exact=True).input_value()
