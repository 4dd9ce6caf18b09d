"""Next steps on an incident's page: each with the button that does it, where one does."""

import re
from datetime import UTC, datetime, timedelta

import pytest
from fastapi.testclient import TestClient

from app.protocol.messages import Check, Readiness
from app.store.stores import Stores
from app.store.tables import Host, Incident, Target
from tests import hosts, make, situations

AT = datetime.now(UTC) - timedelta(minutes=5)
SOON = AT + timedelta(minutes=1)
ASKS = "Take the stacks of every scheduler now"


def stuck(stores: Stores, *targets: Target) -> Incident:
    """An incident whose newest bundle, of the first target, calls for stacks."""
    incident = make.incident(stores, "It hangs", *targets, at=AT)
    make.bundle(stores, incident, targets[0], situations.stuck(), at=AT)
    return incident


def linked(stores: Stores, target: Target, name: str = "gpu-14", *, ready: bool = True) -> Host:
    """A host on which the server of *target* runs; *ready* is what is said of stacks."""
    check = Check(capability="stacks", ready=ready, says="py-spy is missing", fix="Install it.")
    told = [Readiness(process_id=hosts.rank(0).id, title="x", checks=hosts.checks(check))]
    ready_told = hosts.preflight(processes=told)
    host = hosts.host(stores, name, heard_at=datetime.now(UTC), ready=ready_told)
    hosts.link(stores, target, host)
    return host


def steps(client: TestClient, query: str = "") -> str:
    """The markup of the next steps."""
    page = client.get(f"/incidents/1{query}").text
    found = re.search(r'<section class="panel" id="next".*?</section>', page, re.DOTALL)
    assert found is not None
    return found[0]


def button(part: str, kind: str) -> str | None:
    """The key of the server that the button for *kind* is about."""
    found = re.search(rf'name="kind" value="{kind}"><[^>]*name="server" value="([^"]*)"', part)
    return found[1] if found else None


def test_a_step_has_the_button_of_its_rung_and_keeps_the_command(
    operator: TestClient, stores: Stores
) -> None:
    target = make.target(stores)
    stuck(stores, target)
    linked(stores, target)

    part = steps(operator)

    assert ASKS in part
    assert 'hx-post="/incidents/1/diagnostics"' in part
    assert "Copy command" in part
    assert "data-key=" not in part, "the key is that of the ladder"
    data = {"kind": "stacks", "server": button(part, "stacks")}
    assert operator.post("/incidents/1/diagnostics", data=data).status_code == 303


def test_ids_on_the_page_stay_unique(operator: TestClient, stores: Stores) -> None:
    target = make.target(stores)
    stuck(stores, target)
    linked(stores, target)

    ids = re.findall(r'\sid="([^"]+)"', operator.get("/incidents/1").text)

    assert len(ids) == len(set(ids))


def test_what_is_not_possible_is_disabled_with_its_reason(
    operator: TestClient, stores: Stores
) -> None:
    target = make.target(stores)
    stuck(stores, target)
    linked(stores, target, ready=False)

    part = steps(operator)

    assert '<button class="button" disabled>Take</button>' in part
    assert "not possible</span>: py-spy is missing Fix: Install it." in part
    assert button(part, "stacks") is None


def test_without_a_linked_server_a_step_leads_to_the_ladder(
    operator: TestClient, stores: Stores
) -> None:
    stuck(stores, make.target(stores))

    part = steps(operator)

    assert '<a class="button" href="#ladder">Link a server</a>' in part
    assert "Copy command" in part
    assert button(part, "stacks") is None


def test_a_step_is_never_a_button_for_another_server(operator: TestClient, stores: Stores) -> None:
    other, about = make.target(stores, "a-other"), make.target(stores, "b-stuck")
    stuck(stores, about, other)
    linked(stores, other, "gpu-14")
    linked(stores, about, "gpu-15")

    part = steps(operator)

    assert button(part, "stacks") is None
    assert f'href="?server={about.id}#ladder">Choose the server</a>' in part
    assert button(steps(operator, f"?server={about.id}"), "stacks") == str(about.id)


def test_a_reader_cannot_press_a_step(reader: TestClient, stores: Stores) -> None:
    target = make.target(stores)
    stuck(stores, target)
    linked(stores, target)

    assert "<form" not in steps(reader)


@pytest.mark.parametrize("kind", ["stacks", "native stacks"])
def test_once_stacks_are_here_the_step_links_to_them(
    operator: TestClient, stores: Stores, kind: str
) -> None:
    target = make.target(stores)
    incident = stuck(stores, target)
    host = linked(stores, target)
    items = [hosts.item(0), hosts.item(1)]
    hosts.diagnostic(stores, incident, host, items, kind=kind, at=SOON, target_id=target.id)

    part = steps(operator)

    assert "Stacks were asked for since this bundle." in part
    assert 'href="/diagnostics/1"' in part
    assert "2 of 2 ranks read" in part
    assert ASKS not in part
    assert "until the stacks are saved" not in part
    assert button(part, "stacks") is None


@pytest.mark.parametrize(
    ("given", "of_another"),
    [
        pytest.param({"at": AT - timedelta(minutes=9)}, False, id="before the bundle"),
        pytest.param({"at": SOON, "state": "refused"}, False, id="refused"),
        pytest.param({"at": SOON, "kind": "host facts"}, False, id="something else"),
        pytest.param({"at": SOON}, True, id="of another target"),
    ],
)
def test_what_is_no_answer_to_the_step_leaves_it_as_it_is(
    operator: TestClient, stores: Stores, given: dict[str, object], of_another: bool
) -> None:
    about, other = make.target(stores), make.target(stores, "decode-b")
    incident = stuck(stores, about, other)
    host = linked(stores, about)
    target_id = other.id if of_another else about.id
    hosts.diagnostic(stores, incident, host, target_id=target_id, **given)  # type: ignore[arg-type]

    part = steps(operator)

    assert ASKS in part
    assert "until the stacks are saved" in part
    assert button(part, "stacks") == str(about.id)


def test_while_stacks_are_being_taken_the_step_says_so(
    operator: TestClient, stores: Stores
) -> None:
    target = make.target(stores)
    incident = stuck(stores, target)
    host = linked(stores, target)
    hosts.diagnostic(stores, incident, host, state="running", at=SOON, target_id=target.id)

    part = steps(operator)

    assert "Taking stacks, not finished yet" in part
    assert "until the stacks are saved" in part, "they are not saved yet"


def test_a_crash_dump_that_cannot_be_written_hides_no_old_ones(
    operator: TestClient, stores: Stores
) -> None:
    target = make.target(stores)
    make.incident(stores, "It crashed", target)
    off = Check(capability="crash dump", ready=False, says="No crash dump folder.")
    told = [Readiness(process_id=hosts.rank(0).id, title="x", checks=[off])]
    host = hosts.host(stores, heard_at=datetime.now(UTC), ready=hosts.preflight(processes=told))
    hosts.link(stores, target, host)

    page = operator.get("/incidents/1").text
    found = re.search(r'id="rung-server-dumps">.*?\n</li>', page, re.DOTALL)

    assert found is not None
    assert "not known</span>: old dumps may lie in its folders" in found[0]
    assert button(found[0], "server dumps") is not None
