"""Hosts and the servers that targets are: registered, linked, lost and found again."""

from collections.abc import Iterator

import pytest
from sqlmodel import select

from app.errors import Conflict, NotFound, Rejected
from app.jobs.hosts import Hearings
from app.protocol.messages import Server
from app.store import chosen, hosts
from app.store.database import reading, writing
from app.store.diagnostics import last_of_kind
from app.store.hosts import NewHost
from app.store.own_host import own_host
from app.store.stores import Stores
from app.store.tables import AuditEvent, Host, Target
from app.store.target_servers import confirm, link_exactly, links_of, proposals, servers_of, unlink
from tests import make as rows
from tests.integration import diagnosing, make
from tests.integration.agent_double import Double, agent_double
from tests.integration.conftest import MakeStores
from tests.integration.diagnosing import ROOT, TP0, TP1
from tests.integration.test_agent_client import info

URL = "https://gpu-14.example:8400"


@pytest.fixture
def stores(make_stores: MakeStores, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Stores]:
    opened = make_stores(tmp_path_factory.mktemp("data"))
    yield opened
    opened.close()


def _host(stores: Stores, name: str = "gpu-14", *servers: Server, url: str = URL) -> Host:
    new = NewHost(name, url, "ab" * 32, "cd" * 32)
    with writing(stores.engine) as session:
        row = hosts.register_host(session, new, vault=stores.vault, actor=rows.ADA, at=make.now())
        told = diagnosing.processes(*servers)
        hosts.note_heard(session, row.id or 0, processes=told, at=make.now())
    return row


def _seen(stores: Stores, host: Host, *servers: Server) -> None:
    with writing(stores.engine) as session:
        told = diagnosing.processes(*servers)
        hosts.note_heard(session, host.id or 0, processes=told, at=make.now())


def _link(stores: Stores, target: Target, host: Host, server_id: str = ROOT) -> None:
    with writing(stores.engine) as session:
        confirm(session, target, host.id or 0, server_id, make.MIRA, make.now())


def test_the_key_of_a_host_is_sealed_and_in_no_log(stores: Stores) -> None:
    host = _host(stores)
    assert "ab" * 32 not in str(host.model_dump())
    assert stores.vault.unseal(host.key_sealed) == "ab" * 32
    with reading(stores.engine) as session:
        [line] = session.exec(select(AuditEvent).where(AuditEvent.action == "host.create"))
    assert line.detail == {"name": "gpu-14", "agent_url": URL, "fingerprint": "cd" * 32}


def test_a_name_is_given_once_and_free_again_when_the_host_is_removed(stores: Stores) -> None:
    host = _host(stores)
    with pytest.raises(Conflict, match="a host gpu-14 already"):
        _host(stores)
    with writing(stores.engine) as session:
        hosts.remove_host(session, hosts.get_host(session, host.id or 0), rows.ADA, make.now())
    again = _host(stores)
    with reading(stores.engine) as session:
        assert [one.id for one in hosts.list_hosts(session)] == [again.id]
        old = hosts.get_host(session, host.id or 0)
    assert (old.key_sealed, old.name) == ("", f"gpu-14 (removed #{host.id})")
    with pytest.raises(Rejected, match="is removed"):
        stores.agents.open(old)


def test_a_problem_leaves_what_was_heard_before(stores: Stores) -> None:
    host = _host(stores, "gpu-14", diagnosing.server())
    with writing(stores.engine) as session:
        hosts.note_heard(session, host.id or 0, problem="It is silent.", at=make.now())
    with reading(stores.engine) as session:
        row = hosts.get_host(session, host.id or 0)
        told = hosts.processes_of(row)
    assert (row.problem, told and told.servers[0].name) == ("It is silent.", "sglang on port 30000")


def test_the_host_of_the_console_keeps_its_row_over_restarts(stores: Stores) -> None:
    def start(agent_id: str) -> Host | None:
        with writing(stores.engine) as session:
            return own_host(session, "vm", agent_id, bytes(32), vault=stores.vault, at=make.now())

    first, second, emptied = start("a1"), start("a1"), start("b2")
    assert first is not None
    assert second is not None
    assert emptied is not None
    assert first.id == second.id == emptied.id
    assert (first.name, first.embedded, emptied.agent_id) == ("vm", True, "b2")
    with writing(stores.engine) as session:
        hosts.remove_host(session, hosts.get_host(session, first.id or 0), rows.ADA, make.now())
    assert start("b2") is None, "what an admin removed stays removed"


def test_a_server_on_the_port_of_the_target_is_proposed_its_own_machine_first(
    stores: Stores,
) -> None:
    other = _host(stores, "gpu-15", diagnosing.server(), url="https://gpu-15.example:8400")
    right = _host(stores, "gpu-14", diagnosing.server(), diagnosing.server(31000, id="7.7"))
    target = make.target(stores, "http://gpu-14.example:30000")
    with reading(stores.engine) as session:
        found = proposals(session, target)
    assert [one.host.id for one in found] == [right.id, other.id]
    assert "where the target's address leads" in found[0].why
    assert "is not known here" in found[1].why
    _link(stores, target, right)
    with reading(stores.engine) as session:
        assert [one.host.id for one in proposals(session, target)] == [other.id]


@pytest.mark.parametrize(
    ("now_seen", "server_id", "says"),
    [
        pytest.param([diagnosing.server()], ROOT, "that was confirmed", id="the-same"),
        pytest.param([diagnosing.server(id="9.9")], "9.9", "Restarted", id="restarted"),
        pytest.param([], None, "No sglang server listens on port 30000", id="gone"),
        pytest.param(
            [diagnosing.server(id="9.9"), diagnosing.server(id="8.8")],
            None,
            "2 servers listen on port 30000",
            id="two",
        ),
        pytest.param(
            [diagnosing.server(engine="vllm", id="9.9")], None, "No sglang", id="another-engine"
        ),
    ],
)
def test_a_link_survives_a_restart_and_says_when_it_does_not(
    stores: Stores, now_seen: list[Server], server_id: str | None, says: str
) -> None:
    host, target = _host(stores, "gpu-14", diagnosing.server()), make.target(stores)
    _link(stores, target, host)
    _seen(stores, host, *now_seen)
    with reading(stores.engine) as session:
        [linked] = servers_of(session, target)
    assert (linked.server and linked.server.id) == server_id
    assert says in linked.says


def test_only_a_server_that_was_seen_can_be_confirmed(stores: Stores) -> None:
    host, target = _host(stores, "gpu-14", diagnosing.server()), make.target(stores)
    with pytest.raises(Conflict, match=r"No server 9\.9 was seen on gpu-14"):
        _link(stores, target, host, "9.9")


def test_links_are_set_as_a_whole_and_taken_back(stores: Stores) -> None:
    host = _host(stores, "gpu-14", diagnosing.server(), diagnosing.server(31000, id="7.7"))
    target = make.target(stores)
    _link(stores, target, host)
    with writing(stores.engine) as session:
        link_exactly(session, target, [(host.id or 0, "7.7")], make.MIRA, make.now())
    with reading(stores.engine) as session:
        assert [one.server_id for one in links_of(session, target)] == ["7.7"]
    with writing(stores.engine) as session:
        unlink(session, target, host.id or 0, 31000, make.MIRA, make.now())
    with reading(stores.engine) as session, pytest.raises(NotFound):
        unlink(session, target, host.id or 0, 31000, make.MIRA, make.now())


def test_the_schedulers_are_those_of_the_target_s_server_only(stores: Stores) -> None:
    host = _host(stores, "gpu-14", diagnosing.server(), diagnosing.server(31000, id="7.7"))
    target = make.target(stores)
    _link(stores, target, host)
    with reading(stores.engine) as session:
        [found] = chosen.of_schedulers(session, target, ())
    assert (found.host.id, found.process_ids, [s.id for s in found.servers]) == (
        host.id,
        (TP0, TP1),
        [ROOT],
    )


def test_two_servers_on_a_host_are_ambiguous_and_both_named(stores: Stores) -> None:
    host = _host(stores, "gpu-14", diagnosing.server(), diagnosing.server(31000, id="7.7"))
    with reading(stores.engine) as session, pytest.raises(Conflict) as caught:
        chosen.of_schedulers(session, None, [host.id or 0])
    assert "sglang on port 30000 (100.1) on gpu-14" in caught.value.detail
    assert "sglang on port 31000 (7.7) on gpu-14" in caught.value.detail


def test_a_target_without_a_link_is_not_guessed(stores: Stores) -> None:
    _host(stores, "gpu-14", diagnosing.server())
    target = make.target(stores, "http://gpu-14.example:30000")
    with pytest.raises(Conflict) as caught:
        diagnosing.press(stores, diagnosing.incident(stores, target))
    assert "not linked with a server" in caught.value.detail
    assert "sglang on port 30000 on gpu-14" in caught.value.detail


def test_part_of_a_server_is_not_taken_for_all_of_it(stores: Stores) -> None:
    one = _host(stores, "gpu-14", diagnosing.server())
    two = _host(stores, "gpu-15", diagnosing.server(), url="https://gpu-15.example:8400")
    target = make.target(stores)
    _link(stores, target, one)
    _link(stores, target, two)
    _seen(stores, two)
    with pytest.raises(Conflict, match="port 30000 of gpu-15 any more"):
        diagnosing.press(stores, diagnosing.incident(stores, target))


def test_a_port_that_could_not_be_looked_for_is_not_called_closed(stores: Stores) -> None:
    host, target = _host(stores, "gpu-14", diagnosing.server()), make.target(stores)
    _link(stores, target, host)
    _seen(stores, host, diagnosing.server(31000, id="7.7", ports_known=False))
    with reading(stores.engine) as session:
        [link] = servers_of(session, target)
    assert (link.server, "is not known" in link.says) == (None, True)


@pytest.mark.parametrize("typed", [None, "", "gpu-15", "gpu"], ids=str)
def test_a_coredump_is_confirmed_by_the_name_of_its_host(stores: Stores, typed: str | None) -> None:
    host, target = _host(stores, "gpu-14", diagnosing.server()), make.target(stores)
    _link(stores, target, host)
    incident_id = diagnosing.incident(stores, target)
    with pytest.raises(Conflict) as caught:
        diagnosing.press(stores, incident_id, "coredump", confirm=typed)
    assert "ask 2 processes on gpu-14 for a CUDA coredump" in caught.value.detail
    diagnostic_id = diagnosing.press(stores, incident_id, "coredump", confirm="gpu-14")
    with reading(stores.engine) as session:
        assert last_of_kind(session, incident_id)["coredump"].id == diagnostic_id
    assert diagnosing.job(stores, diagnostic_id).intrusive


def test_a_process_of_a_linked_server_brings_its_target(stores: Stores) -> None:
    host, target = _host(stores, "gpu-14", diagnosing.server()), make.target(stores)
    _link(stores, target, host)
    diagnostic_id = diagnosing.press(stores, diagnosing.incident(stores), process_ids=[TP1])
    row = diagnosing.diagnostic(stores, diagnostic_id)
    assert (row.target_id, row.hosts[0]["ranks"]) == (target.id, {TP1: "TP1"})


def test_every_host_is_heard_and_a_silent_one_is_noted(stores: Stores) -> None:
    told = diagnosing.processes(diagnosing.server())
    says = {"GET /info": info, "GET /processes": lambda _: told}
    with agent_double(Double(says=says)) as double:
        host = diagnosing.host(stores, double, "gpu-14")
        silent = diagnosing.host(stores, Double(url="http://127.0.0.1:9"), "gpu-15")
        hearings = [Hearings(stores), Hearings(stores)]
        for one in hearings:
            one.begin(make.now())
        for one in hearings:
            one.end()
    with reading(stores.engine) as session:
        heard, other = (hosts.get_host(session, one.id or 0) for one in (host, silent))
    assert double.times("GET /info") == 1, "of two workers one asks"
    assert (heard.version, heard.agent_id) == ("0.1", "00000000000000a1")
    assert abs(heard.clock_offset_seconds or 9) < 1
    assert hosts.processes_of(heard) == told
    assert other.problem is not None
    assert "Nothing listens there" in other.problem
