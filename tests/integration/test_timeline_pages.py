"""The timeline on an incident's page: notes, pins, folding, live, older parts."""

import re
from datetime import UTC, datetime, timedelta

from fastapi.testclient import TestClient

from app.domain.playbook import NoteAdded, StepRequested
from app.store import timeline
from app.store.audit import CONSOLE
from app.store.database import writing
from app.store.stores import Stores
from tests import make

TODAY = datetime.now(UTC).replace(hour=12, minute=0, second=0, microsecond=0)
NOON = TODAY - timedelta(days=1)
HTMX = {"HX-Request": "true"}


def note(stores: Stores, text: str, *, minutes: float = 0, system: bool = False) -> int:
    event = StepRequested("CollectBundle", 1) if system else NoteAdded(text)
    with writing(stores.engine) as session:
        row = timeline.record(
            session, event, incident_id=1, actor=CONSOLE, at=NOON + timedelta(minutes=minutes)
        )
    assert row.id is not None
    return row.id


def moments(page: str) -> list[str]:
    return [text.strip() for text in re.findall(r'moment__told">(.*?)(?:<|$)', page)]


def test_a_note_stands_where_it_happened(operator: TestClient, stores: Stores) -> None:
    make.incident(stores, at=NOON)

    operator.post("/incidents/1/notes", data={"text": "Drained it."})
    operator.post(
        "/incidents/1/notes",
        data={"text": "Deployed.", "occurred_at": f"{NOON - timedelta(hours=1):%Y-%m-%d %H:%M}"},
    )

    told = moments(operator.get("/incidents/1").text)
    assert set(told) == {"Drained it.", "Opened: TTFT is up", "Deployed."}
    assert told[-1] == "Deployed."


def test_an_empty_note_is_refused(operator: TestClient, stores: Stores) -> None:
    make.incident(stores)

    answer = operator.post("/incidents/1/notes", data={"text": "  "}, headers=HTMX)

    assert answer.status_code == 422
    assert answer.headers["HX-Retarget"] == "#notice"


def test_pins_stand_above_and_only_there(operator: TestClient, stores: Stores) -> None:
    make.incident(stores, at=NOON)
    event_id = note(stores, "TP5 is outside the collective.", minutes=1)
    note(stores, "Later.", minutes=2)

    operator.post(f"/incidents/1/timeline/{event_id}/pin", data={"pinned": "true"})
    pinned = moments(operator.get("/incidents/1").text)
    operator.post(f"/incidents/1/timeline/{event_id}/pin", data={"pinned": "false"})
    unpinned = moments(operator.get("/incidents/1").text)

    assert pinned == ["TP5 is outside the collective.", "Later.", "Opened: TTFT is up"]
    assert unpinned == ["Later.", "TP5 is outside the collective.", "Opened: TTFT is up"]


def test_an_event_of_another_incident_cannot_be_pinned(
    operator: TestClient, stores: Stores
) -> None:
    make.incident(stores)
    make.incident(stores)

    answer = operator.post("/incidents/2/timeline/1/pin", data={"pinned": "true"})

    assert answer.status_code == 404


def test_system_events_are_folded_and_counted(reader: TestClient, stores: Stores) -> None:
    make.incident(stores, at=NOON)
    for number in range(3):
        note(stores, "", minutes=1 + number, system=True)
    note(stores, "Seen.", minutes=5)
    note(stores, "", minutes=6, system=True)

    folded = reader.get("/incidents/1").text
    whole = reader.get("/incidents/1?events=all").text

    assert "4 system events hidden" in folded
    assert "3 system events between" in folded
    assert moments(folded) == ["Seen.", "Opened: TTFT is up"]
    assert len(moments(whole)) == 6


def test_the_onset_stands_between_its_neighbours(reader: TestClient, stores: Stores) -> None:
    make.incident(stores, at=NOON, started_at=NOON - timedelta(minutes=9))
    note(stores, "Before.", minutes=-20)

    told = moments(reader.get("/incidents/1").text)

    assert told == [
        "Opened: TTFT is up",
        "It began, as told when the incident was opened.",
        "Before.",
    ]


def test_only_what_is_new_is_sent(reader: TestClient, stores: Stores) -> None:
    make.incident(stores, at=NOON)
    page = reader.get("/incidents/1").text
    asks = re.search(r'id="newer"[^>]*hx-get="([^"]+)"', page)
    assert asks is not None

    before = reader.get(asks[1], headers=HTMX)
    note(stores, "News.", minutes=3)
    after = reader.get(asks[1], headers=HTMX)

    assert before.status_code == 204
    assert moments(after.text) == ["News."]
    assert after.text.lstrip().startswith('<li id="newer"')
    again = re.search(r'hx-get="([^"]+)"', after.text)
    assert again is not None
    assert reader.get(again[1], headers=HTMX).status_code == 204


def test_older_parts_follow_without_a_gap_or_a_double(reader: TestClient, stores: Stores) -> None:
    make.incident(stores, at=NOON, started_at=NOON + timedelta(minutes=30.5))
    for number in range(1, 100):
        note(stores, f"note {number}", minutes=number)

    part = reader.get("/incidents/1").text
    told = moments(part)
    while older := re.search(r'id="older".*?hx-get="([^"]+)"', part):
        part = reader.get(older[1], headers=HTMX).text
        told += moments(part)

    onset = "It began, as told when the incident was opened."
    expected = [f"note {number}" for number in range(99, 0, -1)]
    expected.insert(expected.index("note 30"), onset)
    assert told == [*expected, "Opened: TTFT is up"]


def test_older_events_are_reached_without_script(reader: TestClient, stores: Stores) -> None:
    make.incident(stores, at=NOON)
    for number in range(1, 60):
        note(stores, f"note {number}", minutes=number)
    link = re.search(r'id="older"><a href="([^"#]+)', reader.get("/incidents/1").text)
    assert link is not None

    assert moments(reader.get(link[1]).text)[0] == "note 19"


def test_a_fragment_opened_by_hand_leads_to_the_page(reader: TestClient, stores: Stores) -> None:
    make.incident(stores)

    answer = reader.get("/incidents/1/timeline")

    assert (answer.status_code, answer.headers["location"]) == (303, "/incidents/1")
