"""From the press to the stacks: the console, its worker and a real agent on real processes."""

import sys
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import orjson
import pytest
from sqlmodel import select

from app.protocol.messages import Server
from app.store import evidence, hosts
from app.store.database import reading, writing
from app.store.stores import Stores
from app.store.tables import AuditEvent, Host, Target
from app.store.target_servers import confirm
from app.store.timeline import timeline
from tests.integration import diagnosing, make
from tests.integration.at_work import at_work
from tests.integration.conftest import MakeStores
from tests.integration.played import played
from tests.ports import free_port
from tests.waiting import BUSY, until

pytestmark = [
    pytest.mark.slow,
    pytest.mark.skipif(sys.platform != "linux", reason="looks into processes"),
]


@pytest.fixture(scope="module")
def stores(make_stores: MakeStores, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Stores]:
    with at_work(make_stores(tmp_path_factory.mktemp("data")), with_agent=True) as opened:
        yield opened


@pytest.fixture
def own_host(stores: Stores) -> Host:
    with reading(stores.engine) as session:
        [host] = [one for one in hosts.list_hosts(session) if one.embedded]
    return host


@dataclass(frozen=True)
class Serving:
    """A played server of two ranks, as the host tells it."""

    server: Server
    port: int


def _seen(stores: Stores, host: Host, port: int) -> Server | None:
    told = hosts.processes_of(diagnosing.heard(stores, host))
    found = [one for one in told.servers if port in one.ports] if told else []
    whole = [one for one in found if sum(p.role == "scheduler" for p in one.processes) == 2]
    return whole[0] if whole and not whole[0].starting else None


@pytest.fixture
def serving(stores: Stores, own_host: Host, tmp_path: Path) -> Iterator[Serving]:
    library = tmp_path / "libtorch_cpu.so"
    library.write_bytes(b"x")
    port = free_port()
    ranks = [{"title": f"sglang::scheduler_TP{n}", "maps": str(library)} for n in (0, 1)]
    node = {"listens": port, "children": [*ranks, {"title": "sglang::detokenizer"}]}
    with played(node, "--port", str(port)):
        server = until(lambda: _seen(stores, own_host, port))
        assert server is not None
        yield Serving(server, port)


@pytest.fixture
def target(stores: Stores, own_host: Host, serving: Serving) -> Target:
    url = f"http://127.0.0.1:{serving.port}"
    row = make.target(stores, url, f"decode-{serving.port}")
    with writing(stores.engine) as session:
        confirm(session, row, own_host.id or 0, serving.server.id, make.MIRA, make.now())
    return row


def test_stacks_of_all_ranks_are_there_in_three_seconds_and_come_in_samples(
    stores: Stores, target: Target
) -> None:
    diagnostic_id = diagnosing.press(
        stores, diagnosing.incident(stores, target), samples=2, interval_seconds=2.0
    )
    asked_at = diagnosing.diagnostic(stores, diagnostic_id).asked_at
    until(lambda: diagnosing.items(stores, diagnostic_id))
    assert (make.now() - asked_at).total_seconds() < 3.0 * BUSY
    row = diagnosing.ended(stores, diagnostic_id)
    assert (row.state, row.says) == ("done", f"Stacks of 2 processes on {row.hosts[0]['name']}.")
    items = diagnosing.items(stores, diagnostic_id)
    expected = [("TP0", 1), ("TP1", 1), ("TP0", 2), ("TP1", 2)]
    assert [(one.rank, one.sample) for one in items] == expected
    assert {(one.state, one.mode, one.exact) for one in items} == {("done", "plain", True)}
    between = items[2].taken_at - items[0].taken_at  # type: ignore[operator]
    assert 0.5 < between.total_seconds() < 2.0 * BUSY


def test_what_was_taken_is_evidence_with_its_custody(stores: Stores, target: Target) -> None:
    incident_id = diagnosing.incident(stores, target)
    diagnostic_id = diagnosing.press(stores, incident_id)
    diagnosing.ended(stores, diagnostic_id)
    [one, _] = diagnosing.items(stores, diagnostic_id)
    with reading(stores.engine) as session:
        artifact = evidence.get_artifact(session, one.artifact_id or 0)
        told = timeline(session, incident_id)
        moments = [(m.kind, m.actor, m.says) for m in told if m.kind != "IncidentOpened"]
        audit = [row.action for row in session.exec(select(AuditEvent))]
    assert (artifact.kind, artifact.tier, artifact.taken_by) == ("stacks", "T1", "mira")
    assert artifact.taken_from == f"host {one.host_name}"
    assert artifact.covers_from == one.taken_at
    stacks = orjson.loads(stores.artifacts.read(artifact.sha256, 10**6))
    assert {thread["pid"] for thread in stacks} == {one.pid}
    assert moments[0] == ("DiagnosticTaken", "mira", f"Stacks of 2 processes on {one.host_name}.")
    assert moments[1][2] == f"Taking stacks from {target.name} was asked for."
    assert {"job.diagnose", "diagnostic.finish"} <= set(audit)


def test_a_process_that_is_gone_is_told_with_its_reason(stores: Stores, own_host: Host) -> None:
    diagnostic_id = diagnosing.press(
        stores, diagnosing.incident(stores), host_ids=[own_host.id], process_ids=["999999.1"]
    )
    row = diagnosing.ended(stores, diagnostic_id)
    [item] = diagnosing.items(stores, diagnostic_id)
    assert (row.state, item.state, item.artifact_id) == ("refused", "refused", None)
    assert item.says in row.says


def test_facts_of_the_host_come_with_their_files(
    stores: Stores, target: Target, own_host: Host
) -> None:
    diagnostic_id = diagnosing.press(stores, diagnosing.incident(stores, target), "host facts")
    row = diagnosing.ended(stores, diagnostic_id, seconds=60)
    assert row.state == "done", row.says
    assert row.answer is not None
    [answer] = row.answer["hosts"]
    assert (answer["name"], answer["host_id"]) == (own_host.name, own_host.id)
    assert {fact["topic"] for fact in answer["facts"]} >= {"memory"}
