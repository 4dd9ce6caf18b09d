"""From nothing to a shared report, as an on-call engineer walks it, in a real browser."""

import re
from pathlib import Path
from urllib.parse import urlsplit

import pytest
from playwright.sync_api import Page, expect

from tests.e2e.browsing import PASSWORD, Visits
from tests.e2e.wedged import wedged
from tests.integration.test_serve import serving

pytestmark = pytest.mark.browser

TOKEN = "sk-of-the-target-8f2c"
NOTE = "Router drained gpu-14; mira called the owner at http://gpu-14.prod.example:30000"
# The page that wears this was not loaded anew since.
MARK, IS_MARKED = "window.seen = true", "window.seen === true"


def test_from_nothing_to_a_shared_report_that_is_revoked(visits: Visits, tmp_path: Path) -> None:
    with (
        wedged() as target,
        serving(tmp_path / "data", INCIDENT_CONSOLE_LOG_LEVEL="error") as (process, printed),
    ):
        assert process.stdout is not None
        link = process.stdout.readline().split()[-1]
        console = printed[0].split()[-1].rstrip("/")
        page = visits.page(console)
        become_the_first_admin(page, link)
        register_a_target(page, target.base_url)
        open_an_incident(page)
        see_captures_land(page)
        see_the_note_of_a_colleague(page)
        see_answers_land(page)
        read_the_verdict(page)
        follow_a_chip_into_the_raw_answer(page)
        pin_the_note(page)
        write_a_hypothesis_and_choose_the_class(page)
        shared = share(page)
        read_as_a_stranger(visits.page(console), shared, (target.base_url, console))
        revoke(page)
        stranger = visits.page(console)
        answer = stranger.goto(shared)
        assert answer is not None
        assert answer.status == 404
        expect(stranger.get_by_role("heading", level=1)).to_have_text(
            "Nothing opens under this link"
        )


def become_the_first_admin(page: Page, link: str) -> None:
    page.goto(link)
    page.get_by_label("Name").fill("mira")
    page.get_by_label("Password").fill(PASSWORD)
    page.get_by_role("button", name="Make the first admin").click()
    expect(page.get_by_role("heading", name="No open incident", level=1)).to_be_visible()


def register_a_target(page: Page, base_url: str) -> None:
    page.get_by_role("link", name="Register a target").click()
    page.get_by_role("link", name="Register the first target").click()
    page.get_by_label("Name", exact=True).fill("gpu-14")
    page.get_by_label("Base URL").fill(base_url)
    page.get_by_label("Token (API key)").fill(TOKEN)
    expect(page.get_by_label("Check the connection once")).to_be_checked()
    page.get_by_role("button", name="Register the target").click()
    expect(page.get_by_role("heading", level=1)).to_have_text("gpu-14 was never asked")
    expect(page.get_by_text("Whether it serves was not asked.")).to_be_visible()
    assert TOKEN not in page.content()


def open_an_incident(page: Page) -> None:
    page.get_by_role("link", name="Open an incident").first.click()
    page.get_by_label("What is wrong").fill("gpu-14 answers but generates nothing")
    expect(page.get_by_label("Collect a bundle of each at once")).to_be_checked()
    page.get_by_label("Severity").select_option("SEV1")
    page.get_by_role("button", name="Open the incident").click()
    page.wait_for_url("**/incidents/1")


def see_captures_land(page: Page) -> None:
    """The count rises while the page stays the same one."""
    page.evaluate(MARK)
    progress = page.locator("#progress")
    expect(progress).to_contain_text("Collecting a bundle from gpu-14")
    expect(progress).to_contain_text(re.compile(r"[3-9] of 10 done"))
    assert page.evaluate(IS_MARKED)


def see_the_note_of_a_colleague(page: Page) -> None:
    """What is noted in another window arrives in this one, which stays the same."""
    colleague = page.context.new_page()
    colleague.goto("/incidents/1")
    colleague.get_by_label("Note", exact=True).fill(NOTE)
    colleague.keyboard.press("Enter")
    expect(colleague.locator("#timeline")).to_contain_text("Router drained")
    colleague.close()
    expect(page.locator("#timeline li", has_text="Router drained")).to_be_visible()
    assert page.evaluate(IS_MARKED)


def see_answers_land(page: Page) -> None:
    """The table of the bundle grows without the page being loaded anew."""
    page.goto("/bundles/1")
    page.evaluate(MARK)
    silent = page.locator("#answers tbody tr", has_text="/server_info")
    expect(silent).to_contain_text("timeout")
    expect(page.locator("#answers")).to_contain_text("still asking")
    assert page.evaluate(IS_MARKED)


def read_the_verdict(page: Page) -> None:
    """When the bundle is whole the page is drawn anew, with its verdict."""
    verdict = page.get_by_role("region", name="Verdict")
    expect(verdict).to_be_visible()
    expect(page.locator("#signals tbody tr").first).to_be_visible()
    page.goto("/incidents/1")
    expect(page.locator("h1")).not_to_have_text("gpu-14 answers but generates nothing")
    expect(page.locator(".title__facts")).to_contain_text("wedged")


def follow_a_chip_into_the_raw_answer(page: Page) -> None:
    page.locator(".verdict .chip").first.click()
    page.wait_for_url("**/captures/**")
    expect(page.locator("#place mark")).to_be_visible()
    expect(page.locator("#place mark")).to_be_in_viewport()
    page.go_back()
    page.wait_for_url("**/incidents/1")


def pin_the_note(page: Page) -> None:
    told = page.locator("#timeline li", has_text="Router drained")
    told.get_by_role("button", name="pin").click()
    expect(page.get_by_role("list", name="Pinned")).to_contain_text("Router drained")


def write_a_hypothesis_and_choose_the_class(page: Page) -> None:
    page.get_by_role("link", name="Report").first.click()
    page.get_by_role("link", name="edit").first.click()
    page.get_by_label("One claim, one sentence").fill("A collective of gpu-14 waits for one rank.")
    page.get_by_role("button", name="Write the claim").click()
    expect(page.locator("article")).to_contain_text("A collective of gpu-14 waits for one rank.")
    page.get_by_role("link", name="choose").click()
    page.get_by_role("combobox", name="Problem class").select_option("hang/timeout")
    page.get_by_role("button", name="Set the class").click()
    expect(page.get_by_role("combobox", name="Problem class")).to_have_count(0)
    expect(page.locator("#problem_class")).to_contain_text("Hang/timeout.")


def share(page: Page) -> str:
    """The link, as shown once."""
    page.get_by_role("link", name="Share…").click()
    expect(page.get_by_role("region", name="What they will see")).to_contain_text("[left out]")
    page.get_by_role("button", name="Make the link").click()
    return page.get_by_label("Link", exact=True).input_value()


def read_as_a_stranger(page: Page, link: str, addresses: tuple[str, ...]) -> None:
    page.goto(link)
    expect(page.locator("article")).to_contain_text("waits for one rank")
    content = page.content()
    hosts = [urlsplit(address).netloc for address in addresses]
    for secret in ("gpu-14", "mira", TOKEN, *addresses, *hosts):
        assert secret not in content
    assert page.context.cookies() == []


def revoke(page: Page) -> None:
    page.get_by_role("button", name="Revoke").click()
    expect(page.get_by_role("region", name="Links of this report")).to_contain_text("revoked")
