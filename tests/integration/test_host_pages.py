"""Hosts: the list, one host, registering, removing, and linking its servers to targets."""

from datetime import UTC, datetime, timedelta

import pytest
from fastapi.testclient import TestClient
from sqlmodel import select

from app.protocol.messages import Check, Processes
from app.store.database import reading
from app.store.hosts import get_host
from app.store.stores import Stores
from app.store.tables import AuditEvent, Host, TargetServer
from tests import hosts, make

KEY = "5e" * 32
FORM = {
    "name": "gpu-14",
    "agent_url": "https://10.0.0.14:8400",
    "key": KEY,
    "tls_fingerprint": "ab" * 32,
}
HOSTILE = "<script>alert(1)</script>\x1b[31m"


def links(stores: Stores) -> list[TargetServer]:
    with reading(stores.engine) as session:
        return list(session.exec(select(TargetServer)))


def now() -> datetime:
    return datetime.now(UTC)


def test_without_hosts_the_page_tells_how_to_get_an_agent(
    admin: TestClient, reader: TestClient
) -> None:
    assert "incident-console agent" in admin.get("/hosts").text
    assert "Register the host" in admin.get("/hosts").text
    assert "An admin registers it here." in reader.get("/hosts").text


def test_an_admin_registers_a_host_and_its_key_is_never_shown(
    admin: TestClient, stores: Stores
) -> None:
    answer = admin.post("/hosts/new", data=FORM)

    assert (answer.status_code, answer.headers["location"]) == (303, "/hosts/1")
    page = admin.get("/hosts/1").text + admin.get("/hosts").text + admin.get("/audit").text
    assert "gpu-14 never heard" in page
    assert KEY not in page
    with reading(stores.engine) as session:
        host = get_host(session, 1)
    assert stores.vault.unseal(host.key_sealed) == KEY
    assert KEY not in str(host.model_dump())


@pytest.mark.parametrize(
    "change",
    [
        pytest.param({"key": "not hex"}, id="a key that is none"),
        pytest.param({"agent_url": "file:///etc/passwd"}, id="a file"),
        pytest.param({"agent_url": "http://10.0.0.14:8400"}, id="plain http to elsewhere"),
        pytest.param({"tls_fingerprint": "abc"}, id="half a fingerprint"),
        pytest.param({"name": " "}, id="no name"),
    ],
)
def test_what_cannot_be_asked_is_refused(
    admin: TestClient, stores: Stores, change: dict[str, str]
) -> None:
    assert admin.post("/hosts/new", data=FORM | change).status_code == 422
    with reading(stores.engine) as session:
        assert session.exec(select(Host)).all() == []


def test_only_an_admin_registers_and_removes(
    reader: TestClient, operator: TestClient, stores: Stores
) -> None:
    hosts.host(stores)

    for client in (reader, operator):
        assert client.get("/hosts/new").status_code == 403
        assert client.post("/hosts/new", data=FORM | {"name": "x"}).status_code == 403
        assert client.post("/hosts/1/remove").status_code == 403
        assert "Remove this host" not in client.get("/hosts/1").text


def test_a_host_shows_its_servers_what_is_ready_and_what_a_restart_loses(
    reader: TestClient, stores: Stores
) -> None:
    stopped = hosts.rank(1, state="T", wchan="do_signal_stop", doubts=["its user is not known"])
    hosts.host(stores, "gpu-14", hosts.server(hosts.rank(0), stopped), heard_at=now())

    page = reader.get("/hosts/1").text

    assert "gpu-14: 1 server runs, 10 of 12 captures ready" in page
    for told in ("TP0", "41872", "stopped", "do_signal_stop", "its user is not known", "9.4 GB"):
        assert told in page
    assert "export TORCH_FR_BUFFER_SIZE=2000" in page
    assert "kill -TERM 41870" in page
    assert "31 running requests" in page
    assert page.index(">SIGTERM<") < page.index(">SIGQUIT<") < page.index(">SIGKILL<")


def test_that_not_all_of_a_host_is_listed_stands_on_its_page(
    reader: TestClient, stores: Stores
) -> None:
    busy = hosts.server(ports_known=False, processes_left_out=9)
    told = Processes(at=now(), servers=[busy], gpus="absent", servers_left_out=3)
    hosts.host(stores, heard_at=now(), processes=told.model_dump(mode="json"))

    page = reader.get("/hosts/1").text

    assert "gpu-14: 4 servers run" in page
    assert "3 more run here and are not told" in page
    assert "not all ports known" in page
    assert "9 more processes not listed" in page


def test_a_silent_host_is_told_with_its_reason_and_age(reader: TestClient, stores: Stores) -> None:
    hosts.host(stores, heard_at=now() - timedelta(minutes=9), problem="Connection refused.")
    hosts.host(stores, "gpu-15", heard_at=None)

    listed, page = reader.get("/hosts").text, reader.get("/hosts/1").text

    assert "1 of 2 hosts do not answer: gpu-14" in listed
    assert "never heard" in listed
    assert "9 min ago" in listed
    assert "gpu-14 does not answer" in page
    assert "Connection refused." in page


def test_the_machine_of_the_console_is_marked(reader: TestClient, stores: Stores) -> None:
    hosts.host(stores, embedded=True, agent_url="")

    assert "this machine" in reader.get("/hosts").text
    assert "inside this console" in reader.get("/hosts/1").text


def test_what_a_host_tells_is_shown_and_never_obeyed(reader: TestClient, stores: Stores) -> None:
    odd = hosts.rank(0, wchan=HOSTILE, doubts=[HOSTILE], container=HOSTILE)
    check = Check(capability="stacks", ready=False, says=HOSTILE, fix=HOSTILE, command=HOSTILE)
    hosts.host(
        stores,
        "gpu-14",
        hosts.server(odd, name=HOSTILE),
        ready=hosts.preflight(host=[check]),
        problem=HOSTILE,
        version=HOSTILE,
    )

    for path in ("/hosts", "/hosts/1"):
        page = reader.get(path)
        assert page.status_code == 200
        assert "<script>alert" not in page.text
        assert "\x1b" not in page.text


def test_a_removed_host_leaves_the_list_and_its_page_stays(
    admin: TestClient, stores: Stores
) -> None:
    host, target = hosts.host(stores), make.target(stores)
    hosts.link(stores, target, host)

    admin.post("/hosts/1/remove")

    assert "No host is registered" in admin.get("/hosts").text
    assert "nothing is asked of it any more" in admin.get("/hosts/1").text
    assert links(stores) == []


def test_a_server_is_proposed_by_its_port_and_linked_by_a_person(
    operator: TestClient, reader: TestClient, stores: Stores
) -> None:
    make.target(stores, "gpu-14")  # its host name is the host's
    hosts.host(stores, heard_at=now())
    proposed = operator.get("/targets/1").text
    assert "Proposed by its port" in proposed
    assert "Proposed by its port" not in reader.get("/targets/1").text

    answer = operator.post("/targets/1/servers", data={"server": f"1/{hosts.ROOT}"})

    assert (answer.status_code, answer.headers["location"]) == (303, "/targets/1")
    assert [(one.target_id, one.port, one.confirmed_by) for one in links(stores)] == [
        (1, hosts.PORT, "operator")
    ]
    page = operator.get("/targets/1").text
    assert "Proposed by its port" not in page
    assert 'linked to <a href="/targets/1">gpu-14</a>' in operator.get("/hosts/1").text
    operator.post("/targets/1/servers/unlink", data={"host_id": 1, "port": hosts.PORT})
    assert links(stores) == []
    with reading(stores.engine) as session:
        actions = [line.action for line in session.exec(select(AuditEvent))]
    assert actions.count("target.link") == actions.count("target.unlink") == 1


def test_a_server_on_another_port_can_be_linked_too(operator: TestClient, stores: Stores) -> None:
    make.target(stores, "gateway", base_url="https://gateway.example/decode-a")
    hosts.host(stores, heard_at=now())

    page = operator.get("/targets/1").text

    assert "1 other server of known hosts" in page
    operator.post("/targets/1/servers", data={"server": f"1/{hosts.ROOT}"})
    assert len(links(stores)) == 1


@pytest.mark.parametrize(
    ("server", "status"),
    [
        pytest.param(None, 422, id="nothing ticked"),
        pytest.param("1", 422, id="no server"),
        pytest.param("x/1.1", 422, id="no host number"),
        pytest.param("9/1.1", 404, id="unknown host"),
        pytest.param("1/7.7", 409, id="a server that was not seen"),
    ],
)
def test_a_link_to_nothing_is_refused(
    operator: TestClient, stores: Stores, server: str | None, status: int
) -> None:
    make.target(stores)
    hosts.host(stores)

    answer = operator.post("/targets/1/servers", data={"server": server} if server else {})

    assert answer.status_code == status
    assert links(stores) == []


def test_a_deleted_target_is_linked_with_nothing_any_more(
    admin: TestClient, operator: TestClient, stores: Stores
) -> None:
    make.target(stores)
    hosts.host(stores)
    admin.post("/targets/1/delete")
    chosen = f"1/{hosts.ROOT}"

    by_page = operator.post("/targets/1/servers", data={"server": chosen})
    servers = [{"host_id": 1, "server_id": hosts.ROOT}]
    by_api = operator.patch("/api/v1/targets/1", json={"servers": servers})

    assert (by_page.status_code, by_api.status_code) == (409, 409)
    assert links(stores) == []


def test_a_reader_links_nothing(reader: TestClient, stores: Stores) -> None:
    make.target(stores)
    hosts.host(stores)

    assert reader.post("/targets/1/servers", data={"server": f"1/{hosts.ROOT}"}).status_code == 403
    data = {"host_id": 1, "port": hosts.PORT}
    assert reader.post("/targets/1/servers/unlink", data=data).status_code == 403
