"""The browser's tab: its title and its icon carry the state, with a script and without one."""

import re
from itertools import combinations
from pathlib import Path

import pytest
from playwright.sync_api import Page, expect

from app.settings import Settings
from app.store.stores import Stores
from tests import make, situations
from tests.e2e.browsing import PASSWORD, Visits, sign_in
from tests.e2e.conftest import Open
from tests.integration.command_line import run
from tests.integration.test_serve import serving

pytestmark = pytest.mark.browser


def expect_tab(page: Page, title: str, icon: str) -> None:
    expect(page).to_have_title(re.compile(f"^{re.escape(title)}"))
    expect(page.locator("#tab-icon")).to_have_attribute("href", re.compile(rf"/{icon}\.svg\?v="))


def test_the_list_shows_in_its_tab_that_an_incident_began_to_fail(
    visits: Visits, tmp_path: Path
) -> None:
    run(tmp_path, "user", "create", "mira", "--role", "admin", "--password-stdin", stdin=PASSWORD)
    with serving(tmp_path, INCIDENT_CONSOLE_LOG_LEVEL="error") as (_, printed):
        page = visits.page(printed[0].split()[-1].rstrip("/"))
        page.goto("/login")
        sign_in(page, "mira")
        expect_tab(page, "No open incident", "favicon")
        stores = Stores.open(Settings(_env_file=None, data_dir=tmp_path, min_free_bytes=0))
        target = make.target(stores, "rollout-3")
        incident = make.incident(stores, "It is gone", target)
        make.bundle(stores, incident, target, situations.gone())
        stores.close()

        expect_tab(page, "(1 failing) 1 target does not serve", "favicon-failing")
        page.context.close()


@pytest.mark.parametrize(
    ("path", "title", "icon"),
    [
        pytest.param("/targets", "(", "favicon-failing", id="any-page"),
        pytest.param("/replays/1", "done · replay 1", "favicon-done", id="done"),
        pytest.param("/replays/4", "planned · replay 4", "favicon", id="planned"),
        pytest.param("/replays/6", "interrupted · replay 6", "favicon-stopped", id="cut-off"),
        pytest.param("/replays/7", "refused · replay 7", "favicon-stopped", id="held-back"),
        pytest.param("/jobs/1", "succeeded · collecting", "favicon-done", id="job"),
    ],
)
def test_the_tab_is_right_as_the_page_comes(opened: Open, path: str, title: str, icon: str) -> None:
    expect_tab(opened(path, by="rea", java_script_enabled=False), title, icon)


def test_icons_are_told_apart_by_shape_on_light_and_dark_tabs(opened: Open) -> None:
    """Each brings its own ground, whatever the tab's; without colour no two are alike."""
    page = opened("/targets")
    names = ("favicon", "favicon-failing", "favicon-running", "favicon-done", "favicon-stopped")

    shapes = page.evaluate(INK, [f"/static/{name}.svg" for name in names])

    for shape in shapes:
        assert 15 <= shape.count("1") <= 110, "neither lost on its ground nor all of it"
    for one, other in combinations(shapes, 2):
        assert sum(a != b for a, b in zip(one, other, strict=True)) >= 20


# At the size of a tab: which of 16 × 16 pixels are lighter than the icon's own ground.
INK = """async (paths) => Promise.all(paths.map(async (path) => {
  const image = new Image(16, 16);
  image.src = path;
  await image.decode();
  const canvas = Object.assign(document.createElement("canvas"), { width: 16, height: 16 });
  const brush = canvas.getContext("2d");
  brush.drawImage(image, 0, 0, 16, 16);
  const seen = brush.getImageData(0, 0, 16, 16).data;
  const light = (i) => (seen[4 * i] + seen[4 * i + 1] + seen[4 * i + 2]) / 3 > 100;
  return [...Array(256).keys()].map((i) => (light(i) ? "1" : "0")).join("");
}))"""
