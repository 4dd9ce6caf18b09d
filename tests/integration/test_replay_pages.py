"""Pages of replays: what is shown before anything is sent, who may send, and what stays bounded."""

import re
from collections.abc import Sequence
from dataclasses import replace
from datetime import UTC, datetime
from typing import Any

import pytest
from fastapi import FastAPI
from fastapi.testclient import TestClient
from sqlmodel import select

from app.domain.replay.options import Options
from app.store.database import reading, writing
from app.store.dump_rows import suspects_of
from app.store.dump_tables import Dump
from app.store.stores import Stores
from app.store.tables import Incident, Job, Replay, ReplayOutcome, ReplayTrial, Target
from app.web.live import LiveJobs
from tests import kept_replays, make, recorded, situations

pytestmark = pytest.mark.slow

HOSTILE = "<script>alert(1)</script>\x1b[31m"


@pytest.fixture
def incident(stores: Stores) -> Incident:
    return make.incident(stores, "rollout-3 refuses connections", make.target(stores, "rollout-3"))


@pytest.fixture
def dump(stores: Stores, incident: Incident) -> Dump:
    return make.dump(stores, incident, recorded.crash_dump())


@pytest.fixture
def clean(stores: Stores) -> Target:
    return make.target(stores, "debug-1", clean=True)


@pytest.fixture
def died(stores: Stores, incident: Incident, dump: Dump, clean: Target) -> Replay:
    """Two trials, both of which their target did not outlive."""
    trials = [kept_replays.outcomes(dies_at=343, seed=seed) for seed in (1, 2)]
    return kept_replays.replay(stores, incident, dump, clean, trials=trials)


def _title(page: str) -> str:
    found = re.search(r"<h1[^>]*>(.*?)</h1>", page, re.DOTALL)
    assert found is not None
    return re.sub(r"<.*?>", "", found[1])


def _replays(stores: Stores) -> Sequence[Replay]:
    with reading(stores.engine) as session:
        return session.exec(select(Replay)).all()


def test_the_page_of_a_replay_is_its_finding_with_what_it_rests_on(
    reader: TestClient, died: Replay
) -> None:
    page = reader.get(f"/replays/{died.id}").text

    assert _title(page) == "debug-1 went away after request 344, each time"
    assert "Reproduced in 2 of 2 trials." in page
    assert f'href="/replays/{died.id}/outcomes?trial=1&amp;from=344"' in page
    assert "It is established once all of 3 trials show it." in page
    order = ('aria-label="Verdict"', 'id="then"', 'id="trials"', 'id="recipe"')
    assert sorted(order, key=page.index) == list(order)
    assert '<a class="button" href="#recipe">Show the recipe</a>' in page
    errors = page.split('id="errors"')[1]
    assert errors.index("connection reset") < errors.index("connection refused"), "bad ones first"
    assert "Fill in RESTART." in page
    assert "--restart RESTART --out smallest.jsonl" in page
    assert "Fill in GOOD_REV, BAD_REV, CHECKOUT and LAUNCH." in page


def test_a_finished_replay_leads_to_what_follows_from_below_the_thumb(
    reader: TestClient, died: Replay
) -> None:
    bar = reader.get(f"/replays/{died.id}").text.split('class="handbar"')[1]

    assert [one for one in ("#then", "#trials", "/incidents/1") if f'href="{one}"' not in bar] == []


def test_a_death_offers_the_recipe_that_leaves_evidence_of_the_next_one(
    reader: TestClient, died: Replay
) -> None:
    page = reader.get(f"/replays/{died.id}").text

    assert "export CUDA_ENABLE_COREDUMP_ON_EXCEPTION=1" in page
    assert "/var/tmp/sglang-crash/&lt;host&gt;/core.cuda." in page


def test_two_sides_are_set_apart_in_the_title_and_in_each_table(
    reader: TestClient, stores: Stores, incident: Incident, dump: Dump, clean: Target
) -> None:
    good = make.target(stores, "debug-good", clean=True)
    trials = [kept_replays.outcomes(seed=1), kept_replays.outcomes(dies_at=343, seed=2)]
    both = kept_replays.replay(stores, incident, dump, good, clean, trials=trials)

    page = reader.get(f"/replays/{both.id}").text

    assert _title(page) == "debug-1 shows it, debug-good does not"
    assert "Shown in 1 of 1 trial of debug-1; in 0 of 1 of debug-good." in page
    assert ">A 1</a>" in page
    assert ">B 1</a>" in page
    assert (
        f"--base-url {clean.base_url}" in page
    )  # it is the one that shows it that is brought down


@pytest.mark.parametrize(
    ("state", "title", "says"),
    [
        pytest.param("waiting", "Replay 1 waits for a worker", "Cancel the replay", id="waiting"),
        pytest.param(
            "running", "Sending 500 requests to debug-1", "hx-sse:connect",
            id="running",
        ),
        pytest.param(
            "interrupted", "Replay 1 was cut off after 287 of 500 requests",
            "what was in flight when it stopped is", id="interrupted",
        ),
        pytest.param(
            "cancelled", "Replay 1 was cancelled after 287 of 500 requests", "Go on with it",
            id="cancelled",
        ),
        pytest.param(
            "refused", "Replay 1 was held back before anything was sent", "Send 500 requests",
            id="refused",
        ),
    ],
)  # fmt: skip
def test_a_replay_that_is_not_over_says_how_far_it_is_and_what_a_person_can_do(  # noqa: PLR0917
    operator: TestClient,
    stores: Stores,
    incident: Incident,
    dump: Dump,
    clean: Target,
    state: str,
    title: str,
    says: str,
) -> None:
    begun = state in ("running", "interrupted", "cancelled")
    trials = [kept_replays.outcomes(stops_at=287)] if begun else []
    kept_replays.replay(stores, incident, dump, clean, trials=trials, state=state, size=500)

    page = operator.get("/replays/1").text

    assert _title(page) == title
    assert says in page


def test_a_trial_that_runs_tells_of_its_requests_and_the_tab_carries_the_share(
    operator: TestClient, stores: Stores, incident: Incident, dump: Dump, clean: Target
) -> None:
    half = [kept_replays.outcomes(stops_at=287)]
    kept_replays.replay(
        stores, incident, dump, clean, trials=half, state="running", size=500, at=datetime.now(UTC)
    )

    part = operator.get("/replays/1/progress").text

    assert "<title>57 % · replay 1 · incident console</title>" in part
    assert '<h1 id="finding" hx-swap-oob="true">Sending 500 requests to debug-1</h1>' in part
    assert 'aria-valuenow="287"' in part
    assert "of about 2 min" in part
    assert 'data-key="."' in part


@pytest.mark.parametrize(
    ("state", "icon"),
    [
        pytest.param("waiting", "favicon-running.svg", id="waiting"),
        pytest.param("planned", "favicon.svg", id="planned"),
        pytest.param("running", "favicon-running.svg", id="running"),
        pytest.param("cancelled", "favicon.svg", id="cancelled"),
        pytest.param("interrupted", "favicon-stopped.svg", id="interrupted"),
        pytest.param("failed", "favicon-failing.svg", id="failed"),
        pytest.param("done", "favicon-done.svg", id="done"),
    ],
)
def test_the_icon_of_the_tab_carries_the_state(  # noqa: PLR0917
    reader: TestClient,
    stores: Stores,
    incident: Incident,
    dump: Dump,
    clean: Target,
    state: str,
    icon: str,
) -> None:
    trials = [kept_replays.outcomes(9)] if state in ("running", "done") else []
    kept_replays.replay(stores, incident, dump, clean, trials=trials, state=state, size=9)

    page = reader.get("/replays/1").text
    part = reader.get("/replays/1/progress").text

    assert re.search(rf'<link rel="icon" id="tab-icon" href="/static/{icon}\?v=', page)
    assert f'data-tab-icon="/static/{icon}?v=' in part
    assert reader.get(f"/static/{icon}").headers["content-type"] == "image/svg+xml"


def test_two_sides_at_work_are_told_apart_by_name(
    reader: TestClient, stores: Stores, incident: Incident, dump: Dump, clean: Target
) -> None:
    good = make.target(stores, "debug-good", clean=True)
    trials = [
        kept_replays.outcomes(seed=1),
        kept_replays.outcomes(dies_at=343, seed=2),
        kept_replays.outcomes(stops_at=20),
    ]
    kept_replays.replay(stores, incident, dump, good, clean, trials=trials, state="running")

    page = reader.get("/replays/1").text

    assert _title(page) == "debug-1 went away after request 344"
    assert "debug-1 went away in 1 of 1 finished trial; debug-good in 0 of 1." in page


def test_what_failed_by_our_own_making_is_to_be_set_right_before_it_is_sent_again(
    operator: TestClient, stores: Stores, incident: Incident, dump: Dump, clean: Target
) -> None:
    refused = [
        (replace(one, error="not-found", status=404, completion_tokens=None), recorded)
        for one, recorded in kept_replays.outcomes(20)
    ]
    kept_replays.replay(stores, incident, dump, clean, trials=[refused])

    then = operator.get("/replays/1").text.split('id="then"')[1].split("</section>")[0]

    assert 'href="/replays/1/outcomes?error=not-found">Show them</a>' in then
    assert "Choose another target" in then
    assert "target=" not in then, "another one is to be chosen"
    assert "times</b>" not in then, "the same again would fail the same"


def test_what_was_sent_too_late_is_to_be_sent_slower(
    operator: TestClient, stores: Stores, incident: Incident, dump: Dump, clean: Target
) -> None:
    late = [(replace(one, lateness_ms=90.0), told) for one, told in kept_replays.outcomes(200)]
    kept_replays.replay(stores, incident, dump, clean, trials=[late])

    then = operator.get("/replays/1").text.split('id="then"')[1].split("</section>")[0]

    assert "Send it at half the speed" in then
    assert "speed=0.5" in then
    assert "Show them" not in then, "two of 200 failures are not why"
    assert "times</b>" not in then


def test_an_incident_tells_how_many_replays_it_has_and_one_to_reduce(
    operator: TestClient, stores: Stores, dump: Dump, clean: Target
) -> None:
    with reading(stores.engine) as session:
        incident = session.get_one(Incident, dump.incident_id)
        about = session.get_one(Target, 1)
    make.bundle(stores, incident, about, situations.gone())
    died = [kept_replays.outcomes(30, dies_at=12)]
    for _ in range(9):
        kept_replays.replay(stores, incident, dump, clean, trials=died)

    page = operator.get("/incidents/1").text

    assert 'Replays <span class="count">8 of 9</span>' in page
    assert page.count("to the smallest set that still does it") == 1
    assert 'href="/replays/9#then">Open replay 9</a>' in page


def test_what_came_back_is_to_be_reduced_where_no_bundle_was_ever_taken(
    operator: TestClient, stores: Stores, incident: Incident, dump: Dump, clean: Target
) -> None:
    died = [kept_replays.outcomes(30, dies_at=12)]
    kept_replays.replay(stores, incident, dump, clean, trials=died)

    steps = operator.get("/incidents/1").text.split('id="next"')[1].split("</section>")[0]

    assert 'href="/replays/1#then">Open replay 1</a>' in steps
    assert ">Collect a bundle</button>" in steps, "and it still begins with a bundle"


def test_a_death_is_told_whatever_was_looked_for(
    reader: TestClient, stores: Stores, incident: Incident, dump: Dump, clean: Target
) -> None:
    died = [kept_replays.outcomes(30, dies_at=12)]
    kept_replays.replay(stores, incident, dump, clean, trials=died, symptom="error")

    page = reader.get("/replays/1").text

    verdict = page.split('aria-label="Verdict"')[1].split("</section>")[0]
    assert verdict.count("The target went away after request") == 1


@pytest.mark.parametrize(
    ("options", "says", "asks"),
    [
        pytest.param(Options(), "like the recorded one", "same_setup=1", id="not-known"),
        pytest.param(
            Options(same_setup=True, speed=2.0), "at the recorded times", "speed=1", id="faster"
        ),
    ],
)
def test_times_that_are_not_compared_are_not_measured_again_the_same_way(  # noqa: PLR0917
    operator: TestClient,
    stores: Stores,
    incident: Incident,
    dump: Dump,
    clean: Target,
    options: Options,
    says: str,
    asks: str,
) -> None:
    kept_replays.replay(
        stores, incident, dump, clean, trials=[kept_replays.outcomes(60)],
        options=options, symptom="latency", symptom_by="mira",
    )  # fmt: skip

    then = operator.get("/replays/1").text.split('id="then"')[1].split("</section>")[0]

    assert says in then
    assert asks in then
    assert not re.search(r"Send it \d+ times", then), "more of the same is compared no better"


@pytest.mark.parametrize(
    ("of_others", "asks"), [pytest.param(3, False, id="busy"), pytest.param(None, True, id="open")]
)
def test_a_name_is_asked_for_only_where_it_can_help(
    operator: TestClient,
    stores: Stores,
    dump: Dump,
    clean: Target,
    of_others: int | None,
    asks: bool,
) -> None:
    with reading(stores.engine) as session:
        incident = session.get_one(Incident, dump.incident_id)
    replay = kept_replays.replay(stores, incident, dump, clean, state="refused")
    with writing(stores.engine) as session:
        strangers = {"of_others": of_others, "artifact": None, "at": make.NOON.isoformat()}
        trial = ReplayTrial(
            replay_id=replay.id or 0, number=1, side="A", target_id=clean.id or 0, state="refused",
            errors={}, strangers=strangers,
        )  # fmt: skip
        session.add(trial)

    page = operator.get("/replays/1").text

    assert ('name="confirm"' in page) == asks


@pytest.mark.parametrize("verb", ["start", "resume"])
def test_who_presses_in_the_same_moment_sees_it_at_work(
    operator: TestClient, stores: Stores, incident: Incident, dump: Dump, clean: Target, verb: str
) -> None:
    state = {"start": "planned", "resume": "interrupted"}[verb]
    kept_replays.replay(stores, incident, dump, clean, state=state)

    answers = [operator.post(f"/replays/1/{verb}") for _ in range(2)]

    assert {(one.status_code, one.headers["location"]) for one in answers} == {(303, "/replays/1")}
    with reading(stores.engine) as session:
        [job] = session.exec(select(Job).where(Job.state == "queued")).all()
    assert job.arguments["replay_id"] == 1


def test_a_suspect_is_told_when_it_is_due_as_long_as_its_recorded_time_decides_it(
    reader: TestClient, stores: Stores, incident: Incident, clean: Target
) -> None:
    asked, _, created, _ = recorded.request(1, finished=False)
    stuck: tuple[Any, ...] = (asked, {}, created + 500, created + 600)
    dump = make.dump(stores, incident, recorded.dump([recorded.request(0), stuck]))
    started = datetime.now(UTC)
    for selection in ("", "1"):
        kept_replays.replay(
            stores, incident, dump, clean, trials=[kept_replays.outcomes(stops_at=9)],
            state="running", size=500, at=started, selection=selection,
        )  # fmt: skip

    whole, chosen = (reader.get(f"/replays/{number}/progress").text for number in (1, 2))

    assert "request 1, the suspect, is due in <b>8 min</b>" in whole
    assert "the suspect" not in chosen


def test_a_form_without_a_target_says_what_is_missing(operator: TestClient, dump: Dump) -> None:
    answer = operator.post("/incidents/1/replays", data={"dump": dump.id})

    assert answer.status_code == 422
    assert "No target was chosen." in answer.text


def test_the_last_answer_to_a_tick_loads_the_page_anew(reader: TestClient, died: Replay) -> None:
    part = reader.get(f"/replays/{died.id}/progress")

    assert part.headers["HX-Refresh"] == "true"
    assert "hx-trigger" not in part.text


def test_the_events_are_the_progress_until_it_is_over_and_full_where_there_is_no_place(
    reader: TestClient, app: FastAPI, stores: Stores, died: Replay
) -> None:
    over = reader.get(f"/replays/{died.id}/events").text
    app.state.live_jobs = LiveJobs(stores.engine, most_followers=0)
    full = reader.get(f"/replays/{died.id}/events").text

    assert over.rstrip() == "event: ended\ndata: done"
    assert full.startswith("event: full\n")


def test_the_form_offers_clean_targets_first_and_says_what_stands_against_the_others(
    operator: TestClient, stores: Stores, dump: Dump, clean: Target
) -> None:
    busy = make.target(stores, "debug-2", clean=True)
    with reading(stores.engine) as session:
        incident = session.get_one(Incident, dump.incident_id)
    kept_replays.replay(stores, incident, dump, busy, state="waiting")

    page = operator.get(f"/incidents/1/replays/new?dump={dump.id}&select=0:3").text

    assert _title(page) == "Replay 3 requests of crash.pkl"
    assert page.index("debug-1") < page.index("rollout-3")
    assert re.search(r'id="target-\d+" name="target" value="\d+" required checked', page)
    assert "replay 1 is at work on it" in page
    assert "Incident 1 is about rollout-3: people may be served by it." in page


def test_the_form_without_a_file_asks_which_one(operator: TestClient, dump: Dump) -> None:
    page = operator.get("/incidents/1/replays/new").text

    assert _title(page) == "Choose what to replay"
    assert f'href="?dump={dump.id}"' in page


def test_a_choice_that_makes_no_sense_is_said_before_anything_is_asked(
    operator: TestClient, dump: Dump
) -> None:
    page = operator.get(f"/incidents/1/replays/new?dump={dump.id}&select=everything").text

    assert "The choice of requests makes no sense." in page


def test_asking_only_looks_and_sending_needs_the_name_of_a_target_that_is_not_clean(
    operator: TestClient, stores: Stores, dump: Dump
) -> None:
    answer = operator.post(
        "/incidents/1/replays",
        data={"dump": dump.id, "target": 1, "other": "", "until_seconds": "", "trials": 2},
    )
    assert (answer.status_code, answer.headers["location"]) == (303, "/replays/1")
    with writing(stores.engine) as session:
        job, replay = session.get_one(Job, _replays(stores)[0].job_id), session.get_one(Replay, 1)
        assert job.arguments == {"replay_id": 1, "send": False}
        assert (replay.trials_wanted, replay.options["window"]["until_seconds"]) == (2, None)
        replay.state, replay.planned, job.state = "planned", 23, "succeeded"

    page = operator.get("/replays/1").text
    without = operator.post("/replays/1/start")
    named = operator.post("/replays/1/start", data={"confirm": ["rollout-3"]})

    assert 'name="confirm" autocomplete="off" maxlength="200" required' in page
    assert without.status_code == 409
    assert named.status_code == 303
    assert _replays(stores)[0].confirmed[0]["name"] == "rollout-3"


def test_a_form_asks_again_for_the_same(operator: TestClient, stores: Stores, dump: Dump) -> None:
    typed = {
        "dump": str(dump.id), "target": "1", "select": "0:3", "mode": "closed", "parallel": "7",
        "speed": "2", "trials": "3", "symptom": "hang", "most_new_tokens": "64",
        "ignore_eos": "1", "cut_gaps": "5", "allow": "custom-code", "reference": "sound",
        "same_setup": "1",
    }  # fmt: skip
    operator.post("/incidents/1/replays", data=typed)

    page = operator.get("/replays/1").text
    link = re.search(r'href="(/incidents/1/replays/new\?[^"]*)">Ask again', page)
    assert link is not None
    form = operator.get(link[1].replace("&amp;", "&")).text

    for given in (
        'value="hang" checked', 'value="closed" checked', 'name="parallel" type="number" value="7"',
        'name="speed" type="number" value="2"', 'name="most_new_tokens" type="number" value="64"',
        'name="ignore_eos" value="1" checked', 'name="cut_gaps" type="number" value="5"',
        'name="same_setup" value="1" checked',
        'value="custom-code" checked', '<option value="sound" selected', ">0:3</textarea>",
    ):  # fmt: skip
        assert given in form


@pytest.mark.parametrize(
    "path",
    ["/incidents/1/replays", "/replays/1/start", "/replays/1/cancel", "/replays/1/resume"],
)
def test_a_reader_looks_and_sends_nothing(reader: TestClient, died: Replay, path: str) -> None:
    assert reader.post(path, data={"dump": 1, "target": 1}).status_code == 403
    assert (
        "<form" not in reader.get(f"/replays/{died.id}").text.split("<main")[1].split("<dialog")[0]
    )


def test_a_reader_is_shown_no_form_to_ask_with(reader: TestClient, dump: Dump) -> None:
    assert reader.get(f"/incidents/1/replays/new?dump={dump.id}").status_code == 403
    assert "Replay…</a>" not in reader.get(f"/dumps/{dump.id}").text


def test_outcomes_are_filtered_and_paged_to_their_end(reader: TestClient, died: Replay) -> None:
    seen: list[int] = []
    query: str | None = "?trial=2&state=failed"
    while query is not None:
        page = reader.get(f"/replays/{died.id}/outcomes{query}").text
        assert len(page) < 200_000
        seen += [int(one) for one in re.findall(r'<th scope="row"><a[^>]*>(\d+)</a>', page)]
        after = re.search(r'href="(\?[^"]*)">Next', page)
        query = after[1].replace("&amp;", "&") if after else None

    assert seen == sorted(set(seen))
    assert len(seen) == 500 - 321


def test_outcomes_from_a_request_on_begin_with_it(reader: TestClient, died: Replay) -> None:
    page = reader.get(f"/replays/{died.id}/outcomes?trial=1&from=344").text

    first = re.search(r'<th scope="row"><a[^>]*>(\d+)</a>', page)
    assert first is not None
    assert first[1] == "344"


@pytest.mark.parametrize(
    "cursor", ["xx", "WzFd", "WyJhIiwxXQ", "WzEsOTk5OTk5OTk5OTk5OTk5OTk5OTk5XQ"]
)
def test_a_cursor_that_is_not_ours_is_said_to_be(
    reader: TestClient, died: Replay, cursor: str
) -> None:
    assert reader.get(f"/replays/{died.id}/outcomes?after={cursor}").status_code == 422


def test_what_a_target_said_is_shown_and_never_markup(
    reader: TestClient, stores: Stores, died: Replay
) -> None:
    with writing(stores.engine) as session:
        row = session.get_one(ReplayOutcome, (died.id, 1, 61))
        row.says = row.rid = HOSTILE
        replay = session.get_one(Replay, died.id)
        replay.why = HOSTILE

    pages = [
        reader.get(f"/replays/{died.id}").text,
        reader.get(f"/replays/{died.id}/outcomes?error=bad-request").text,
    ]

    assert all("<script>alert" not in page for page in pages)
    assert all("&lt;script&gt;alert(1)&lt;/script&gt;\\x1b[31m" in page for page in pages)


def test_very_many_outcomes_are_drawn_apart_from_the_page(
    reader: TestClient, stores: Stores, incident: Incident, dump: Dump, clean: Target
) -> None:
    many = [kept_replays.outcomes(6000)]
    kept_replays.replay(stores, incident, dump, clean, trials=many, symptom="crash")

    page = reader.get("/replays/1").text
    drawn = reader.get("/replays/1/rest?trial=1&draw=1").text

    assert 'hx-get="/replays/1/rest?trial=1&draw=1" hx-trigger="load"' in page
    assert '<svg class="chart chart--wide"' not in page
    assert 'class="heat heat--4"' in drawn
    assert len(drawn) < 200_000


def test_an_incident_a_dump_and_a_job_lead_to_their_replay(
    operator: TestClient, died: Replay, dump: Dump
) -> None:
    of_incident = operator.get("/incidents/1").text
    of_dump = operator.get(f"/dumps/{dump.id}").text
    of_job = operator.get(f"/jobs/{died.job_id}").text

    for page in (of_incident, of_dump, of_job):
        assert f'href="/replays/{died.id}"' in page
    assert "The crash came back on debug-1" in of_incident


def test_a_dump_and_a_clean_target_make_a_next_step(
    operator: TestClient, dump: Dump, clean: Target
) -> None:
    page = operator.get("/incidents/1").text
    link = re.search(r'href="(/incidents/1/replays/new\?[^"]*)">Replay…', page)

    assert link is not None
    assert f"target={clean.id}" in link[1]
    assert "Replay the" in page.split("Replay on a clean target.")[1]


def test_a_crash_dump_is_offered_before_a_newer_file_with_a_suspect(
    operator: TestClient, stores: Stores, incident: Incident, dump: Dump, clean: Target
) -> None:
    requests = [recorded.request(index) for index in range(5)]
    newer = make.dump(stores, incident, recorded.dump([*requests, requests[0]], crash=False))
    assert newer.kind != "crash dump"
    with reading(stores.engine) as session:
        assert suspects_of(session, newer.id or 0), "an identifier is there twice"

    step = operator.get("/incidents/1").text.split("Replay on a clean target.")[1]

    assert f"dump={dump.id}&amp;" in step.split(">Replay…")[0]


@pytest.mark.parametrize("path", ["", "/progress", "/rest", "/events", "/outcomes"])
def test_a_replay_that_is_not_there_is_not_found(reader: TestClient, path: str) -> None:
    assert reader.get(f"/replays/77{path}").status_code == 404


@pytest.mark.parametrize(
    ("allow", "says"),
    [
        ((), "neither fetch media from addresses in the requests nor run code that is in them"),
        (
            ("media-addresses",),
            "fetch media from addresses in the requests, but not run code that is in them",
        ),
        (
            ("custom-code",),
            "run code that is in the requests, but not fetch media from addresses in them",
        ),
        (
            ("media-addresses", "custom-code"),
            "fetch media from addresses in the requests and run code that is in them",
        ),
    ],
)
def test_what_the_target_may_do_is_said_in_whole_words(
    reader: TestClient,
    stores: Stores,
    incident: Incident,
    dump: Dump,
    clean: Target,
    *,
    allow: Sequence[Any],
    says: str,
) -> None:
    options = Options(allow=frozenset(allow))
    kept_replays.replay(stores, incident, dump, clean, state="planned", options=options)

    page = reader.get("/replays/1").text

    assert f'<dt>Target may</dt><dd class="breaks">{says}</dd>' in page


@pytest.mark.parametrize(
    ("parallel", "says"),
    [
        (128, "this replay&#39;s limit of 128 held nothing back"),
        (1, "this replay&#39;s limit of 1 was reached: requests may have waited for it"),
    ],
)
def test_it_is_said_whether_the_limit_of_the_replay_held_anything_back(
    reader: TestClient,
    stores: Stores,
    incident: Incident,
    dump: Dump,
    clean: Target,
    *,
    parallel: int,
    says: str,
) -> None:
    whole, options = [kept_replays.outcomes(30)], Options(parallel=parallel)
    kept_replays.replay(stores, incident, dump, clean, trials=whole, options=options)

    assert says in reader.get("/replays/1").text


def test_what_is_to_be_reduced_is_called_so_on_every_page(
    reader: TestClient, died: Replay, incident: Incident
) -> None:
    pages = [reader.get(one).text for one in (f"/replays/{died.id}", f"/incidents/{incident.id}")]

    assert "<b>Reduce it</b>" in pages[0]
    assert "Reduce the requests of replay" in pages[1]
    assert not any("shrink" in one.lower() for one in pages)
