"""Every page, on a phone and on a desk: nothing sideways, everything named, no complaint."""

from collections.abc import Iterator

import pytest
from playwright.sync_api import Browser, Page, StorageState

from tests.e2e.browsing import PHONE, Visits

pytestmark = pytest.mark.browser

PAGES = {
    "incidents": "/",
    "all-incidents": "/?state=all",
    "no-incident": "/?q=nothing-like-this",
    "new-incident": "/incidents/new",
    "incident": "/incidents/2",
    "incident-without-bundle": "/incidents/6",
    "incident-all-events": "/incidents/2?events=all",
    "edit-incident": "/incidents/2/edit",
    "targets": "/targets",
    "target": "/targets/1",
    "new-target": "/targets/new",
    "edit-target": "/targets/1/edit",
    "hosts": "/hosts",
    "host": "/hosts/1",
    "host-that-is-silent": "/hosts/2",
    "new-host": "/hosts/new",
    "stacks": "/diagnostics/1",
    "first-sample": "/diagnostics/1?sample=1",
    "coredump": "/diagnostics/2",
    "cpu-profile": "/diagnostics/3",
    "stacks-unfolded-by-line": "/diagnostics/1?fold=none&by=line",
    "incident-with-dumps": "/incidents/3",
    "dump": "/dumps/1",
    "dump-filtered": "/dumps/1?state=unfinished&sort=-prompt_tokens",
    "dump-nothing-like-this": "/dumps/1?rid=nobody",
    "dump-that-is-cut-off": "/dumps/3",
    "recorded-request": "/dumps/1/requests/70",
    "dumps-compared": "/dumps/1/compare/2",
    "requests-chosen": "/dumps/1/choice?pick=3&select=state%3Dunfinished",
    "choice-that-is-none": "/dumps/1/choice?select=everything",
    "replays": "/replays",
    "older-replays": "/replays?before=4",
    "no-older-replay": "/replays?before=1",
    "replay-of-a-crash": "/replays/1",
    "replay-of-two-sides": "/replays/2",
    "replay-planned": "/replays/4",
    "replay-running": "/replays/5",
    "replay-cut-off": "/replays/6",
    "replay-held-back": "/replays/7",
    "replay-outcomes": "/replays/1/outcomes?state=failed",
    "new-replay": "/incidents/3/replays/new?dump=4&select=343",
    "new-replay-of-what": "/incidents/3/replays/new",
    "bundle": "/bundles/2",
    "bundle-of-a-target-that-is-gone": "/bundles/3",
    "capture": "/bundles/2/captures/loads_all_1?at=/loads/0",
    "comparison": "/bundles/2/diff/1",
    "job": "/jobs/2",
    "artifact": "/artifacts/2",
    "report": "/reports/2",
    "edit-report": "/reports/2?edit=best_guess",
    "choose-class": "/reports/2?edit=problem_class",
    "share": "/reports/2/shares",
    "settings": "/settings",
    "audit": "/audit",
    "not-found": "/incidents/9999",
}

SIDEWAYS = "document.documentElement.scrollWidth - innerWidth"

# What is wrong with a page, in words, by its own markup.
FAULTS = """() => {
  const faults = [], all = (what) => [...document.querySelectorAll(what)];
  const name = (part) => part.outerHTML.slice(0, 120);
  if (document.documentElement.lang !== "en") faults.push("no language");
  if (all("h1").length !== 1) faults.push(`${all("h1").length} h1`);
  if (all("main").length !== 1) faults.push(`${all("main").length} main`);
  const ids = all("[id]").map((part) => part.id);
  ids.filter((id, i) => ids.indexOf(id) !== i).forEach((id) => faults.push(`id twice: ${id}`));
  all("input:not([type=hidden]), select, textarea").forEach((part) => {
    if (!part.labels.length && !part.ariaLabel && part.ariaHidden !== "true")
      faults.push(`no label: ${name(part)}`);
  });
  all("svg, img").forEach((part) => {
    const said = part.ariaLabel || part.alt;
    if (part.ariaHidden !== "true" && !said) faults.push(`no name: ${name(part)}`);
  });
  all("button, a[href], summary").forEach((part) => {
    if (!part.textContent.trim() && !part.ariaLabel) faults.push(`no name: ${name(part)}`);
  });
  all("[aria-labelledby], [aria-describedby]").forEach((part) => {
    for (const how of ["aria-labelledby", "aria-describedby"])
      for (const id of (part.getAttribute(how) ?? "").split(" "))
        if (id && !document.getElementById(id)) faults.push(`points at nothing: ${id}`);
  });
  all("[style], style, script:not([src])").forEach((part) => faults.push(`inline: ${name(part)}`));
  return faults;
}"""

SMALL_BUTTONS = """() => {
  const height = (part) => part.getBoundingClientRect().height;
  return [...document.querySelectorAll("button, .button")]
    .filter((part) => part.checkVisibility() && height(part) < 43.9)
    .map((part) => `${part.textContent.trim()}: ${height(part)} px`);
}"""


@pytest.fixture(scope="module")
def visits(browser: Browser) -> Iterator[Visits]:
    """One for all pages: a new profile for each would cost more than looking at it."""
    visits = Visits(browser)
    yield visits
    visits.end()


@pytest.fixture(scope="module")
def page(visits: Visits, console: str, cookies: dict[str, StorageState]) -> Page:
    return visits.page(console, storage_state=cookies["mira"], **PHONE)


@pytest.fixture(scope="module")
def stranger(visits: Visits, console: str) -> Page:
    return visits.page(console, **PHONE)


def _look_at(page: Page, path: str) -> None:
    page.set_viewport_size({"width": 390, "height": 844})
    page.goto(path)
    assert page.evaluate(FAULTS) == []
    assert page.evaluate(SIDEWAYS) == 0
    assert page.evaluate(SMALL_BUTTONS) == []
    page.set_viewport_size({"width": 1280, "height": 800})
    assert page.evaluate(SIDEWAYS) == 0


@pytest.mark.parametrize("path", PAGES.values(), ids=PAGES.keys())
def test_a_page_fits_thumb_and_desk_and_names_its_parts(
    visits: Visits, page: Page, path: str
) -> None:
    _look_at(page, path)
    visits.check()


@pytest.mark.parametrize("path", ["/login?next=/targets", "/s/no-such-link", "/setup/no-such-link"])
def test_so_does_a_page_for_people_who_are_not_signed_in(
    visits: Visits, stranger: Page, path: str
) -> None:
    _look_at(stranger, path)
    visits.check()
