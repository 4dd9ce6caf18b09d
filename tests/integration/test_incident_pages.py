"""The incident list and the pages of one incident, with htmx and without."""

import re
from datetime import UTC, datetime, timedelta

import pytest
from fastapi.testclient import TestClient

from app.domain.playbook import NoteAdded
from app.store import timeline
from app.store.audit import CONSOLE
from app.store.database import reading, writing
from app.store.incidents import get_incident, jobs_at_work
from app.store.stores import Stores
from tests import make, situations

NOW = datetime.now(UTC)
HTMX = {"HX-Request": "true"}


def heading(page: str) -> str:
    found = re.search(r"<h1>(.*?)</h1>", page)
    assert found is not None
    return found[1]


def rows(page: str) -> list[str]:
    return re.findall(r'id="incident-(\d+)"', page)


def test_an_empty_list_names_what_it_rests_on(reader: TestClient) -> None:
    page = reader.get("/")

    assert heading(page.text) == "No open incident"
    assert "No target is registered, so nothing is known about any server." in page.text


def test_the_title_of_the_list_is_the_finding(reader: TestClient, stores: Stores) -> None:
    for name in ("decode-a", "rollout-3"):
        target = make.target(stores, name)
        incident = make.incident(stores, f"{name} is down", target, at=NOW)
        make.bundle(stores, incident, target, situations.gone(), at=NOW)

    page = reader.get("/").text

    assert heading(page) == "2 targets do not serve"
    assert "decode-a, rollout-3" in page
    assert "0 of 2 targets served when last asked" in page
    assert "(2 failing)" in page


def test_one_target_that_fails_in_two_incidents_is_one_target(
    reader: TestClient, stores: Stores
) -> None:
    target = make.target(stores)
    for title in ("first", "second"):
        incident = make.incident(stores, title, target)
        make.bundle(
            stores,
            incident,
            target,
            situations.gone(),
            at=NOW + timedelta(seconds=incident.id or 0),
        )

    assert heading(reader.get("/").text) == "1 target does not serve"


def test_the_filter_stands_in_the_url_and_in_its_field(reader: TestClient, stores: Stores) -> None:
    make.incident(stores, "KV use climbs", severity="sev3")
    make.incident(stores, "TTFT is up", severity="sev2")

    page = reader.get("/?q=sev:3 climbs").text

    assert rows(page) == ["1"]
    assert 'value="sev:3 climbs"' in page
    assert "No incident matches" in reader.get("/?q=sev:4").text


def test_the_next_page_begins_where_this_one_ends(reader: TestClient, stores: Stores) -> None:
    for number in range(45):
        make.incident(stores, f"incident {number}")
    first = reader.get("/").text
    following = re.search(r'<a rel="next" href="([^"]+)"', first)
    assert following is not None

    second = reader.get(following[1].replace("&amp;", "&")).text

    assert rows(first) == [str(number) for number in range(45, 5, -1)]
    assert rows(second) == ["5", "4", "3", "2", "1"]
    assert 'rel="next"' not in second


@pytest.mark.parametrize("after", ["x", "WzFd", "WyJhIiwiYiIsImMiXQ", "W251bGwsbnVsbCxudWxsXQ"])
def test_a_place_that_is_none_of_ours_is_refused(reader: TestClient, after: str) -> None:
    assert reader.get("/", params={"after": after}).status_code == 422


def test_an_unchanged_list_is_not_sent_again(reader: TestClient, stores: Stores) -> None:
    make.incident(stores)
    fresh = reader.get("/incidents/list", headers=HTMX).text
    mark = re.search(r"mark=([0-9a-f]+)", fresh)
    assert mark is not None

    again = reader.get("/incidents/list", params={"mark": mark[1]}, headers=HTMX)
    held = reader.get("/incidents/changed", params={"mark": mark[1]}, headers=HTMX)
    make.incident(stores, "another")
    changed = reader.get("/incidents/changed", params={"mark": mark[1]}, headers=HTMX)

    assert again.status_code in (204, 200)  # 200 where a minute began in between
    assert "changed," not in held.text
    assert "1 changed," in changed.text
    assert "sort now" in changed.text


def test_an_incident_without_a_bundle_claims_nothing(operator: TestClient, stores: Stores) -> None:
    make.incident(stores, "Users wait", make.target(stores), at=NOW)

    page = operator.get("/incidents/1").text

    assert heading(page) == "Users wait"
    assert "verdict--unknown" in page
    assert "mark--good" not in page
    assert page.count("not asked") >= 4


@pytest.mark.parametrize(
    ("captures", "finding", "panel"),
    [
        pytest.param(situations.stuck, "decode-a is stuck: work is there and nothing moves", "bad"),
        pytest.param(situations.gone, "decode-a is gone: nothing listens there", "bad"),
        pytest.param(situations.quiet, "It is not known whether decode-a serves", "unknown"),
        pytest.param(situations.healthy, "decode-a serves", None),
    ],
    ids=["wedged", "gone", "unknown", "healthy"],
)
def test_the_title_of_an_incident_is_its_finding(
    reader: TestClient, stores: Stores, captures: situations.Maker, finding: str, panel: str | None
) -> None:
    target = make.target(stores)
    make.bundle(stores, make.incident(stores, "?", target, at=NOW), target, captures(), at=NOW)

    page = reader.get("/incidents/1").text

    assert heading(page) == finding
    assert (f'class="verdict verdict--{panel}"' if panel else 'class="verdict"') in page


def test_a_green_ready_over_a_dead_scheduler_is_not_green(
    reader: TestClient, stores: Stores
) -> None:
    target = make.target(stores)
    incident = make.incident(stores, "?", target, at=NOW)
    make.bundle(stores, incident, target, situations.stuck(), at=NOW)

    page = reader.get("/incidents/1").text

    assert "mark--good" not in page
    assert "proves nothing of the scheduler" in page
    assert "200, but frozen" in page
    assert "snapshot 15 min old" in page


def test_opening_an_incident_asks_for_a_bundle_of_each_target(
    operator: TestClient, stores: Stores
) -> None:
    for name in ("decode-a", "decode-b"):
        make.target(stores, name)

    answer = operator.post(
        "/incidents/new",
        data={
            "title": "Users wait",
            "severity": "sev2",
            "target_id": ["1", "2"],
            "collect": "true",
            "started_at": "2026-11-30 02:51:40",
            "tags": "night, ttft",
        },
    )

    assert (answer.status_code, answer.headers["location"]) == (303, "/incidents/1")
    with reading(stores.engine) as session:
        assert len(jobs_at_work(session, 1)) == 2
        incident = get_incident(session, 1)
        assert incident.started_at == datetime(2026, 11, 30, 2, 51, 40, tzinfo=UTC)
        assert incident.tags == ["night", "ttft"]
    assert "Collecting a bundle" in operator.get("/incidents/1").text


def test_an_incident_that_nothing_is_collected_for_has_no_job(
    operator: TestClient, stores: Stores
) -> None:
    make.target(stores)

    operator.post("/incidents/new", data={"title": "Users wait", "target_id": "1"})

    with reading(stores.engine) as session:
        assert not jobs_at_work(session, 1)


@pytest.mark.parametrize(
    ("form", "words"),
    [
        pytest.param({"title": " "}, "needs a title", id="no title"),
        pytest.param({"title": "x", "started_at": "noon"}, "not a time", id="no time"),
        pytest.param({"title": "x", "severity": "sev9"}, "no severity sev9", id="no severity"),
        pytest.param({"title": "x", "target_id": "9"}, "no target 9", id="no target"),
        pytest.param({"title": "x", "tags": "t" * 41}, "tags", id="a long tag"),
    ],
)
def test_what_cannot_be_opened_is_refused_in_words(
    operator: TestClient, form: dict[str, str], words: str
) -> None:
    answer = operator.post("/incidents/new", data=form)

    assert answer.status_code == 422
    assert words in answer.text


def test_acknowledging_makes_whoever_pressed_the_one_who_is_on_it(
    operator: TestClient, stores: Stores
) -> None:
    make.incident(stores)

    answer = operator.post("/incidents/1/take", headers=HTMX)

    assert (answer.status_code, answer.headers["HX-Redirect"]) == (204, "/incidents/1")
    with reading(stores.engine) as session:
        incident = get_incident(session, 1)
        assert (incident.state, incident.assignee) == ("acknowledged", "operator")


def test_a_resolved_incident_does_not_open_again(operator: TestClient, stores: Stores) -> None:
    make.incident(stores)
    operator.post("/incidents/1/state", data={"state": "resolved"})

    answer = operator.post("/incidents/1/state", data={"state": "open"})

    assert answer.status_code == 409
    assert "open a new incident" in answer.text


def test_editing_sets_what_was_typed_and_leaves_the_class_to_the_rules(
    operator: TestClient, stores: Stores
) -> None:
    make.incident(stores)

    operator.post(
        "/incidents/1/edit", data={"title": "TTFT doubled", "severity": "sev1", "assignee": "lin"}
    )

    with reading(stores.engine) as session:
        incident = get_incident(session, 1)
        assert (incident.title, incident.severity, incident.assignee) == (
            "TTFT doubled",
            "sev1",
            "lin",
        )
        assert incident.problem_class_by is None


def test_a_reader_sees_everything_and_presses_nothing(reader: TestClient, stores: Stores) -> None:
    make.incident(stores, "Users wait", make.target(stores))

    page = reader.get("/incidents/1").text

    assert re.findall(r'<form[^>]* action="(/(?!logout)[^"]*)"', page) == ["/"]  # the search
    for path in ("state", "take", "edit", "notes", "timeline/1/pin"):
        form = {"state": "resolved", "title": "x", "text": "x", "pinned": "true"}
        assert reader.post(f"/incidents/1/{path}", data=form).status_code == 403
    assert reader.get("/incidents/new").status_code == 403
    assert reader.post("/incidents/new", data={"title": "x"}).status_code == 403


def test_hostile_text_stays_text(operator: TestClient, stores: Stores) -> None:
    evil = '"><script>alert(1)</script>\x1b[2J'
    target = make.target(stores, name="<b>x</b>")
    make.incident(stores, evil, target, tags=("<i>",), assignee="<u>")
    operator.post("/incidents/1/notes", data={"text": evil})

    for path in ("/", "/incidents/1", "/incidents/1/edit", "/targets", "/targets/1"):
        page = operator.get(path).text
        for tag in ("<script>alert", "<b>x", "<i>", "<u>"):
            assert tag not in page
        if path in ("/", "/incidents/1"):
            assert "\x1b" not in page


def test_a_page_with_hundreds_of_events_stays_small(reader: TestClient, stores: Stores) -> None:
    target = make.target(stores)
    incident = make.incident(stores, "?", target, at=NOW)
    make.bundle(stores, incident, target, situations.stuck(), at=NOW)
    with writing(stores.engine) as session:
        for number in range(400):
            timeline.record(
                session,
                NoteAdded(f"{number}: " + "router drained the target, traffic moved on. " * 4),
                incident_id=1,
                actor=CONSOLE,
                at=NOW + timedelta(seconds=number),
            )

    assert len(reader.get("/incidents/1").content) < 60_000


@pytest.mark.parametrize("number", ["0", "7", str(2**63), "9" * 40])
def test_a_number_without_an_incident_is_404(reader: TestClient, number: str) -> None:
    assert reader.get(f"/incidents/{number}").status_code == 404
