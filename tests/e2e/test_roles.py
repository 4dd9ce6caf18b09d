"""Who sees and may do what, as a browser shows it."""

import pytest
from playwright.sync_api import Page, StorageState, expect

from tests.e2e.browsing import Visits, sign_in
from tests.e2e.conftest import Open

pytestmark = pytest.mark.browser

PLACES = (
    "/incidents/2", "/bundles/2", "/jobs/2", "/artifacts/2", "/reports/2", "/reports/2/shares",
    "/targets", "/targets/1", "/hosts", "/hosts/1", "/diagnostics/1", "/diagnostics/2",
)  # fmt: skip


@pytest.fixture
def reader(opened: Open) -> Page:
    return opened("/", by="rea")


def test_a_reader_finds_nothing_to_press(reader: Page) -> None:
    reader.goto("/")
    expect(reader.get_by_role("link", name="Open an incident")).to_have_count(0)
    for path in PLACES:
        reader.goto(path)
        expect(reader.locator("h1")).to_be_visible()
        assert reader.locator("main form[method=post]").count() == 0, path
        pressable = reader.locator("main button:not([disabled], [data-act])")
        assert pressable.count() == 0, path


@pytest.mark.parametrize(
    ("user", "origin"),
    [
        pytest.param("rea", "", id="a-reader-from-our-own-page"),
        pytest.param("mira", "https://evil.example", id="an-admin-from-a-foreign-page"),
    ],
)
def test_a_forged_request_changes_nothing(
    visits: Visits, console: str, cookies: dict[str, StorageState], user: str, origin: str
) -> None:
    page = visits.page(console, storage_state=cookies[user])

    answer = page.request.post(
        "/incidents/2/notes",
        form={"text": "a forged note"},
        headers={"Origin": origin or console},
    )

    assert answer.status == 403
    page.goto("/incidents/2?events=all")
    expect(page.locator("#story")).not_to_contain_text("a forged note")


def test_who_is_signed_out_comes_back_to_where_they_wanted(visits: Visits, console: str) -> None:
    page = visits.page(console)
    page.goto("/incidents/2?events=all")
    assert "/login?next=" in page.url

    sign_in(page, "rea")

    page.wait_for_url("**/incidents/2?events=all")
    page.get_by_role("button", name="Sign out").click()
    page.goto("/settings")
    assert "/login?next=" in page.url
