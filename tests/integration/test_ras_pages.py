"""What NCCL counts on a diagnostic's page: title, table of communicators, hostile words."""

import pytest
from fastapi.testclient import TestClient

from app.domain.ras.look import Unread, look_at
from app.domain.ras.ranks import Known
from app.domain.ras.reading import read_status
from app.domain.ras.told import told
from app.domain.ras.watch import Taken
from app.store.stores import Stores
from app.store.tables import Host, Incident
from app.web.formats import number
from tests import hosts, make, ras
from tests.make import NOON

HOSTILE = "<img src=x onerror=alert(1)>\x1b[2J"


@pytest.fixture
def incident(stores: Stores) -> Incident:
    return make.incident(stores, "decode-a hangs", make.target(stores))


@pytest.fixture
def host(stores: Stores) -> Host:
    return hosts.host(stores, "gpu-14", hosts.server(*[hosts.rank(n) for n in range(4)]))


def page(
    client: TestClient,
    stores: Stores,
    incident: Incident,
    host: Host,
    *bodies: bytes,
    unread: str | None = None,
) -> str:
    taken = [
        Taken(read_status(body), str(at), NOON.replace(second=10 * at))
        for at, body in enumerate(bodies, start=1)
    ]
    known = [Known(f"TP{n}", "gpu-14", 100 + n) for n in range(4)]
    answer = told(look_at(taken, [Unread("3", unread)] if unread else [], known))
    items = [hosts.item(0, kind="nccl ras", rank=None)]
    given = {"kind": "nccl ras", "answer": {"ras": answer}}
    row = hosts.diagnostic(stores, incident, host, items, **given)  # type: ignore[arg-type]
    answered = client.get(f"/diagnostics/{row.id}")
    assert answered.status_code == 200
    assert len(answered.content) < 200_000
    return str(answered.text)


def test_the_title_says_who_is_behind_and_the_table_what_each_answer_counts(
    reader: TestClient, stores: Stores, incident: Incident, host: Host
) -> None:
    shown = page(reader, stores, incident, host, *[ras.counts(48_211, 48_211, 48_211, 48_210)] * 2)
    assert "<h1>TP3 launched 48,210 AllReduce, others up to 48,211" in shown
    assert f"<b>TP3</b> {number(48_210)} → {number(48_210)}" in shown
    assert "none grew" in shown
    assert 'class="table__row--bad"' in shown


def test_even_counts_that_did_not_grow_are_never_green(
    reader: TestClient, stores: Stores, incident: Incident, host: Host
) -> None:
    shown = page(reader, stores, incident, host, *[ras.counts(5, 5)] * 2)
    panel = shown[shown.index('id="ras"') :]
    assert "CUDA graphs" in panel
    assert "table__row--unknown" in panel


def test_what_nccl_and_others_wrote_is_shown_and_never_run(
    reader: TestClient, stores: Stores, incident: Incident, host: Host
) -> None:
    member = ras.rank(0, 5, host=HOSTILE)
    body = ras.answer(ras.communicator([member, ras.rank(1, 4)], name=HOSTILE))
    shown = page(reader, stores, incident, host, body, unread=HOSTILE)
    assert "<img src=x" not in shown
    assert "\x1b" not in shown


def test_a_thousand_communicators_fit_on_a_page(
    reader: TestClient, stores: Stores, incident: Incident, host: Host
) -> None:
    many = [ras.communicator([ras.rank(0, 5), ras.rank(1, 4)], name=hex(n)) for n in range(1_000)]
    assert "980 more communicators" in page(reader, stores, incident, host, ras.answer(*many))
