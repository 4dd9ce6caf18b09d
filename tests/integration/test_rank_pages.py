"""Compared ranks on a diagnostic's page: the finding, the classes, where they part, what next."""

import re
from collections.abc import Callable
from typing import Any

import pytest
from fastapi.testclient import TestClient

from app.store.stores import Stores
from app.store.tables import Diagnostic, DiagnosticItem, Host, Incident, Target
from tests import hosts, make, stacks
from tests.compared import BUSY, FAULT, comparison_of, inspected

pytestmark = pytest.mark.slow

HOSTILE = "<img src=x onerror=alert(1)>\x1b[2J"
LARGEST_PAGE = 200_000
HUNG = stacks.ranks(8, stacks.AWAITS_GPU, TP5=stacks.AWAITS_REQUESTS)
MISSING = {
    "rank": "TP7",
    "kind": "busy",
    "reason": "Another tracer holds it.",
    "fix": "Retry in 5 s.",
    "command": hosts.RETRY,
}


@pytest.fixture
def target(stores: Stores) -> Target:
    return make.target(stores)


@pytest.fixture
def incident(stores: Stores, target: Target) -> Incident:
    return make.incident(stores, "decode-a hangs", target)


@pytest.fixture
def host(stores: Stores, target: Target) -> Host:
    ranks = [hosts.rank(number) for number in range(8)]
    host = hosts.host(stores, "gpu-14", hosts.server(*ranks))
    hosts.link(stores, target, host)
    return host


def small(client: TestClient, row: Diagnostic) -> str:
    """The page of *row*."""
    answer = client.get(f"/diagnostics/{row.id}")
    assert answer.status_code == 200
    assert len(answer.content) < LARGEST_PAGE
    return str(answer.text)


class Shown:
    """Keeps a diagnostic of compared stacks and gives its page."""

    def __init__(self, stores: Stores, incident: Incident, host: Host, target: Target) -> None:
        self.stores, self.incident, self.host, self.target = stores, incident, host, target

    def page(
        self,
        client: TestClient,
        comparison: object,
        items: list[DiagnosticItem] | None = None,
        **given: Any,
    ) -> str:
        row = hosts.diagnostic(
            self.stores,
            self.incident,
            self.host,
            items or [hosts.item(number) for number in range(8)],
            target_id=self.target.id,
            answer={"comparison": comparison},
            **given,
        )
        return small(client, row)


@pytest.fixture
def shown(stores: Stores, incident: Incident, host: Host, target: Target) -> Shown:
    return Shown(stores, incident, host, target)


def part(page: str, name: str) -> str:
    """The section with that id."""
    found = re.search(rf'<section [^>]*id="{name}".*?</section>', page, re.DOTALL)
    assert found, name
    return found[0]


def with_missing(comparison: dict[str, Any]) -> dict[str, Any]:
    """TP7 was not read."""
    groups = [
        {**group, "ranks": [rank for rank in group["ranks"] if rank != "TP7"]}
        for group in comparison["groups"]
    ]
    moved = {rank: moved for rank, moved in comparison["moved"].items() if rank != "TP7"}
    return {**comparison, "groups": groups, "moved": moved, "missing": [MISSING], "captured": 7}


def test_the_title_is_the_finding_and_the_rest_stands_below(
    reader: TestClient, shown: Shown
) -> None:
    page = shown.page(reader, comparison_of(HUNG, HUNG))

    title = re.search(r"<h1>(.*?)</h1>", page)
    assert title
    assert title[1].startswith("7 of 8 (TP0-4, TP6, TP7) wait for the GPU in synchronize")
    assert "TP5 is elsewhere: it waits in broadcast" in title[1]
    assert "Rank divergence.</b> A wait for the GPU may hide" in part(page, "says")


def test_each_rank_has_a_column_and_the_outlier_is_framed(reader: TestClient, shown: Shown) -> None:
    matrix = part(shown.page(reader, comparison_of(HUNG, HUNG)), "ranks")

    assert "8 ranks side by side" in matrix
    assert re.findall(r"<span>(TP\d)</span>", matrix) == [f"TP{n}" for n in range(8)]
    assert re.findall(r'class-letter[^"]*">(.)</span>', matrix) == list("AAAAABAA")
    assert matrix.count('<td class="ranks--outlier">broadcast</td>') == 1
    assert matrix.count("= same") == 8
    assert matrix.count("GPU event") == 7


def test_one_sample_tells_nothing_of_movement(reader: TestClient, shown: Shown) -> None:
    page = shown.page(reader, comparison_of(HUNG))

    assert part(page, "ranks").count("? not known") == 8
    assert "unknown: one sample" in part(page, "classes")
    assert "Slow or stuck: one sample cannot tell here." in page


def test_a_rank_that_was_not_read_is_hatched_with_its_reason_fix_and_retry(
    operator: TestClient, shown: Shown
) -> None:
    items = [*(hosts.item(number) for number in range(7)), hosts.refused(7)]
    page = shown.page(operator, with_missing(comparison_of(HUNG, HUNG)), items)

    assert part(page, "ranks").count('<td class="ranks--void"><span>no data</span></td>') == 2
    classes = part(page, "classes")
    assert "TP7 · not read" in classes
    assert "Another tracer holds it." in classes
    assert "Retry in 5 s." in classes
    assert hosts.RETRY in classes
    assert 'href="#next">retry' in classes
    assert 'id="refused"' not in page  # told once
    assert "What TP7 did: not read, so counted with no class." in page


def test_a_class_says_where_it_ends_and_links_to_the_stack_of_its_first_rank(
    reader: TestClient, shown: Shown
) -> None:
    body = stacks.dump_json(41871, stacks.AWAITS_GPU)
    page = shown.page(reader, comparison_of(HUNG, HUNG), bodies=[body] * 8)
    classes = part(page, "classes")

    assert classes.index("TP5</b> · 1 of 8 read") < classes.index("TP0-4, TP6, TP7 · 7 of 8 read")
    assert "asked for by broadcast_pyobj ← _broadcast_reqs_across_ranks" in classes
    link = re.search(r'href="(\?[^"]*)">stack<span class="unseen"> of class B', classes)
    assert link
    anchor = link[1].rpartition("#")[2]
    assert f'<li id="{anchor}"' in page
    assert page.index(f'id="{anchor}"') < page.index("TP5 <span")


def test_the_tree_folds_what_all_share_and_shows_the_branches(
    reader: TestClient, shown: Shown
) -> None:
    tree = part(shown.page(reader, comparison_of(HUNG, HUNG)), "tree")

    assert "Where they part" in tree
    assert "4 calls: &lt;module&gt; … run_scheduler_process" in tree
    fork = tree.index('frame--fork"><span class="frame__name"><span>event_loop_overlap')
    assert fork < tree.index("process_batch_result") < tree.index("recv_requests")
    assert tree.count("7 of 8") == 3
    assert 'aria-label="TP5"' in tree
    assert re.search(r'frame--outlier">.*?mark--bad.*?recv_requests', tree)
    assert '<i class="b">B</i>' in tree


def test_ranks_that_do_the_same_are_not_said_to_part(reader: TestClient, shown: Shown) -> None:
    same = stacks.ranks(8, stacks.SYNCS_MLP)
    page = shown.page(reader, comparison_of(same, same))

    assert "They do not part" in page
    assert "table__row--bad" not in part(page, "classes")
    assert "mark--bad" not in part(page, "classes")  # it is not known to be stuck


def test_an_outlier_within_a_class_is_named_there(reader: TestClient, shown: Shown) -> None:
    both = stacks.ranks(2, stacks.REDUCES)
    page = shown.page(reader, comparison_of(both, states={"TP0": "S", "TP1": "T"}))

    assert "TP1 named apart" in part(page, "classes")
    assert "stopped (T)" in part(page, "ranks")
    assert "The kernel holds TP1 still." in part(page, "next")
    assert "Native stacks of" not in page


@pytest.mark.parametrize(
    ("states", "told"),
    [
        ({"TP0": "S", "TP1": "X"}, ["Ended: TP1."]),
        ({"TP0": "T", "TP1": "T"}, ["The kernel holds TP0, TP1 still."]),
        ({"TP0": "T", "TP1": "Z"}, ["Ended: TP1.", "The kernel holds TP0 still."]),
    ],
    ids=["one has ended", "all are held", "one of each"],
)
def test_who_has_ended_and_who_is_held_are_told_apart(
    reader: TestClient, shown: Shown, states: dict[str, str], told: list[str]
) -> None:
    both = {"TP0": stacks.CHECKS_CACHE, "TP1": stacks.CHECKS_CACHE}
    shows = part(shown.page(reader, comparison_of(both, states=states)), "next")
    assert [one for one in told if one not in shows] == []
    assert "holds nobody" not in shows


def test_while_more_samples_come_the_first_verdict_is_shown(
    reader: TestClient, shown: Shown
) -> None:
    page = shown.page(reader, comparison_of(HUNG), state="running")

    assert "<h1>Taking stacks, not finished yet</h1>" in page
    assert "TP5 is elsewhere: it waits in broadcast" in part(page, "says")
    assert "TP5 is elsewhere" in reader.get("/diagnostics/1/found").text


def test_who_may_act_has_the_next_looks_as_buttons_that_work(
    operator: TestClient, shown: Shown
) -> None:
    looks = part(shown.page(operator, comparison_of(HUNG)), "next")

    assert re.findall(r'name="kind" value="([^"]+)"', looks) == [
        "stacks",
        "nccl ras",
        "native stacks",
    ]
    assert f'name="process_id" value="{hosts.rank(5).id}"' in looks
    assert "Native stacks of TP5…" in looks
    assert 'href="/incidents/1#rung-coredump"' in looks
    assert "lowest count of collectives names the rank" in looks
    server = re.search(r'name="server" value="([^"]+)"', looks)
    assert server
    form = {"kind": "stacks", "server": server[1]}
    asked = operator.post("/incidents/1/diagnostics", data=form, follow_redirects=False)
    assert asked.status_code == 303


def test_a_reader_has_no_buttons(reader: TestClient, shown: Shown) -> None:
    page = shown.page(reader, with_missing(comparison_of(HUNG)))

    assert 'name="kind"' not in page
    assert ">retry<" not in page
    assert "What would settle it" in page


def test_a_server_that_is_no_longer_linked_has_no_buttons(
    operator: TestClient, stores: Stores, incident: Incident
) -> None:
    away = hosts.host(stores, "gpu-20")
    hosts.diagnostic(
        stores, incident, away, [hosts.item()], answer={"comparison": comparison_of(HUNG)}
    )

    assert 'name="kind"' not in operator.get("/diagnostics/1").text


def parted(many: int) -> dict[str, Any]:
    """Two classes, each second rank in the other."""
    calls = (stacks.CHECKS_CACHE, stacks.CHECKS_LOADS)
    return comparison_of({f"TP{number}": calls[number % 2] for number in range(many)})


def scattered(many: int) -> dict[str, Any]:
    """Each rank in a class of its own, with names that grow when escaped."""
    comparison = parted(2)
    groups = [
        {
            **comparison["groups"][0],
            "ranks": [f"TP{number}"],
            "top": '"' * 300,
            "where": '"' * 300,
            "frames": [f"{'<' * 250}{number}_{depth} ({'>' * 200}.py:1)" for depth in range(60)],
        }
        for number in range(many)
    ]
    moved = {f"TP{number}": None for number in range(many)}
    return {**comparison, "ranks": many, "captured": many, "groups": groups, "moved": moved}


def unread(many: int) -> dict[str, Any]:
    """No rank was read, each for a reason of its own."""
    missing = [
        {**MISSING, "rank": f"TP{number}", "reason": f"{number} {HOSTILE}" * 90}
        for number in range(many)
    ]
    return {**parted(2), "groups": [], "ranks": many, "captured": 0, "missing": missing}


def one_apart(many: int) -> dict[str, Any]:
    return comparison_of(stacks.ranks(many, stacks.AWAITS_GPU, TP517=stacks.EVICTS))


@pytest.mark.parametrize("comparison", [one_apart, parted, scattered, unread])
def test_a_page_stays_small_for_a_thousand_ranks(
    reader: TestClient, shown: Shown, comparison: Callable[[int], dict[str, Any]]
) -> None:
    items = [hosts.item(number) for number in range(32)]
    body = stacks.dump_json(41871, [f'"{"x" * 90} (y.py:{n})' for n in range(200)])
    page = shown.page(reader, comparison(1024), items, bodies=[body] * 32)

    assert "1\u202f024 ranks side by side" in page
    assert "<img" not in page


def test_equal_neighbours_of_many_ranks_share_a_column(reader: TestClient, shown: Shown) -> None:
    matrix = part(shown.page(reader, one_apart(1024)), "ranks")

    assert re.findall(r"<span>(TP[^<]*)</span>", matrix) == ["TP0-516", "TP517", "TP518-1023"]
    assert "neighbours alike share a column" in matrix


def test_an_outlier_has_its_column_however_many_there_are(reader: TestClient, shown: Shown) -> None:
    comparison = {**parted(1024), "outliers": ["TP1001"]}
    matrix = part(shown.page(reader, comparison), "ranks")

    assert "TP1001" in matrix
    assert matrix.count('scope="col"') == 64
    assert "960 more ranks are not drawn" in matrix


@pytest.mark.parametrize(
    "comparison",
    [
        pytest.param({"verdict": 7}, id="another shape"),
        pytest.param("rank divergence", id="a text"),
        pytest.param(None, id="none"),
    ],
)
def test_a_comparison_that_is_not_understood_leaves_the_raw_stacks(
    reader: TestClient, shown: Shown, comparison: object
) -> None:
    page = shown.page(reader, comparison)

    assert "8 of 8 ranks read, 1 sample" in page
    assert 'id="stacks"' in page
    assert 'id="ranks"' not in page


def test_nothing_in_a_comparison_becomes_markup(reader: TestClient, shown: Shown) -> None:
    comparison = comparison_of(HUNG)
    group = {**comparison["groups"][0], "ranks": [HOSTILE], "top": HOSTILE, "where": HOSTILE}
    group |= {"primitive": HOSTILE, "operation": HOSTILE, "asked_by": [HOSTILE] * 2}
    odd = {**MISSING, "rank": f"{HOSTILE}2", "reason": HOSTILE, "fix": HOSTILE, "command": HOSTILE}
    page = shown.page(
        reader,
        {
            **comparison,
            "verdict": HOSTILE,
            "says": f"{HOSTILE}. {HOSTILE}",
            "settles": [HOSTILE],
            "groups": [{**group, "frames": [f"{HOSTILE} ({HOSTILE}:1)"] * 9}],
            "divergence": {"frame": HOSTILE, "where": HOSTILE},
            "moved": {HOSTILE: False},
            "outliers": [HOSTILE],
            "states": {HOSTILE: HOSTILE},
            "missing": [odd],
            "ground": "rare",
        },
    )

    assert "<img" not in page
    assert "\x1b" not in page


def dumps(shown: Shown, client: TestClient, *documents: Any, together: Any = None) -> str:
    items = []
    for number, read in enumerate(documents):
        item = hosts.coredump(number)
        item.detail = {**item.detail, "inspected": read}
        items.append(item)
    row = hosts.diagnostic(
        shown.stores,
        shown.incident,
        shown.host,
        items,
        kind="coredump",
        answer={"coredumps": together} if together else None,
    )
    return small(client, row)


def test_a_coredump_has_a_card_with_kernels_exceptions_and_commands(
    reader: TestClient, shown: Shown
) -> None:
    page = dumps(shown, reader, inspected(FAULT, BUSY))

    assert "<h1>Coredump of TP0: CUDBG_EXCEPTION_WARP_ILLEGAL_ADDRESS (14): an illegal" in page
    card = part(page, "card-1")
    for told in (
        "look one kernel upstream",
        "void topk&lt;float&gt;(float*, int)",
        "24 × 1 × 1",
        "512 × 1 × 1",
        "NVIDIA H100",
        "24 of 132",
        "cuda-gdb",
        "/var/dumps/core_gpu-14_41871",
        "in a folder that can be thrown away",
    ):
        assert told in card


def test_a_dump_that_cannot_be_read_says_why(reader: TestClient, shown: Shown) -> None:
    page = dumps(shown, reader, {"complete": False, "note": "It ends before its tables."})

    assert "not read</span>: It ends before its tables." in page
    assert "Coredump of TP0: complete, 2.1 GB" in page


def test_dumps_of_several_ranks_are_told_together(reader: TestClient, shown: Shown) -> None:
    together = {
        "says": "All SMs with work of rank TP0 in NCCL AllGather, rank TP1 in topk. Look there.",
        "groups": [
            {"ranks": ["TP0"], "place": "NCCL AllGather", "waits": True, "faulted": False},
            {"ranks": ["TP1"], "place": "topk", "waits": False, "faulted": True},
        ],
        "missing": {"TP2": "no file"},
        "taken_by": {"TP0": 4711},
    }
    page = dumps(shown, reader, inspected(BUSY), inspected(FAULT), together=together)

    assert "<h1>All SMs with work of rank TP0 in NCCL AllGather, rank TP1 in topk</h1>" in page
    told = part(page, "dumps-together")
    assert "waits for its peers" in told
    assert "an exception" in told
    assert "no dump" in told
    assert '<a class="chip" href="/diagnostics/4711">diagnostic 4711</a>' in told
    assert 'id="card-2"' in page


def test_many_large_dumps_keep_the_page_small(reader: TestClient, shown: Shown) -> None:
    read = inspected(FAULT, BUSY)
    large = {
        **read,
        "note": HOSTILE * 200,
        "kernels": [{**read["kernels"][0], "name": '"' * 900}] * 100,
        "exceptions": [{**read["exceptions"][0], "kernel": '"' * 900}] * 100,
        "commands": ['"' * 2000] * 40,
    }
    page = dumps(shown, reader, *[large] * 40)

    assert "<img" not in page
    assert "92 more exceptions" in page


def test_a_card_of_another_shape_is_left_out(reader: TestClient, shown: Shown) -> None:
    page = dumps(shown, reader, {"complete": "perhaps"}, together=[1])

    assert 'id="card-1"' not in page
    assert "Coredump of TP0: complete" in page
