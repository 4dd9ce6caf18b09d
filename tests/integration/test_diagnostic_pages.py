"""A diagnostic's page: stacks side by side, coredumps while they grow, refusals with their fix."""

import re

import orjson
import pytest
from fastapi.testclient import TestClient

from app.store.database import writing
from app.store.evidence import purge
from app.store.stores import Stores
from app.store.tables import Artifact, Diagnostic, DiagnosticItem, Host, Incident
from tests import hosts, make

TP0 = hosts.STACKS.read_bytes()
HOSTILE = "<img src=x onerror=alert(1)>\x1b[2J"
LARGEST_PAGE = 200_000


@pytest.fixture
def incident(stores: Stores) -> Incident:
    return make.incident(stores, "decode-a hangs", make.target(stores))


@pytest.fixture
def host(stores: Stores) -> Host:
    return hosts.host(stores)


def planned(*ranks: int) -> list[dict[str, object]]:
    processes = [hosts.rank(number) for number in ranks]
    names = {one.id: f"TP{number}" for number, one in zip(ranks, processes, strict=True)}
    return [
        {"host_id": 1, "name": "gpu-14", "process_ids": [p.id for p in processes], "ranks": names}
    ]


def stacks_of(frames: int, name: str = "step", threads: int = 1) -> bytes:
    frame = {"name": name, "short_filename": name, "line": 7, "module": None}
    return orjson.dumps(
        [
            {"thread_name": "MainThread" if n == 0 else f"worker {n}", "frames": [frame] * frames}
            for n in range(threads)
        ]
    )


def taken(
    stores: Stores,
    incident: Incident,
    host: Host,
    items: list[DiagnosticItem],
    **given: object,
) -> Diagnostic:
    return hosts.diagnostic(stores, incident, host, items, **given)  # type: ignore[arg-type]


def test_ranks_stand_side_by_side_with_the_reason_of_the_one_that_was_not_read(
    reader: TestClient, stores: Stores, incident: Incident, host: Host
) -> None:
    items = [hosts.item(), hosts.refused()]
    taken(stores, incident, host, items, bodies=[TP0], hosts=planned(0, 1))

    page = reader.get("/diagnostics/1").text

    title = "1 of 2 ranks read, 1 sample; TP1: another tracer holds it: py-spy, pid 43010"
    assert f"<h1>{title}</h1>" in page
    assert page.index(">broadcast</b>") < page.index(">spawn_main</b>")
    assert "3 other threads" in page
    assert page.count(hosts.RETRY) >= 2  # as text, and to be copied
    assert "Retry in 5 s" in page
    assert "rank-stack--void" in page


def test_samples_are_switched_by_links(
    reader: TestClient, stores: Stores, incident: Incident, host: Host
) -> None:
    items = [hosts.item(sample=n) for n in (1, 2, 3)]
    bodies = [stacks_of(2, f"round_{n}") for n in (1, 2, 3)]
    taken(stores, incident, host, items, bodies=bodies)

    newest = reader.get("/diagnostics/1").text
    first = reader.get("/diagnostics/1?sample=1").text

    assert "round_3" in newest
    assert "round_1" not in newest
    assert "round_1" in first
    assert 'data-key="2"' in first
    assert re.search(r'href="\?sample=2&amp;ranks=1#stacks"', first)
    assert reader.get("/diagnostics/1?sample=9").status_code == 200


def test_what_was_read_from_a_running_process_is_marked_as_possibly_torn(
    reader: TestClient, stores: Stores, incident: Incident, host: Host
) -> None:
    torn = hosts.item(mode="nonblocking", exact=False, says="Native refused; taken plain.")
    torn.detail = {"state_before": "R", "state_after": "S"}
    taken(stores, incident, host, [torn], bodies=[TP0])

    page = reader.get("/diagnostics/1").text

    assert "possibly torn" in page
    assert "runs (R), then sleeps (S)" in page
    assert "nonblocking: without a pause" in page
    assert "exact" not in page
    assert "Native refused; taken plain." in page


@pytest.mark.parametrize(
    ("letter", "told"),
    [
        pytest.param(
            "T", 'state--bad"><i class="mark mark--bad" aria-hidden="true"></i>stopped (T)'
        ),
        pytest.param("t", 'mark--bad" aria-hidden="true"></i>debugged (t)'),
        pytest.param("Z", 'mark--bad" aria-hidden="true"></i>zombie (Z)'),
        pytest.param(
            "D", 'mark--warn" aria-hidden="true"></i>waits in the kernel, cannot be interrupted (D)'
        ),
        pytest.param("S", "<br>sleeps (S)"),
        pytest.param("R", "<br>runs (R)"),
        pytest.param("?<b>", 'mark--unknown" aria-hidden="true"></i>state ?&lt;b&gt;'),
    ],
)
def test_the_state_of_a_process_is_told_in_words_and_marked_when_it_matters(
    reader: TestClient, stores: Stores, incident: Incident, host: Host, letter: str, told: str
) -> None:
    item = hosts.item(detail={"state_before": letter, "state_after": letter})
    taken(stores, incident, host, [item], bodies=[TP0])

    assert told in reader.get("/diagnostics/1").text


def test_without_a_pause_is_told_to_be_exact_where_nothing_moved(
    reader: TestClient, stores: Stores, incident: Incident, host: Host
) -> None:
    taken(stores, incident, host, [hosts.item(mode="nonblocking")], bodies=[TP0])

    page = reader.get("/diagnostics/1").text

    assert "nonblocking: without a pause, exact: nothing in it moves" in page
    assert "torn" not in page


def test_a_rank_that_nothing_came_of_has_its_column_too(
    reader: TestClient, stores: Stores, incident: Incident, host: Host
) -> None:
    given = {"state": "running", "hosts": planned(0, 1, 2)}
    taken(stores, incident, host, [hosts.item()], bodies=[TP0], **given)

    page = reader.get("/diagnostics/1").text

    assert "1 of 3 ranks read, 1 sample so far" in page
    assert page.count("not read</span> yet") == 2
    assert 'hx-get="/diagnostics/1/found"' in page


def test_a_host_that_gave_nothing_leaves_all_its_ranks_unread(
    reader: TestClient, stores: Stores, incident: Incident, host: Host
) -> None:
    away = hosts.refused(process_id=None, pid=None, rank=None, says="Nothing listens there.")
    taken(stores, incident, host, [away], hosts=planned(0, 1))

    page = reader.get("/diagnostics/1").text

    assert "0 of 2 ranks read; gpu-14: nothing listens there" in page
    assert page.count("rank-stack--void") == 2


@pytest.mark.parametrize(
    ("ranks", "body"),
    [
        pytest.param(32, stacks_of(60, threads=12), id="32 ranks with 12 threads"),
        pytest.param(8, stacks_of(4000), id="stacks of 4000 frames"),
        pytest.param(32, stacks_of(200, '"' * 500, threads=40), id="names that grow when escaped"),
        pytest.param(100, TP0, id="100 ranks"),
    ],
)
def test_a_page_stays_small(
    reader: TestClient, stores: Stores, incident: Incident, host: Host, ranks: int, body: bytes
) -> None:
    items = [hosts.item(number) for number in range(ranks)]
    taken(stores, incident, host, items, bodies=[body] * ranks)

    page = reader.get("/diagnostics/1")

    assert page.status_code == 200
    assert len(page.content) < LARGEST_PAGE
    assert f"{ranks} of {ranks} ranks read" in page.text


def test_deep_stacks_are_folded_and_the_rest_is_in_the_file(
    reader: TestClient, stores: Stores, incident: Incident, host: Host
) -> None:
    taken(stores, incident, host, [hosts.item()], bodies=[stacks_of(4000)])

    page = reader.get("/diagnostics/1").text

    assert re.search(r"<summary class=\"soft\">\d+ older frames</summary>", page)
    assert re.search(r'older frames in <a href="/artifacts/1">the file</a>', page)


def test_more_ranks_than_fit_are_on_pages_of_their_own(
    reader: TestClient, stores: Stores, incident: Incident, host: Host
) -> None:
    items = [hosts.item(number) for number in range(40)]
    taken(stores, incident, host, items, bodies=[TP0] * 40)

    first, second = (reader.get(f"/diagnostics/1?ranks={n}").text for n in (1, 2))

    assert "TP32 to TP39" in first
    assert "pid 41871 on gpu-14" in first
    assert "pid 41871 on gpu-14" not in second
    assert "pid 41910 on gpu-14" in second


@pytest.mark.parametrize(
    ("body", "words"),
    [
        pytest.param(b"Error: no", "Not JSON", id="no stacks"),
        pytest.param(b" " * 5_000_000, "larger than", id="too large to show"),
    ],
)
def test_a_file_that_cannot_be_shown_says_why_and_is_linked(
    reader: TestClient, stores: Stores, incident: Incident, host: Host, body: bytes, words: str
) -> None:
    taken(stores, incident, host, [hosts.item()], bodies=[body])

    page = reader.get("/diagnostics/1").text

    assert words in page
    assert 'href="/artifacts/1"' in page


def test_purged_stacks_are_told_to_be_gone(
    reader: TestClient, stores: Stores, incident: Incident, host: Host
) -> None:
    taken(stores, incident, host, [hosts.item()], bodies=[TP0])
    purge(stores, 1, actor=make.ADA, reason="asked for by legal", at=make.NOON)

    page = reader.get("/diagnostics/1").text

    assert "no longer kept here" in page
    assert "broadcast" not in page


def test_raw_stacks_are_for_operators(
    reader: TestClient, operator: TestClient, stores: Stores, incident: Incident, host: Host
) -> None:
    taken(stores, incident, host, [hosts.item()], bodies=[TP0])
    with writing(stores.engine) as session:
        session.get_one(Artifact, 1).tier = "T2"

    assert "broadcast" not in reader.get("/diagnostics/1").text
    assert "Raw evidence: an operator may read it." in reader.get("/diagnostics/1").text
    assert "broadcast" in operator.get("/diagnostics/1").text


def test_a_sample_that_was_chosen_is_kept_while_others_come(
    reader: TestClient, stores: Stores, incident: Incident, host: Host
) -> None:
    items = [hosts.item(sample=n) for n in (1, 2)]
    taken(stores, incident, host, items, state="running", bodies=[TP0, TP0])

    page = reader.get("/diagnostics/1?sample=1").text

    assert 'hx-get="/diagnostics/1/found?sample=1&amp;ranks=1"' in page
    assert 'hx-get="/diagnostics/1/found"' in reader.get("/diagnostics/1").text


def test_a_coredump_is_watched_until_it_ends(
    reader: TestClient, stores: Stores, incident: Incident, host: Host
) -> None:
    grows = hosts.coredump(state="growing", says="A writer holds it.")
    taken(stores, incident, host, [grows], kind="coredump", state="running")

    page = reader.get("/diagnostics/1").text

    for told in ("growing", "2.1 GB", "/var/dumps/core_gpu-14_41871", "A writer holds it."):
        assert told in page
    assert 'hx-trigger="moved from:#progress, tick from:body"' in page
    part = reader.get("/diagnostics/1/found")
    assert "HX-Refresh" not in part.headers
    assert part.text.lstrip().startswith('<div class="stack" id="found"')


def test_when_it_has_ended_the_page_is_loaded_anew_and_asks_no_more(
    reader: TestClient, stores: Stores, incident: Incident, host: Host
) -> None:
    taken(stores, incident, host, [hosts.coredump()], kind="coredump")

    part = reader.get("/diagnostics/1/found")

    assert part.headers["HX-Refresh"] == "true"
    assert "hx-trigger" not in part.text
    assert "Coredump of TP0: complete, 2.1 GB" in reader.get("/diagnostics/1").text


def test_facts_of_a_host_are_shown_with_where_they_were_read(
    reader: TestClient, stores: Stores, incident: Incident, host: Host
) -> None:
    fact = {"topic": "kernel log", "says": "Xid 79", "level": "bad", "source": "/dev/kmsg"}
    answer = {"hosts": [{"host_id": 1, "name": "gpu-14", "at": None, "facts": [fact]}]}
    log = hosts.item(kind="log tail", rank=None, sample=None)
    taken(stores, incident, host, [log], kind="host facts", answer=answer, bodies=[b"x"])

    page = reader.get("/diagnostics/1").text

    assert "Host facts and server log: Xid 79" in page
    assert "/dev/kmsg" in page
    assert 'href="/artifacts/1"' in page


def test_nothing_that_a_target_says_becomes_markup(
    reader: TestClient, stores: Stores, incident: Incident, host: Host
) -> None:
    odd = hosts.refused(says=HOSTILE, fix=HOSTILE, command=HOSTILE, rank=HOSTILE)
    read = hosts.item(mode=HOSTILE, detail={"state_before": HOSTILE, "notes": 7}, says=HOSTILE)
    taken(stores, incident, host, [read, odd], bodies=[stacks_of(3, HOSTILE)])

    page = reader.get("/diagnostics/1").text

    assert "<img" not in page
    assert "\x1b" not in page


def test_an_unknown_diagnostic_is_not_found(reader: TestClient) -> None:
    assert reader.get("/diagnostics/7").status_code == 404
    assert reader.get(f"/diagnostics/{2**70}").status_code == 404
