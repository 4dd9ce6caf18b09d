"""By keys alone, and what a live page may not do to the hand on it."""

import pytest
from playwright.sync_api import expect

from tests.e2e.browsing import PHONE
from tests.e2e.conftest import Open

pytestmark = pytest.mark.browser


def test_the_list_is_walked_filtered_and_opened_by_keys(opened: Open) -> None:
    page = opened("/")
    rows = page.locator("[data-row]")

    page.keyboard.press("j")
    page.keyboard.press("j")
    expect(rows.nth(1).get_by_role("link")).to_be_focused()
    page.keyboard.press("k")
    expect(page.locator("[data-here]")).to_have_count(1)
    expect(rows.nth(0).get_by_role("link")).to_be_focused()
    page.keyboard.press("/")
    expect(page.locator("#q")).to_be_focused()
    page.keyboard.type("jonas")  # its j, o and n are letters now
    expect(page.locator("#q")).to_have_value("jonas")
    page.locator("h1").click()
    page.keyboard.press("?")
    expect(page.get_by_role("dialog")).to_contain_text("next row")
    page.keyboard.press("Escape")
    page.keyboard.press("o")
    page.wait_for_url("**/incidents/*")


def test_the_skip_link_leads_past_the_masthead(opened: Open) -> None:
    page = opened("/incidents/2")

    page.keyboard.press("Tab")
    expect(page.get_by_role("link", name="Skip to content")).to_be_focused()
    page.keyboard.press("Enter")
    page.keyboard.press("Tab")

    page.wait_for_function("document.activeElement.closest('main') !== null")


def test_a_bundle_is_asked_for_by_one_key(opened: Open) -> None:
    page = opened("/incidents/6")

    page.keyboard.press("e")

    expect(page.locator("#progress")).to_contain_text("Collecting a bundle from gateway-b")


def test_stacks_are_taken_by_one_key_and_their_samples_switched_by_number(opened: Open) -> None:
    page = opened("/diagnostics/1")
    page.keyboard.press("2")
    page.wait_for_url("**/diagnostics/1?sample=2*")
    expect(page.get_by_role("link", name="Sample 2")).to_have_attribute("aria-current", "page")
    page.keyboard.press("u")
    page.wait_for_url("**/incidents/2")

    page.keyboard.press("s")

    page.wait_for_url("**/diagnostics/*")
    # Nobody answers for the seeded host: the page that follows the job ends by saying so.
    expect(page.locator("h1")).to_contain_text("0 of 8 ranks read")


def test_hosts_are_reached_by_keys(opened: Open) -> None:
    page = opened("/")

    page.keyboard.press("g")
    page.keyboard.press("h")

    page.wait_for_url("**/hosts")
    expect(page.locator("h1")).to_contain_text("host")


def test_what_is_being_typed_survives_what_arrives_meanwhile(opened: Open) -> None:
    page, colleague = opened("/incidents/4"), opened("/incidents/4")
    note = page.get_by_label("Note", exact=True)
    note.fill("half a sen")

    colleague.get_by_label("Note", exact=True).fill("The cache was cleared.")
    colleague.keyboard.press("Enter")

    expect(page.locator("#timeline")).to_contain_text("The cache was cleared.")
    expect(note).to_be_focused()
    page.keyboard.type("tence")
    expect(note).to_have_value("half a sentence")


def test_a_field_that_was_resized_by_hand_may_be_replaced(opened: Open) -> None:
    page, colleague = (opened("/reports/5?edit=best_guess") for _ in range(2))
    claim = "One claim, one sentence"
    colleague.get_by_label(claim).fill("The gateway lost its lease.")
    colleague.get_by_role("button", name="Write the claim").click()
    expect(colleague.locator("article")).to_contain_text("lost its lease")
    page.get_by_label(claim).fill("The lease was never taken.")
    page.get_by_label(claim).evaluate("field => { field.style.height = '200px' }")

    page.get_by_role("button", name="Write the claim").click()

    expect(page.locator("#clash")).to_contain_text("lost its lease")
    expect(page.get_by_label(claim)).to_have_value("The lease was never taken.")


def test_the_thumb_finds_the_three_actions_of_the_night(opened: Open) -> None:
    page = opened("/incidents/4", **PHONE)
    actions = page.get_by_role("group", name="Quick actions")

    expect(actions).to_be_in_viewport()
    expect(actions.locator("a, button")).to_have_count(3)
    page.mouse.wheel(0, 2000)
    expect(actions).to_be_in_viewport()
