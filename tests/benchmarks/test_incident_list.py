"""The incident list over 10 000 incidents and 1 000 000 timeline events, on SQLite."""

import shutil
import time
from collections.abc import Iterator
from dataclasses import dataclass
from datetime import timedelta
from pathlib import Path
from statistics import median

import pytest
from fastapi.testclient import TestClient
from sqlalchemy import Engine, event, insert

from app.domain.urgency import Rank
from app.main import create_app
from app.settings import Settings
from app.store.database import open_database
from app.store.stores import Stores
from app.store.tables import Incident, IncidentTarget, Target, TimelineEvent
from tests.conftest import BASE_URL, Prepared
from tests.make import NOON

pytestmark = pytest.mark.benchmark

INCIDENTS = 10_000
EVENTS_EACH = 100
OPEN = 2_000  # the others are resolved
PAGES = 60
MOST_QUERIES = 6  # the session of the reader counted
MOST_PAGE_BYTES = 60_000


@dataclass
class Counted:
    """Statements sent to one engine, BEGIN and ROLLBACK left out."""

    queries: int = 0

    def watch(self, engine: Engine) -> None:
        event.listen(engine, "before_cursor_execute", self._count)

    def _count(self, _c: object, _cursor: object, statement: str, *_: object) -> None:
        self.queries += not statement.startswith(("BEGIN", "ROLLBACK", "COMMIT"))


@pytest.fixture(scope="module")
def full(prepared: Prepared, tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("full")
    shutil.copy(prepared.file, folder / "console.sqlite")
    engine = open_database(f"sqlite:///{folder / 'console.sqlite'}")
    with engine.execution_options(writes=True).begin() as connection:
        connection.execute(insert(Target), [_target(number) for number in range(1, 23)])
        connection.execute(insert(Incident), [_incident(n) for n in range(1, INCIDENTS + 1)])
        links = [{"incident_id": n, "target_id": n % 22 + 1} for n in range(1, INCIDENTS + 1)]
        connection.execute(insert(IncidentTarget), links)
        for start in range(1, INCIDENTS + 1, 500):
            rows = [_event(n, k) for n in range(start, start + 500) for k in range(EVENTS_EACH)]
            connection.execute(insert(TimelineEvent), rows)
    engine.dispose()
    return folder


def _target(number: int) -> dict[str, object]:
    seen = {"at": NOON.isoformat(), "verdict": "healthy", "model": "qwen3", "topology": "TP8"}
    return {
        "id": number,
        "name": f"decode-{number}",
        "base_url": f"http://10.0.0.{number}:30000",
        "engine": "auto",
        "clean": False,
        "watch": False,
        "coredump_when_wedged": False,
        "labels": {},
        "created_at": NOON,
        "updated_at": NOON,
        "seen": seen,
    }


def _incident(number: int) -> dict[str, object]:
    opened_at = NOON + timedelta(minutes=number)
    is_open = number > INCIDENTS - OPEN
    rank = (Rank.UNKNOWN, Rank.SLOW, Rank.QUIET, Rank.QUIET)[number % 4]
    says = f"First tokens took {number % 60} s on average, of which 0.01 s in the queue."
    return {
        "id": number,
        "title": f"Slow first tokens, once more ({number})",
        "severity": f"sev{number % 4 + 1}",
        "state": ("open", "acknowledged", "mitigated")[number % 3] if is_open else "resolved",
        "assignee": "operator" if number % 7 == 0 else None,
        "tags": ["ttft"],
        "opened_by": "mira",
        "opened_at": opened_at,
        "acknowledged_at": opened_at,
        "changed_at": opened_at,
        "rank": (Rank.FAILING if number % 200 == 0 else rank) if is_open else Rank.RESOLVED,
        "verdict": "healthy",
        "headline": {"id": "ttft", "says": says, "status": "supported", "level": "warn"},
        "targets_told": f"decode-{number % 22 + 1}",
        "artifact_count": 3,
    }


def _event(incident_id: int, number: int) -> dict[str, object]:
    at = NOON + timedelta(minutes=incident_id, seconds=number)
    return {
        "incident_id": incident_id,
        "kind": "NoteAdded",
        "detail": {"text": f"Seen again, the {number}th time, with the queue empty as before."},
        "actor": "mira",
        "occurred_at": at,
        "recorded_at": at,
        "system": number % 3 == 0,
    }


@pytest.fixture(scope="module")
def browser(full: Path, prepared: Prepared) -> Iterator[TestClient]:
    settings = Settings(_env_file=None, data_dir=full, min_free_bytes=0, log_level="error")
    with TestClient(create_app(settings), BASE_URL, follow_redirects=False) as client:
        client.headers["Sec-Fetch-Site"] = "same-origin"
        client.cookies.set("session", prepared.cookies["operator"])
        yield client


@pytest.mark.parametrize(
    "path",
    [
        pytest.param("/", id="open"),
        pytest.param("/?state=unacknowledged", id="unacknowledged"),
        pytest.param("/?state=mine", id="mine"),
        pytest.param("/?state=resolved", id="resolved"),
        pytest.param("/?state=all", id="all"),
        pytest.param("/?q=target:decode-7", id="by target"),
        pytest.param("/?state=all&q=once+more", id="by words"),
        pytest.param("/incidents/9800", id="one incident"),
    ],
)
def test_a_page_takes_few_queries_and_little_time(browser: TestClient, path: str) -> None:
    stores: Stores = browser.app.state.stores  # type: ignore[attr-defined]
    counted = Counted()
    page = browser.get(path)
    counted.watch(stores.engine)
    browser.get(path)
    queries = counted.queries
    walls, spent = [], time.process_time()
    for _ in range(PAGES):
        start = time.perf_counter()
        browser.get(path)
        walls.append(time.perf_counter() - start)
    cpu_ms = (time.process_time() - spent) / PAGES * 1000
    print(  # noqa: T201  (the table is what a benchmark is for)
        f"\n{path:28} {queries:2} queries  p50 {median(walls) * 1000:5.1f} ms  "
        f"CPU {cpu_ms:5.1f} ms (client included)  {len(page.content) / 1000:5.1f} kB"
    )

    assert page.status_code == 200
    assert len(page.content) < MOST_PAGE_BYTES
    if path.startswith("/?") or path == "/":
        assert queries <= MOST_QUERIES


def test_the_list_over_the_full_database_costs_little_more_than_an_empty_one(
    browser: TestClient,
) -> None:
    def seconds(path: str) -> float:
        start = time.process_time()
        for _ in range(PAGES):
            browser.get(path)
        return time.process_time() - start

    seconds("/")
    # 40 rows are drawn on one page and none on the other: what is left is the drawing.
    assert seconds("/?state=open") < 6 * seconds("/?q=sev:sev9")
