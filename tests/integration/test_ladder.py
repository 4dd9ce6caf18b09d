"""The evidence ladder of an incident: readiness, cost, and pressing what it offers."""

import re
from datetime import UTC, datetime, timedelta

import pytest
from fastapi.testclient import TestClient
from sqlmodel import select

from app.domain.ladder import RUNGS
from app.protocol.messages import Check, Readiness
from app.store.database import reading
from app.store.stores import Stores
from app.store.tables import Diagnostic, Host, Job, Target
from tests import hosts, make


def now() -> datetime:
    return datetime.now(UTC)


def linked(stores: Stores, *, ready: bool | None = True, ranks: int = 2) -> tuple[Target, Host]:
    """decode-a with a linked server; *ready* is what preflight says of stacks."""
    check = Check(
        capability="stacks", ready=ready, says="py-spy is missing", fix="Install it.",
        command="pip install py-spy",
    )  # fmt: skip
    processes = [hosts.rank(number) for number in range(ranks)]
    told = [
        Readiness(process_id=one.id, title=one.title, checks=hosts.checks(check))
        for one in processes
    ]
    target = make.target(stores)
    host = hosts.host(
        stores,
        "gpu-14",
        hosts.server(*processes),
        heard_at=now(),
        ready=hosts.preflight(processes=told),
    )
    hosts.link(stores, target, host)
    make.incident(stores, "decode-a hangs", target)
    return target, host


def asked(stores: Stores) -> list[Diagnostic]:
    with reading(stores.engine) as session:
        return list(session.exec(select(Diagnostic)))


def rung(page: str, kind: str) -> str:
    """The markup of one rung."""
    found = re.search(rf'<li class="rung rung--\d" id="rung-{kind}">.*?\n</li>', page, re.DOTALL)
    assert found is not None, kind
    return found[0]


def press(client: TestClient, kind: str, **fields: str) -> int:
    data = {"kind": kind, "server": "1", **fields}
    status: int = client.post("/incidents/1/diagnostics", data=data).status_code
    return status


def test_without_a_linked_server_the_ladder_says_so_and_where_to_link_it(
    operator: TestClient, stores: Stores
) -> None:
    make.incident(stores, "decode-a hangs", make.target(stores))

    page = operator.get("/incidents/1").text

    assert "No server is linked" in page
    assert 'href="/targets/1#servers"' in page
    for one in RUNGS:
        assert '<button class="button" disabled>' in rung(page, one.kind.replace(" ", "-"))
    assert press(operator, "stacks") == 404


def test_every_rung_tells_cost_readiness_and_last_run(operator: TestClient, stores: Stores) -> None:
    _, host = linked(stores)
    another = make.incident(stores, "another", make.target(stores, "b"))
    hosts.diagnostic(stores, another, host, says="elsewhere")

    page = operator.get("/incidents/1").text

    stacks = rung(page, "stacks")
    assert "ready</span>: py-spy is missing" in stacks  # what preflight said, word for word
    assert "never here" in stacks
    assert "not possible" in rung(page, "flight-recorder")
    assert "TORCH_FR_BUFFER_SIZE" in rung(page, "flight-recorder")
    assert "not known" in rung(page, "nccl-ras")
    assert "elsewhere" not in page
    order = [page.index(f'id="rung-{one.kind.replace(" ", "-")}"') for one in RUNGS]
    assert order == sorted(order)
    for line in {one.effect for one in RUNGS}:
        assert f'<li class="ladder__line">{line}</li>' in page


def test_what_is_not_possible_cannot_be_pressed_and_names_the_one_fix(
    operator: TestClient, stores: Stores
) -> None:
    linked(stores, ready=False)

    stacks = rung(operator.get("/incidents/1").text, "stacks")

    assert "not possible" in stacks
    assert "pip install py-spy" in stacks
    assert "disabled" in stacks


def test_what_is_not_known_is_hatched_and_may_be_tried(
    operator: TestClient, stores: Stores
) -> None:
    linked(stores, ready=None)

    stacks = rung(operator.get("/incidents/1").text, "stacks")

    assert "mark--unknown" in stacks
    assert "disabled" not in stacks


def test_one_press_takes_three_samples_of_all_ranks(operator: TestClient, stores: Stores) -> None:
    linked(stores)
    form = rung(operator.get("/incidents/1").text, "stacks")
    assert 'data-key="s"' in form
    assert "<details" not in form

    answer = operator.post("/incidents/1/diagnostics", data={"kind": "stacks", "server": "1"})

    assert (answer.status_code, answer.headers["location"]) == (303, "/diagnostics/1")
    (row,) = asked(stores)
    assert row.hosts[0]["process_ids"] == [hosts.rank(0).id, hosts.rank(1).id]
    with reading(stores.engine) as session:
        job = session.get_one(Job, row.job_id)
    assert (job.arguments["samples"], job.arguments["interval_seconds"]) == (3, 5.0)
    page = operator.get("/diagnostics/1").text
    assert "Taking stacks from decode-a" in page
    assert 'hx-sse:connect="/jobs/1/events"' in page
    assert "diagnostic 1" in rung(operator.get("/incidents/1").text, "stacks")
    assert 'href="/diagnostics/1"' in operator.get("/jobs/1").text


@pytest.mark.parametrize("kind", [one.kind for one in RUNGS if one.warns])
def test_what_disturbs_the_target_says_so_before_it_can_be_pressed(
    operator: TestClient, stores: Stores, kind: str
) -> None:
    recorder = Check(capability="flight recorder", ready=True, says="on")
    told = Readiness(process_id=hosts.rank(0).id, title="TP0", checks=hosts.checks(recorder))
    target, ready = make.target(stores), hosts.preflight(processes=[told])
    hosts.link(stores, target, hosts.host(stores, heard_at=now(), ready=ready))
    make.incident(stores, "decode-a hangs", target)

    part = rung(operator.get("/incidents/1").text, kind.replace(" ", "-"))

    warning = next(one.warns for one in RUNGS if one.kind == kind)
    assert f"<p>{warning}</p>" in part
    assert part.index('<details class="confirm"') < part.index('<form class="confirm__ask"')
    assert "data-key" not in part


def test_a_coredump_needs_the_name_of_its_host(operator: TestClient, stores: Stores) -> None:
    linked(stores)
    part = rung(operator.get("/incidents/1").text, "coredump")
    assert "Type the host name" in part
    assert "<code>gpu-14</code>" in part
    assert "262 GB for all ranks" in part

    assert press(operator, "coredump") == 409
    assert press(operator, "coredump", confirm="gpu-15") == 409
    assert asked(stores) == []
    tp1 = hosts.rank(1).id
    assert press(operator, "coredump", confirm="gpu-14", process_id=tp1) == 303
    assert asked(stores)[0].hosts[0]["process_ids"] == [tp1]


def test_a_process_that_is_no_rank_of_the_server_is_refused(
    operator: TestClient, stores: Stores
) -> None:
    linked(stores)

    assert press(operator, "cpu profile", process_id="1.1") == 404
    assert press(operator, "stacks", server="2") == 404
    assert press(operator, "everything") == 422
    assert asked(stores) == []


def test_a_reader_sees_the_ladder_and_cannot_press(reader: TestClient, stores: Stores) -> None:
    linked(stores)

    page = reader.get("/incidents/1").text

    assert "py-spy is missing" in rung(page, "stacks")
    assert 'action="/incidents/1/diagnostics"' not in page
    assert press(reader, "stacks") == 403


def test_of_several_servers_one_is_chosen_by_a_link(operator: TestClient, stores: Stores) -> None:
    first, second = make.target(stores), make.target(stores, "decode-b")
    for name, target in (("gpu-14", first), ("gpu-15", second)):
        hosts.link(stores, target, hosts.host(stores, name, heard_at=now()))
    make.incident(stores, "Both hang", first, second)

    plain = operator.get("/incidents/1").text
    chosen = operator.get("/incidents/1?server=2").text

    assert 'href="/incidents/1?server=2#ladder"' in plain
    assert 'name="server" value="1"' in rung(plain, "stacks")
    assert 'name="server" value="2"' in rung(chosen, "stacks")
    assert "<code>gpu-15</code>" in rung(chosen, "coredump")


def test_the_ladder_tells_when_the_host_is_silent_and_when_the_server_is_gone(
    operator: TestClient, stores: Stores
) -> None:
    silent = hosts.host(stores, heard_at=now() - timedelta(minutes=9), problem="Refused.")
    gone = hosts.host(stores, "gpu-15", hosts.server(id="5.5", ports=[1]), heard_at=now())
    for name, host in (("a", silent), ("b", gone)):
        target = make.target(stores, name)
        hosts.link(stores, target, host)
        make.incident(stores, name, target)

    assert "gpu-14 does not answer" in operator.get("/incidents/1").text
    lost = operator.get("/incidents/2").text
    assert "not found on gpu-15" in lost
    assert "disabled" in rung(lost, "stacks")


def test_what_a_restart_would_lose_stands_on_the_incident(
    reader: TestClient, stores: Stores
) -> None:
    linked(stores)

    page = reader.get("/incidents/1").text

    folded = re.search(
        r'<details class="panel__fold"><summary[^>]*><h2 id="restart-h">.*?</summary>',
        page,
        re.DOTALL,
    )
    assert folded is not None
    assert "End it with SIGTERM, and wait 65 s before anything harder." in folded[0]
    assert page.count("End it with SIGTERM") == 1
    assert "kill -TERM 41870" in page
    assert "the crash dump in /var/dumps" in page
    assert "whether the loop still turns" in page


def test_a_clock_that_nothing_keeps_takes_nothing_from_the_facts_of_the_host(
    reader: TestClient, stores: Stores
) -> None:
    clock = Check(capability="clock", ready=False, says="nothing keeps it", fix="Start NTP.")
    ready = hosts.preflight(now())
    ready = hosts.preflight(now(), host=[clock, *ready.host])
    target = make.target(stores)
    hosts.link(stores, target, hosts.host(stores, heard_at=now(), ready=ready))
    make.incident(stores, "decode-a hangs", target)

    facts = rung(reader.get("/incidents/1").text, "host-facts")

    assert "ready</span>: readable" in facts
    assert "nothing keeps it" not in facts
    page = reader.get("/hosts/1").text
    assert '<th scope="row">Clock</th>' in page
    assert "nothing keeps it" in page


def test_the_profiler_is_a_command_to_copy_and_nothing_to_press(
    operator: TestClient, stores: Stores
) -> None:
    target = make.target(stores, base_url="http://10.0.0.7:30000/it's")
    make.incident(stores, "slow", target)

    page = operator.get("/incidents/1").text

    assert "/start_profile" in page
    assert "not started from here" in page
    assert 'action="/start_profile' not in page


def test_ready_for_some_ranks_is_told_as_such_with_the_worst_of_the_others(
    operator: TestClient, stores: Stores
) -> None:
    missing = Check(capability="stacks", ready=False, says="of another user", fix="Allow it.")
    told = [
        Readiness(process_id=hosts.rank(n).id, title="x", checks=hosts.checks(*over))
        for n, over in enumerate(((), (missing,)))
    ]
    target, ready = make.target(stores), hosts.preflight(processes=told)
    hosts.link(stores, target, hosts.host(stores, heard_at=now(), ready=ready))
    make.incident(stores, "decode-a hangs", target)

    stacks = rung(operator.get("/incidents/1").text, "stacks")

    assert "ready in part</span>: 1 of 2; TP1: of another user" in stacks
    assert "Allow it." in stacks
    assert "disabled" not in stacks


def test_a_server_that_preflight_has_not_seen_is_not_called_ready(
    operator: TestClient, stores: Stores
) -> None:
    target, ready = make.target(stores), hosts.preflight(processes=[])
    hosts.link(stores, target, hosts.host(stores, heard_at=now(), ready=ready))
    make.incident(stores, "decode-a hangs", target)

    page = operator.get("/incidents/1").text

    assert "preflight has not looked at this server yet" in rung(page, "stacks")
    assert "ready</span>: readable" in rung(page, "host-facts")  # is of the host
