"""Pages of dumps: what is seen by whom, what is opened for a reason, and what is noted of it."""

import re
from collections.abc import Iterator
from typing import Any

import orjson
import pytest
from fastapi.testclient import TestClient
from sqlmodel import select

from app.store.database import reading, writing
from app.store.dump_tables import Dump
from app.store.evidence import attach, purge
from app.store.stores import Stores
from app.store.tables import AuditEvent, Incident
from tests import make, recorded

SECRET = "the patient said \x1b[31m<script>alert(1)</script>"
LONG = "x" * 50_000


@pytest.fixture
def incident(stores: Stores) -> Incident:
    return make.incident(stores)


@pytest.fixture
def dump(stores: Stores, incident: Incident) -> Dump:
    """60 requests; 58 and 59 unfinished, the last with an image and a text that is hostile."""
    image: dict[str, Any] = {"image_data": ["data:image/png;base64,"], "rid": "<b>photo</b>"}
    image["text"] = SECRET
    requests = [recorded.request(one) for one in range(58)]
    requests += [recorded.request(58, finished=False, text=LONG)]
    return make.dump(
        stores, incident, recorded.dump([*requests, recorded.request(59, finished=False, **image)])
    )


def _noted(stores: Stores, action: str) -> list[AuditEvent]:
    with reading(stores.engine) as session:
        return list(session.exec(select(AuditEvent).where(AuditEvent.action == action)))


def _unseal(client: TestClient, dump: Dump, index: int, **typed: str) -> tuple[int, str]:
    answer = client.post(f"/dumps/{dump.id}/requests/{index}", data=typed)
    return answer.status_code, answer.text


def test_the_page_of_a_dump_is_a_finding_with_suspects_first(
    reader: TestClient, dump: Dump
) -> None:
    page = reader.get(f"/dumps/{dump.id}").text
    title = re.search(r"<h1>(.*?)</h1>", page)
    assert title is not None
    assert title[1].startswith("2 of 60 requests were unfinished when the server wrote this; ")
    assert "request 59 is the only one with an image" in title[1]
    assert page.index('id="suspects"') < page.index('id="requests"')
    assert "may be the trigger" in page
    assert recorded.IO_STRUCT in page  # what was kept inert
    assert "sk-FAKE-1" not in page
    assert 'class="plot__warn"' in page
    assert "&lt;b&gt;photo&lt;/b&gt;" in page
    assert "the patient" not in page


def _rows(page: str) -> list[int]:
    return [int(one) for one in re.findall(r'name="pick" value="(\d+)"', page)]


@pytest.mark.parametrize(
    ("asked", "indexes", "counted"),
    [
        pytest.param("", list(range(50)), "60", id="all"),
        pytest.param("state=unfinished", [58, 59], "2 of 60", id="state"),
        pytest.param("feature=multimodal", [59], "1 of 60", id="feature"),
        pytest.param("rid=0a", [10], "1 of 60", id="part-of-an-identifier"),
        pytest.param("state=unfinished&suspect=1&rid=pho", [59], "1 of 60", id="several"),
        pytest.param("state=nonsense&sort=nonsense", list(range(50)), "60", id="unknown-words"),
        pytest.param("rid=%25", [], "0 of 60", id="no-wildcard"),
        pytest.param("sort=-started_at&state=unfinished", [59, 58], "2 of 60", id="sorted"),
    ],
)
def test_the_table_shows_what_was_asked_for_and_how_many_that_are(
    reader: TestClient, dump: Dump, asked: str, indexes: list[int], counted: str
) -> None:
    page = reader.get(f"/dumps/{dump.id}?{asked}").text
    assert _rows(page) == indexes
    assert f'<span class="count">{counted}</span>' in page


@pytest.mark.parametrize("sort", ["index", "-elapsed_seconds", "-prompt_tokens", "started_at"])
def test_links_lead_through_all_pages_of_the_table(
    reader: TestClient, dump: Dump, sort: str
) -> None:
    seen, query = [], f"?sort={sort}"
    while query:
        page = reader.get(f"/dumps/{dump.id}{query}").text
        seen += _rows(page)
        found = re.search(r'href="(\?[^"]*)#requests">Next', page)
        query = found[1].replace("&amp;", "&") if found else ""
    assert sorted(seen) == list(range(60))


def test_a_cursor_that_is_not_ours_is_malformed(reader: TestClient, dump: Dump) -> None:
    assert reader.get(f"/dumps/{dump.id}?after=WzFd").status_code == 422


def test_a_reader_sees_the_shape_of_a_request_and_no_word_of_it(
    reader: TestClient, stores: Stores, dump: Dump
) -> None:
    page = reader.get(f"/dumps/{dump.id}/requests/59").text
    assert "Request 59 was unfinished after 1.5 s, a prompt of 8" in page
    assert "temperature" in page
    assert "needs the role operator" in page
    assert "the patient" not in page
    assert "Unseal" not in page
    status, refused = _unseal(reader, dump, 59, tier="T1", reason="to see what it was")
    assert (status, "the patient" in refused) == (403, False)
    assert _noted(stores, "dump.unseal") == []


def test_text_is_unsealed_for_a_reason_noted_and_harmless(
    operator: TestClient, stores: Stores, dump: Dump
) -> None:
    answer = operator.post(
        f"/dumps/{dump.id}/requests/59", data={"tier": "T2", "reason": "did the image do it?"}
    )
    assert answer.status_code == 200
    assert answer.headers["Cache-Control"] == "no-store"
    assert "the patient said \\x1b[31m&lt;script&gt;alert(1)&lt;/script&gt;" in answer.text
    assert "\x1b" not in answer.text
    [noted] = _noted(stores, "dump.unseal")
    assert noted.actor == "user:operator"
    assert noted.subject == f"dump:{dump.id}"
    assert noted.detail["reason"] == "did the image do it?"
    assert (noted.detail["index"], noted.detail["tier"]) == (59, "T2")


@pytest.mark.parametrize(
    "typed",
    [{"tier": "T2"}, {"tier": "T2", "reason": "no"}, {"tier": "T0", "reason": "to see"}],
    ids=["no-reason", "short", "no-such-tier"],
)
def test_without_a_reason_nothing_is_opened(
    operator: TestClient, stores: Stores, dump: Dump, typed: dict[str, str]
) -> None:
    status, page = _unseal(operator, dump, 59, **typed)
    assert (status, "the patient" in page) == (422, False)
    assert _noted(stores, "dump.unseal") == []


def test_a_long_text_is_shown_in_part_and_says_what_is_left(
    operator: TestClient, dump: Dump
) -> None:
    _, page = _unseal(operator, dump, 58, tier="T2", reason="how long is it")
    assert "50\u202f000 characters" in page
    assert "Show more, 38\u202f000 characters" in page
    assert "10\u202f000 characters more are in the download only" in page
    assert page.count("x" * 2_000) == 1 + 38_000 // 2_000


def test_what_came_around_a_request_is_beside_it(reader: TestClient, dump: Dump) -> None:
    page = reader.get(f"/dumps/{dump.id}/requests/30").text
    around = page[page.index('id="around-h"') :]
    assert re.findall(r"/requests/(\d+)\"", around) == [str(one) for one in range(26, 35)]


def test_ticked_requests_and_an_expression_are_one_choice(reader: TestClient, dump: Dump) -> None:
    page = reader.get(f"/dumps/{dump.id}/choice?pick=3&pick=4&select=state=unfinished").text
    assert "4 of 60 requests are chosen: 2 finished, 2 unfinished" in page
    assert ">3:5,state=unfinished</textarea>" in page
    assert re.findall(r"/requests/(\d+)\"", page) == ["3", "4", "58", "59"]
    assert "incident-console dump export crash.pkl --out requests.jsonl --tier T0" in page


@pytest.mark.parametrize(
    ("select", "status", "says"),
    [
        pytest.param("", 200, "Nothing is chosen yet", id="nothing"),
        pytest.param("99:", 200, "No request of dump", id="no-request"),
        pytest.param("all", 422, "“all” names no request.", id="no-term"),
    ],
)
def test_a_choice_that_means_nothing_says_why(
    reader: TestClient, dump: Dump, select: str, status: int, says: str
) -> None:
    answer = reader.get(f"/dumps/{dump.id}/choice", params={"select": select})
    assert answer.status_code == status
    assert says in answer.text
    assert "Download" not in answer.text


def _lines(client: TestClient, dump: Dump, **typed: str) -> Iterator[dict[str, object]]:
    url = f"/dumps/{dump.id}/choice"
    answer = (
        client.post(url, data=typed)
        if "tier" in typed
        else client.get(f"{url}/shapes", params=typed)
    )
    assert answer.status_code == 200
    assert "attachment" in answer.headers["Content-Disposition"]
    for line in answer.text.splitlines():
        yield orjson.loads(line)


def test_a_reader_downloads_shapes_and_an_operator_text(
    reader: TestClient, operator: TestClient, stores: Stores, dump: Dump
) -> None:
    shapes = list(_lines(reader, dump, select="59,0"))
    assert [(one["index"], one["tier"]) for one in shapes] == [(0, "T0"), (59, "T0")]
    assert "patient" not in str(shapes)
    [text] = _lines(operator, dump, select="59", tier="T2", reason="to reproduce it")
    assert "patient" in str(text["payload"])
    assert len(list(_lines(reader, dump, select="0:"))) == 60
    noted = [(one.actor, one.detail["tier"]) for one in _noted(stores, "dump.export")]
    assert noted == [("user:reader", "T0"), ("user:operator", "T2"), ("user:reader", "T0")]


@pytest.mark.parametrize(
    ("typed", "status"),
    [
        pytest.param({"select": "99"}, 404, id="no-request"),
        pytest.param({"select": "all"}, 422, id="no-term"),
    ],
)
def test_a_download_that_is_refused_is_not_noted(
    reader: TestClient,
    operator: TestClient,
    stores: Stores,
    dump: Dump,
    typed: dict[str, str],
    status: int,
) -> None:
    url = f"/dumps/{dump.id}/choice"
    assert reader.post(url, data={"select": "59", "tier": "T1", "reason": "x y"}).status_code == 403
    assert reader.get(f"{url}/shapes", params=typed).status_code == status
    assert operator.post(url, data=typed).status_code == status
    assert _noted(stores, "dump.export") == []


def test_an_operator_without_a_reason_gets_no_text(operator: TestClient, dump: Dump) -> None:
    answer = operator.post(f"/dumps/{dump.id}/choice", data={"select": "59", "tier": "T1"})
    assert answer.status_code == 422
    assert "for a reason only" in answer.text


def test_two_dumps_tell_what_was_unfinished_both_times(
    reader: TestClient, stores: Stores, incident: Incident, dump: Dump
) -> None:
    again = recorded.dump(
        [recorded.request(3), recorded.request(58, finished=False), recorded.request(90)]
    )
    other = make.dump(stores, incident, again, "again.pkl")
    page = reader.get(f"/dumps/{dump.id}/compare/{other.id}").text
    assert "<h1>1 request was unfinished in both dumps</h1>" in page
    assert page.index('id="both-h"') < page.index('id="shared-h"')
    assert '<h2 id="shared-h">In both <span class="count">2</span>' in page
    request = reader.get(f"/dumps/{dump.id}/requests/58").text
    assert f"Request 1 of dump {other.id}" in request
    assert f"/dumps/{dump.id}/compare/{other.id}" in reader.get(f"/dumps/{dump.id}").text
    assert reader.get(f"/dumps/{dump.id}/compare/{dump.id}").status_code == 422


def test_dumps_without_a_common_identifier_do_not_say_that_nothing_came_twice(
    reader: TestClient, stores: Stores, incident: Incident, dump: Dump
) -> None:
    other = make.dump(stores, incident, recorded.dump([recorded.request(90)]), "b.pkl")
    page = reader.get(f"/dumps/{dump.id}/compare/{other.id}").text
    assert "No request is in both dumps, by its identifier" in page
    assert "does not say that no request came twice" in page


def test_a_file_that_is_cut_off_says_so_shows_what_is_whole_and_what_to_do(
    reader: TestClient, operator: TestClient, stores: Stores, incident: Incident
) -> None:
    content = recorded.crash_dump(20, 3)
    dump = make.dump(stores, incident, content[: len(content) * 2 // 3], "cut.pkl")
    page = reader.get(f"/dumps/{dump.id}").text
    assert re.search(r"<h1>cut.pkl cannot be read; \d+ requests could be saved</h1>", page)
    assert "Truncated" in page
    assert "Copy it from its host once nobody writes to it" in page
    assert _rows(page)
    assert "an operator may download it" in page
    content_link = f"/artifacts/{dump.artifact_id}/content"
    assert content_link not in page
    assert content_link in operator.get(f"/dumps/{dump.id}").text


def test_a_dump_that_waits_shows_its_job_and_no_row(
    reader: TestClient, operator: TestClient, incident: Incident
) -> None:
    made = operator.post(
        f"/incidents/{incident.id}/artifacts",
        files={"file": ("crash.pkl", recorded.crash_dump(3, 1))},
    )
    page = reader.get(made.headers["location"]).text
    assert "<h1>crash.pkl waits to be read</h1>" in page
    assert 'hx-sse:connect="/jobs/' in page
    assert 'id="requests"' not in page
    job = re.search(r"/jobs/\d+", page)
    assert job is not None
    assert f'href="{made.headers["location"]}"' in reader.get(job[0]).text
    assert reader.get(f"{made.headers['location']}/requests/0").status_code == 409


def test_a_purged_dump_keeps_its_record_only(
    reader: TestClient, stores: Stores, dump: Dump
) -> None:
    purge(stores, dump.artifact_id, actor=make.ADA, reason="held a name", at=make.NOON)
    page = reader.get(f"/dumps/{dump.id}").text
    assert "The bytes of crash.pkl are purged; this record stays" in page
    assert "held a name" in page
    assert 'id="requests"' not in page


def test_the_incident_lists_its_dumps_and_its_next_step_opens_one(
    reader: TestClient, stores: Stores, incident: Incident, dump: Dump
) -> None:
    with writing(stores.engine) as session:
        session.add(
            Dump(
                incident_id=incident.id or 0,
                artifact_id=_another_artifact(stores, incident),
                sha256="0" * 64,
                name="later.pkl",
                state="reading",
                added_by="mira",
                added_at=make.NOON,
            )
        )
    page = reader.get(f"/incidents/{incident.id}").text
    step = page[page.index('id="next"') :]
    assert "Open the crash dump." in step
    assert f'<a class="button" href="/dumps/{dump.id}">Open the dump</a>' in step
    panel = page[page.index('<section class="panel" id="dumps"') :]
    assert "request 59 is the only one with an image" in panel
    assert "later.pkl is being read" in panel


def _another_artifact(stores: Stores, incident: Incident) -> int:
    assert incident.id is not None
    with writing(stores.engine) as session:
        artifact = attach(
            session,
            stores.artifacts.put(b"later"),
            incident_id=incident.id,
            name="later.pkl",
            kind="dump",
            taken_from="upload",
            actor=make.MIRA,
            at=make.NOON,
        )
    assert artifact.id is not None
    return artifact.id


@pytest.mark.parametrize("path", ["/dumps/9999", "/dumps/9999/requests/0", "/dumps/9999/choice"])
def test_a_dump_that_is_not_there_is_not_found(reader: TestClient, path: str) -> None:
    assert reader.get(path).status_code == 404


@pytest.mark.parametrize(
    "path", ["/dumps/1", "/dumps/1/requests/0", "/dumps/1/choice", "/dumps/1/compare/2"]
)
def test_a_stranger_signs_in_first(anybody: TestClient, path: str) -> None:
    answer = anybody.get(path)
    assert answer.status_code == 303
    assert answer.headers["location"].startswith("/login")
