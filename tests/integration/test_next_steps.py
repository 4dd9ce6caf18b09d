"""Next steps on an incident's page: each with the button that does it, where one does."""

import re
from dataclasses import asdict
from datetime import UTC, datetime, timedelta
from typing import Any, get_args

import pytest
from fastapi.testclient import TestClient

from app.domain.findings import Conclusion, Open
from app.domain.places import Place
from app.domain.replay_findings import Sent, replay_findings
from app.protocol.messages import Check, Readiness
from app.store.stores import Stores
from app.store.tables import Host, Incident, Target
from tests import hosts, kept_replays, make, recorded, situations

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


def open_still(stores: Stores, *steps: dict[str, Any]) -> None:
    """An incident whose server is well, with a replay that left *steps*, as its job keeps them."""
    target = make.target(stores)
    incident = make.incident(stores, "It crashed", target, at=AT)
    make.bundle(stores, incident, target, situations.healthy(), at=AT)
    dump = make.dump(stores, incident, recorded.dump([recorded.request(0)]), at=AT)
    clean = make.target(stores, "debug-1", clean=True)
    found = {**Conclusion(()).as_json(), "settles": list(steps)}
    trial = kept_replays.outcomes(1)
    kept_replays.replay(stores, incident, dump, clean, trials=[trial], at=AT, found=found)


def test_what_a_replay_leaves_to_be_done_is_on_its_page(
    operator: TestClient, reader: TestClient, stores: Stores
) -> None:
    sent = Sent("debug-1", {"verdict": "reproduced", "status": "supported"}, 1)
    open_still(stores, *replay_findings(1, [sent]).as_json()["settles"])

    for client in (operator, reader):
        part = steps(client)
        assert "Reduce the requests of replay 1 to the smallest set" in part
        assert '<a class="button" href="/replays/1#then">Open replay 1</a>' in part
    assert 'id="then"' in operator.get("/replays/1").text


PLACES = {
    "collect": ("operator", "#rung-bundle"),
    "ask once": ("operator", "#confirm-probe"),
    "note": ("operator", "#note"),
    "record": ("operator", "/incidents/1/recording"),
    "paste": ("operator", "/incidents/1/payload"),
    "ask for a replay": ("operator", "/incidents/1/replays/new"),
    "register": ("admin", "/targets/new"),
    "edit target": ("admin", "/targets/1/edit"),
    "replay": ("reader", "/replays/7#then"),
}
ROLES = ("reader", "operator", "admin")


ONE_OF: dict[str, Place] = {one: one for one in get_args(Place)}


def test_every_place_that_a_step_can_name_is_linked() -> None:
    assert set(PLACES) == set(ONE_OF)


@pytest.mark.parametrize("place", [pytest.param(one, id=one.replace(" ", "-")) for one in PLACES])
def test_a_step_links_to_the_page_where_it_is_done(
    request: pytest.FixtureRequest, stores: Stores, place: str
) -> None:
    least, href = PLACES[place]
    told = Open("Do it now.", "It is due.", "None.", place=ONE_OF[place], place_id=7)
    open_still(stores, asdict(told))

    for role in ROLES:
        client = request.getfixturevalue(role)
        part = steps(client)
        assert "Do it now." in part
        assert (f'href="{href}"' in part) == (ROLES.index(role) >= ROLES.index(least)), role
        page, _, anchor = href.partition("#")
        answer = client.get(page or "/incidents/1")
        if f'href="{href}"' in part and place != "replay":
            assert answer.status_code == 200, "the link leads to a page"
            assert not anchor or f'id="{anchor}"' in answer.text, "and to a place on it"


def test_a_step_of_an_older_version_has_no_link(operator: TestClient, stores: Stores) -> None:
    open_still(stores, {"text": "Do it now.", "why": "It is due.", "risk": "None."})

    part = steps(operator)

    assert "Do it now." in part
    assert "<a" not in part.partition("Do it now.")[2]
