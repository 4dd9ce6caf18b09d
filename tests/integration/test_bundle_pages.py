"""Bundle pages: what answered, the place a claim rests on, what changed, and asking again."""

import re
from datetime import timedelta
from urllib.parse import quote

import pytest
from fastapi.testclient import TestClient
from sqlmodel import select

from app.domain.capture import Capture
from app.store.audit import newest
from app.store.database import reading, writing
from app.store.landing import land, put_bodies
from app.store.stores import Stores
from app.store.tables import BundleRow, Incident, Job, Target
from tests import make
from tests.bundles import answered, loads, metrics, rank, serving, silent
from tests.situations import healthy, stuck

HOSTILE = '<script>alert(1)</script>"\x1b[31m'


@pytest.fixture
def target(stores: Stores) -> Target:
    return make.target(stores)


@pytest.fixture
def incident(stores: Stores, target: Target) -> Incident:
    return make.incident(stores, "TTFT is up", target)


def two_ranks_one_silent() -> list[Capture]:
    ranks = (rank(0, num_running_reqs=3, age=0.1), rank(1, num_running_reqs=31, age=96.0))
    return [*serving(*ranks), answered("metrics_1", metrics(generation_tokens_total=5), at=0.2)]


def in_the_making(stores: Stores, incident: Incident, target: Target, *done: Capture) -> BundleRow:
    """A bundle whose job is at work and whose first answers have landed."""
    bodies = put_bodies(stores.artifacts, done)
    with writing(stores.engine) as session:
        job = Job(
            key="at work",
            kind="collect",
            incident_id=incident.id,
            target_id=target.id,
            partition="target:1",
            arguments={},
            state="running",
            requested_by="mira",
            created_at=make.NOON,
            started_at=make.NOON,
            done=len(done),
            total=10,
        )
        session.add(job)
        session.flush()
        row = BundleRow(
            incident_id=incident.id,
            target_id=target.id,
            job_id=job.id,
            base_url=target.base_url,
            collected_at=make.NOON,
        )
        session.add(row)
        session.flush()
        assert row.id is not None
        for position, capture in enumerate(done):
            land(session, row.id, capture, bodies.get(capture.name), position=position)
    return row


def test_the_title_is_the_finding_and_the_failure_comes_first(
    reader: TestClient, stores: Stores, incident: Incident, target: Target
) -> None:
    row = make.bundle(stores, incident, target, stuck())

    page = reader.get(f"/bundles/{row.id}").text

    assert "<h1>decode-a is stuck: work is there and nothing moves</h1>" in page
    assert "verdict--bad" in page
    paths = re.findall(r'<tr[^>]*><th scope="row"><code>([^<]+)', page)
    assert paths.index("/server_info") < paths.index("/ready")
    assert "Taken under load" not in page


def test_a_reader_is_offered_nothing_to_press(
    reader: TestClient, stores: Stores, incident: Incident, target: Target
) -> None:
    row = make.bundle(stores, incident, target, healthy())

    page = reader.get(f"/bundles/{row.id}").text

    assert "Collect again" not in page
    assert "Ask once" not in page
    assert reader.post(f"/incidents/{incident.id}/bundles").status_code == 403


def test_a_rank_with_an_old_snapshot_is_marked_with_its_age(
    reader: TestClient, stores: Stores, incident: Incident, target: Target
) -> None:
    row = make.bundle(stores, incident, target, two_ranks_one_silent())

    page = reader.get(f"/bundles/{row.id}").text

    [stale] = re.findall(r'<tr class="table__row--bad"><th scope="row">(DP\d)</th>', page)
    assert stale == "DP1"
    assert "96 s</span>" in page
    assert "200, 1 rank old" in page


def test_text_of_a_target_is_escaped_wherever_it_stands(
    operator: TestClient, stores: Stores, incident: Incident
) -> None:
    evil = make.target(stores, 'x"><img src=x>', base_url="http://evil.example")
    info = {"model_path": HOSTILE, "version": HOSTILE, HOSTILE: HOSTILE}
    captures = [*serving(info=info), answered("metrics_1", HOSTILE.encode(), at=0.2)]
    before = make.bundle(stores, incident, evil, healthy())
    row = make.bundle(stores, incident, evil, captures, at=make.NOON + timedelta(minutes=1))

    for path in (
        f"/bundles/{row.id}",
        f"/bundles/{row.id}/diff/{before.id}",
        f"/bundles/{row.id}/captures/metrics_1",
        f"/bundles/{row.id}/captures/server_info?at={quote(HOSTILE)}",
    ):
        page = operator.get(path)
        assert page.status_code == 200, path
        assert "<script>alert" not in page.text, path
        assert "<img" not in page.text, path
        assert "\x1b" not in page.text, path


def test_a_chip_leads_to_the_marked_place(
    reader: TestClient, stores: Stores, incident: Incident, target: Target
) -> None:
    row = make.bundle(stores, incident, target, stuck())
    page = reader.get(f"/bundles/{row.id}").text
    chips = re.findall(r'class="chip" href="([^"]+/captures/[^"]+at=[^"]+)#place"', page)

    in_bodies = [href for href in chips if not href.endswith(("at=status", "at=outcome"))]
    assert len(in_bodies) >= 3
    for href in in_bodies:
        assert '<li id="place"' in reader.get(href.replace("&amp;", "&")).text, href


def test_the_body_of_a_capture_can_be_downloaded_but_never_runs(
    reader: TestClient, stores: Stores, incident: Incident, target: Target
) -> None:
    captures = [answered("ready", b"<script>alert(1)</script>")]
    row = make.bundle(stores, incident, target, captures)

    answer = reader.get(f"/bundles/{row.id}/captures/ready/content")

    assert answer.content == b"<script>alert(1)</script>"
    assert answer.headers["content-disposition"].startswith("attachment;")
    assert answer.headers["content-security-policy"] == "sandbox; default-src 'none'"
    assert answer.headers["x-content-type-options"] == "nosniff"


def test_the_last_healthy_bundle_is_found_and_compared_by_itself(
    reader: TestClient, stores: Stores, incident: Incident, target: Target
) -> None:
    early = make.bundle(stores, incident, target, healthy())
    changed = serving(rank(num_running_reqs=1), info={"mem_fraction_static": 0.95})
    late = make.bundle(stores, incident, target, changed, at=make.NOON + timedelta(hours=1))

    page = reader.get(f"/bundles/{late.id}").text

    assert f"bundle {early.id} → {late.id}" in page
    assert "<code>mem_fraction_static</code>" in page
    assert "no earlier bundle" in reader.get(f"/bundles/{early.id}").text


def test_a_diff_tells_from_earlier_to_later_whichever_is_named_first(
    reader: TestClient, stores: Stores, incident: Incident, target: Target
) -> None:
    early = make.bundle(stores, incident, target, healthy())
    late = make.bundle(stores, incident, target, stuck(), at=make.NOON + timedelta(hours=1))

    pages = {
        reader.get(f"/bundles/{one}/diff/{other}").text.split("<main")[1]
        for one, other in ((early.id, late.id), (late.id, early.id))
    }

    assert len(pages) == 1
    assert f"between bundle {early.id} and bundle {late.id}" in pages.pop()


def test_answers_are_shown_while_the_bundle_is_collected_and_the_part_asks_for_itself(
    operator: TestClient, stores: Stores, incident: Incident, target: Target
) -> None:
    row = in_the_making(stores, incident, target, answered("ready"), silent("server_info"))

    page = operator.get(f"/bundles/{row.id}").text
    part = operator.get(f"/bundles/{row.id}/answers")

    assert "A bundle of decode-a is being collected" in page
    assert "hx-sse:connect" in page
    assert "<code>/server_info</code>" in part.text
    assert "tick from:body" in part.text
    assert "HX-Refresh" not in part.headers


def test_the_part_that_asks_for_itself_loads_the_page_anew_at_the_end(
    operator: TestClient, stores: Stores, incident: Incident, target: Target
) -> None:
    row = make.bundle(stores, incident, target, healthy())

    part = operator.get(f"/bundles/{row.id}/answers")

    assert "hx-trigger" not in part.text
    assert part.headers["HX-Refresh"] == "true"


def test_an_operator_collects_again_and_it_is_noted(
    operator: TestClient, stores: Stores, incident: Incident, target: Target
) -> None:
    answer = operator.post(f"/incidents/{incident.id}/bundles", data={"probe": "always"})

    assert answer.status_code == 303
    with reading(stores.engine) as session:
        [row] = session.exec(select(BundleRow)).all()
        actions = {line.action for line in newest(session, limit=5)}
    assert answer.headers["location"] == f"/bundles/{row.id}"
    assert (row.probe, row.state, row.target_id) == ("always", "collecting", target.id)
    assert "job.collect" in actions


def test_htmx_is_sent_on_by_its_own_header(operator: TestClient, incident: Incident) -> None:
    answer = operator.post(f"/incidents/{incident.id}/bundles", headers={"HX-Request": "true"})

    assert answer.headers["HX-Redirect"].startswith("/bundles/")


@pytest.mark.parametrize("path", ["/bundles/99", "/bundles/99/answers", "/bundles/1/captures/no"])
def test_what_is_not_there_is_not_found(reader: TestClient, path: str) -> None:
    assert reader.get(path).status_code == 404


def test_a_page_of_many_ranks_stays_small(
    reader: TestClient, stores: Stores, incident: Incident, target: Target
) -> None:
    ranks = [rank(number, num_running_reqs=3) for number in range(64)]
    captures = [*serving(*ranks), answered("loads_all_2", loads(*ranks, at=10.0), at=10.0)]
    row = make.bundle(stores, incident, target, captures)

    assert len(reader.get(f"/bundles/{row.id}").content) < 120_000
