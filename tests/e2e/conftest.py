"""One Chromium and one seeded console for all stories.

Their scope is the package, not the whole run: while Playwright is open, its event loop counts
as running in this thread, and tests elsewhere start their own.
"""

from collections.abc import Callable, Iterator
from typing import Any

import pytest
from playwright.sync_api import Browser, Page, StorageState

from tests import seed
from tests.e2e.browsing import Visits, chromium, sign_in
from tests.integration.test_serve import serving


@pytest.fixture(scope="package")
def browser() -> Iterator[Browser]:
    with chromium() as browser:
        yield browser


@pytest.fixture(scope="package")
def console(browser: Browser, tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    """The base URL of a console full of incidents, with the users mira (admin) and rea (reader)."""
    folder = tmp_path_factory.mktemp("seeded")
    seed.main(folder)
    with serving(folder, INCIDENT_CONSOLE_LOG_LEVEL="error") as (_, printed):
        yield printed[0].split()[-1].rstrip("/")


@pytest.fixture
def visits(browser: Browser) -> Iterator[Visits]:
    """Opens pages; the test fails for whatever they complain of."""
    visits = Visits(browser)
    yield visits
    visits.end()


@pytest.fixture(scope="package")
def cookies(browser: Browser, console: str) -> dict[str, StorageState]:
    """What the browser keeps of each signed-in user."""
    kept = {}
    for name in ("mira", "rea"):
        page = browser.new_page(base_url=console)
        page.goto("/settings")
        sign_in(page, name)
        page.wait_for_url(f"{console}/settings")
        kept[name] = page.context.storage_state()
        page.close()
    return kept


Open = Callable[..., Page]


@pytest.fixture
def opened(visits: Visits, console: str, cookies: dict[str, StorageState]) -> Open:
    """Opens a path of the seeded console as a user: ``opened("/", by="rea", **options)``."""

    def open_page(path: str, *, by: str = "mira", **options: Any) -> Page:
        page = visits.page(console, storage_state=cookies[by], **options)
        page.goto(path)
        return page

    return open_page
