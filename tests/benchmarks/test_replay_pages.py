"""Pages of a replay of 100,000 requests: none reads them all but the picture drawn apart."""

import shutil
import time
from collections.abc import Iterator
from pathlib import Path
from statistics import median

import pytest
from fastapi.testclient import TestClient

from app.main import create_app
from app.settings import Settings
from tests import kept_replays, make, recorded
from tests.benchmarks.table import row
from tests.conftest import BASE_URL, Prepared

pytestmark = pytest.mark.benchmark

OUTCOMES = 100_000
MOST_MS, MOST_PAGE_BYTES = 100.0, 200_000
MOST_PICTURE_MS = 2000.0
PAGES = [
    pytest.param("/replays/1", id="the replay"),
    pytest.param("/replays/1/progress", id="its progress"),
    pytest.param("/replays/1/outcomes", id="its outcomes"),
    pytest.param("/replays/1/outcomes?state=failed", id="those that failed"),
    pytest.param("/replays/1/outcomes?error=connection-refused&trial=1", id="those of a class"),
    pytest.param("/replays/1/outcomes?trial=1&from=99000", id="the last ones"),
    pytest.param("/incidents/1", id="its incident"),
]


@pytest.fixture(scope="module")
def browser(tmp_path_factory: pytest.TempPathFactory, prepared: Prepared) -> Iterator[TestClient]:
    folder: Path = tmp_path_factory.mktemp("replay")
    shutil.copy(prepared.file, folder / "console.sqlite")
    settings = Settings(_env_file=None, data_dir=folder, min_free_bytes=0, log_level="error")
    with TestClient(create_app(settings), BASE_URL, follow_redirects=False) as client:
        client.headers["Sec-Fetch-Site"] = "same-origin"
        client.cookies.set("session", prepared.cookies["operator"])
        stores = client.app.state.stores  # type: ignore[attr-defined]
        target = make.target(stores, "debug-1", clean=True)
        incident = make.incident(stores, "it crashes")
        dump = make.dump(stores, incident, recorded.crash_dump())
        trials = [kept_replays.outcomes(OUTCOMES, dies_at=60_000)]
        kept_replays.replay(stores, incident, dump, target, trials=trials)
        yield client


@pytest.mark.parametrize("path", PAGES)
def test_a_page_of_a_large_replay_is_quick_and_small(browser: TestClient, path: str) -> None:
    took, size = _median_ms(browser, path), len(browser.get(path).content)

    row(f"{path} of 100,000 outcomes", f"{took:.0f} ms, {size / 1000:.0f} kB",
        f"≤ {MOST_MS:g} ms, {MOST_PAGE_BYTES / 1000:g} kB")  # fmt: skip
    assert took <= MOST_MS
    assert size <= MOST_PAGE_BYTES


def test_its_picture_takes_a_moment_and_stays_small(browser: TestClient) -> None:
    path = "/replays/1/rest?trial=1&draw=1"
    took, size = _median_ms(browser, path, rounds=3), len(browser.get(path).content)

    row("the picture of 100,000 outcomes", f"{took:.0f} ms, {size / 1000:.0f} kB",
        f"≤ {MOST_PICTURE_MS:g} ms, {MOST_PAGE_BYTES / 1000:g} kB")  # fmt: skip
    assert took <= MOST_PICTURE_MS
    assert size <= MOST_PAGE_BYTES


def _median_ms(browser: TestClient, path: str, rounds: int = 9) -> float:
    assert browser.get(path).status_code == 200
    took = []
    for _ in range(rounds):
        started = time.perf_counter()
        browser.get(path)
        took.append((time.perf_counter() - started) * 1000)
    return median(took)
