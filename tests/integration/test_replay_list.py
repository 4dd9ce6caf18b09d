"""The page of all replays: newest first, in parts, and as many questions for forty as for one."""

import re

import pytest
from fastapi.testclient import TestClient
from sqlalchemy import event
from sqlmodel import select

from app.store.database import reading, writing
from app.store.dump_tables import Dump
from app.store.replay_list import newest_replays
from app.store.stores import Stores
from app.store.tables import Incident, Replay, Target
from tests import kept_replays, make, recorded

pytestmark = pytest.mark.slow


@pytest.fixture
def incident(stores: Stores) -> Incident:
    return make.incident(stores, "rollout-3 <b>refuses</b>", make.target(stores, "rollout-3"))


@pytest.fixture
def dump(stores: Stores, incident: Incident) -> Dump:
    return make.dump(stores, incident, recorded.crash_dump(20, 1))


@pytest.fixture
def clean(stores: Stores) -> Target:
    return make.target(stores, "debug-1", clean=True)


def _shown(page: str) -> list[int]:
    return [int(one) for one in re.findall(r'<tr id="replay-(\d+)"', page)]


def test_where_nothing_was_replayed_it_is_said_how_one_is_asked_for(reader: TestClient) -> None:
    page = reader.get("/replays").text

    assert "<h1>No replay was asked for yet</h1>" in page
    assert "Attach the requests to the incident" in page
    assert re.search(r'href="/replays" data-key="g p" aria-current="page">Replays</a>', page)


def test_a_row_says_what_it_found_where_for_which_incident_and_when(
    reader: TestClient, stores: Stores, incident: Incident, dump: Dump, clean: Target
) -> None:
    died = [kept_replays.outcomes(30, dies_at=12)]
    kept_replays.replay(stores, incident, dump, clean, trials=died)
    kept_replays.replay(stores, incident, dump, clean, state="planned")

    page = reader.get("/replays").text

    assert _shown(page) == [2, 1]
    row = page.split('<tr id="replay-1"')[1].split("</tr>")[0]
    assert "The crash came back on debug-1" in row
    assert "reproduced</span>" in row
    assert '<a href="/incidents/1">1</a> rollout-3 &lt;b&gt;refuses&lt;/b&gt;' in row
    assert "by lin" in row
    assert "1 of 2 shown at work, or waiting for a person" in page


def test_more_than_a_page_goes_on_where_it_ended_whatever_came_meanwhile(
    reader: TestClient, stores: Stores, incident: Incident, dump: Dump, clean: Target
) -> None:
    for _ in range(45):
        kept_replays.replay(stores, incident, dump, clean, state="planned", size=1)

    first = reader.get("/replays").text
    (older,) = re.findall(r'href="(/replays\?before=\d+)" rel="next"', first)
    kept_replays.replay(stores, incident, dump, clean, state="planned", size=1)
    second = reader.get(older).text

    assert _shown(first) == list(range(45, 5, -1))
    assert _shown(second) == [5, 4, 3, 2, 1]
    assert 'rel="next"' not in second
    assert 'href="/replays">Newest</a>' in second
    assert "There are no older ones" in reader.get("/replays?before=1").text
    assert reader.get(f"/replays?before={2**63}").status_code == 422


def test_a_deleted_target_keeps_its_name_and_forty_cost_two_questions(
    stores: Stores, incident: Incident, dump: Dump, clean: Target
) -> None:
    good = make.target(stores, "debug-good", clean=True)
    for _ in range(20):
        kept_replays.replay(stores, incident, dump, good, clean, state="planned", size=1)
    with writing(stores.engine) as session:
        session.get_one(Target, clean.id).deleted_at = make.NOON
    questions: list[str] = []
    with reading(stores.engine) as session:
        session.exec(select(Replay.id)).all()
        event.listen(
            stores.engine, "before_cursor_execute", lambda *told: questions.append(told[2])
        )
        found = newest_replays(session, limit=40)

    assert {tuple(one.targets) for one in found} == {("debug-good", "debug-1")}
    assert sum(one.startswith("SELECT") for one in questions) == 2
    assert not any("replay.plans" in one for one in questions)
