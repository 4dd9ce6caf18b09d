"""A crash dump from its upload to the text of its suspect; a reader stays outside of it."""

import re
from pathlib import Path
from typing import Any

import pytest
from playwright.sync_api import Page, expect

from tests import recorded
from tests.e2e.browsing import PHONE
from tests.e2e.conftest import Open

pytestmark = pytest.mark.browser

WORDS = "what the patient wrote"
REASON = "does the image bring it down?"


@pytest.fixture
def crash(tmp_path: Path) -> Path:
    """3000 requests, two unfinished, one of these with an image."""
    requests = [recorded.request(number) for number in range(2998)]
    requests.append(recorded.request(2998, finished=False))
    image: dict[str, Any] = {"image_data": ["data:image/png;base64,"], "text": WORDS}
    requests.append(recorded.request(2999, finished=False, **image))
    file = tmp_path / "crash_dump_2026-11-30_02-31-07.pkl"
    file.write_bytes(recorded.dump(requests))
    return file


def _attach(page: Page, file: Path) -> None:
    page.get_by_label("Attach a file").set_input_files(file)
    page.get_by_role("button", name="Attach", exact=True).click()
    page.wait_for_url(re.compile(r"/dumps/\d+"))


def test_a_crash_dump_from_upload_to_the_text_of_its_suspect(opened: Open, crash: Path) -> None:
    page = opened("/incidents/8")
    _attach(page, crash)
    heading = page.get_by_role("heading", level=1)
    expect(heading).to_contain_text("2 of 3,000 requests were unfinished")  # once it was read
    expect(page.locator("#progress")).to_have_count(0)

    suspects = page.locator("#suspects")
    expect(suspects.locator("tbody tr").first).to_contain_text("may be the trigger")
    suspects.get_by_role("link", name="2999").first.click()
    expect(heading).to_contain_text("Request 2999 was unfinished")
    expect(page.get_by_role("main")).not_to_contain_text(WORDS)

    page.get_by_role("button", name="Unseal as recorded (T2)").click()  # without a reason: stays
    expect(page.get_by_label("Why you need it")).to_be_focused()
    page.get_by_label("Why you need it").fill(REASON)
    page.get_by_role("button", name="Unseal as recorded (T2)").click()
    expect(page.locator("#text")).to_contain_text(WORDS)
    with page.expect_download() as download:
        page.get_by_role("button", name="Download request 2999").click()
    assert WORDS in download.value.path().read_text()

    page.goto("/audit")
    for action in ("dump.unseal", "dump.export"):
        row = page.get_by_role("row").filter(has_text=action).first
        expect(row).to_contain_text(REASON)


def test_requests_are_ticked_sorted_and_chosen_without_javascript(opened: Open) -> None:
    page = opened("/dumps/1?state=unfinished", java_script_enabled=False)
    page.get_by_label("Order").select_option("longest prompt first")
    page.get_by_role("button", name="Show").click()
    page.get_by_label("Choose request 65").check()
    page.get_by_label("Choose these too").fill("0:2")
    page.get_by_role("button", name="Choose…").click()
    heading = page.get_by_role("heading", level=1)
    expect(heading).to_have_text("3 of 71 requests are chosen: 2 finished, 1 unfinished")
    with page.expect_download() as download:
        page.get_by_role("button", name="Download 3 requests").click()
    assert len(download.value.path().read_text().splitlines()) == 3


def test_a_reader_on_a_phone_finds_the_suspect_and_no_way_to_its_text(opened: Open) -> None:
    page = opened("/incidents/3", by="rea", **PHONE)
    page.get_by_role("link", name="Open the dump").click()
    page.locator("#suspects").get_by_role("link").first.click()
    expect(page.locator("#text")).to_contain_text("needs the role operator")
    expect(page.get_by_role("button", name=re.compile("Unseal"))).to_have_count(0)
