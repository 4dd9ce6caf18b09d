"""When a host is asked what can be captured there, and asking it again by hand."""

from collections.abc import Iterator
from datetime import timedelta

import pytest
from fastapi.testclient import TestClient

from app.protocol.looked_at import looked_at, title_of
from app.protocol.messages import Preflight, Process, Processes, Rank, Readiness, Server
from app.store import hearing
from app.store.database import writing
from app.store.stores import Stores
from app.store.tables import Host
from tests.integration import diagnosing, make
from tests.integration.agent_double import Double, agent_double
from tests.integration.diagnosing import ROOT, TP0
from tests.integration.test_agent_client import info

RESTARTED = "100.9"
TRACKER = Process(id="190.1", pid=190, title="resource tracker", role="other")


def server(*more: Process, root: str = ROOT, **of_tp0: object) -> Server:
    """A server of one rank, with *more* processes."""
    told = {"id": TP0, "pid": 101, "title": "", "role": "scheduler", "rank": Rank(label="TP0")}
    ranks = [Process.model_validate(told | of_tp0), *more]
    first = Process(id=root, pid=100, title="", role="server")
    return diagnosing.server(id=root, processes=[first, *ranks])


class Telling:
    """An agent on which *servers* run; its preflight looks at what the real one looks at."""

    def __init__(self, double: Double) -> None:
        self.double, self.servers = double, [server()]
        double.says["GET /info"] = info
        double.says["GET /processes"] = lambda _: self.processes()
        double.says["GET /preflight"] = lambda _: self.preflight()

    def processes(self) -> Processes:
        return diagnosing.processes(*self.servers)

    def preflight(self) -> Preflight:
        ready = [
            Readiness(process_id=one.id, title=title_of(one), checks=[])
            for server in self.servers
            for one in looked_at(server)
        ]
        return Preflight(at=make.now(), host=[], processes=ready)

    def preflights(self) -> int:
        return self.double.times("GET /preflight")


@pytest.fixture
def agent() -> Iterator[Telling]:
    with agent_double(Double()) as double:
        yield Telling(double)


@pytest.fixture
def host(stores: Stores, agent: Telling) -> Host:
    return diagnosing.host(stores, agent.double, "gpu-14")


@pytest.mark.parametrize(
    ("servers", "times"),
    [
        pytest.param([server()], 1, id="the same"),
        pytest.param([server(TRACKER)], 1, id="one that preflight leaves out"),
        pytest.param([server(root=RESTARTED)], 2, id="a restarted server"),
        pytest.param([server(id="101.9")], 2, id="a rank of the same pid that started anew"),
        pytest.param([server(role="starting", rank=None)], 2, id="a rank without its title"),
        pytest.param([], 2, id="none any more"),
    ],
)
def test_when_other_processes_run_it_is_asked_at_once_what_can_be_captured(
    stores: Stores, agent: Telling, host: Host, servers: list[Server], times: int
) -> None:
    first = diagnosing.heard(stores, host)
    agent.servers = servers

    second = diagnosing.heard(stores, first)

    assert second.problem is None
    assert agent.preflights() == times
    diagnosing.heard(stores, second)
    assert agent.preflights() == times, "what is kept is about these processes now"


def test_otherwise_it_is_asked_every_two_minutes(
    stores: Stores, agent: Telling, host: Host
) -> None:
    assert timedelta(minutes=2) == hearing.PREFLIGHT_EVERY
    heard = diagnosing.heard(stores, host)
    for ago, times in ((110, 1), (130, 2)):
        with writing(stores.engine) as session:
            row = session.get_one(Host, host.id)
            row.preflight_at = make.now() - timedelta(seconds=ago)
        heard.preflight_at = row.preflight_at
        diagnosing.heard(stores, heard)
        assert agent.preflights() == times


def test_an_operator_asks_again_and_the_page_tells_what_it_found(
    operator: TestClient, stores: Stores, agent: Telling, host: Host
) -> None:
    diagnosing.heard(stores, host)
    agent.servers = [server().model_copy(update={"name": "sglang on port 31111"})]
    assert 'action="/hosts/1/ask"' in operator.get("/hosts/1").text

    answer = operator.post("/hosts/1/ask")

    assert (answer.status_code, answer.headers["location"]) == (303, "/hosts/1")
    assert agent.preflights() == 2
    assert [one.actor for one in agent.double.asked[-2:]] == ["operator", "operator"]
    page = operator.get("/hosts/1").text
    assert "sglang on port 31111" in page
    assert "does not answer" not in page


@pytest.mark.parametrize("told_before", [True, False], ids=["heard before", "never heard"])
def test_a_silent_host_that_is_asked_again_is_told_in_words(
    operator: TestClient, stores: Stores, told_before: bool
) -> None:
    silent = diagnosing.host(stores, Double(url="http://127.0.0.1:9"), "gpu-15")
    if not told_before:
        with writing(stores.engine) as session:
            row = session.get_one(Host, silent.id)
            row.processes = row.processes_at = row.heard_at = None

    assert operator.post("/hosts/1/ask").status_code == 303

    page = operator.get("/hosts/1").text
    assert "The agent does not answer." in page
    assert "Nothing listens there" in page


def test_a_host_that_answers_again_is_no_longer_called_silent(
    operator: TestClient, stores: Stores, agent: Telling, host: Host
) -> None:
    says, agent.double.says = agent.double.says, {}
    operator.post("/hosts/1/ask")
    assert "The agent does not answer." in operator.get("/hosts/1").text
    agent.double.says = says

    operator.post("/hosts/1/ask")

    assert "The agent does not answer." not in operator.get("/hosts/1").text


def test_a_reader_does_not_ask_and_nobody_asks_what_is_not_there(
    reader: TestClient, operator: TestClient, stores: Stores, agent: Telling, host: Host
) -> None:
    assert reader.post("/hosts/1/ask").status_code == 403
    assert "/hosts/1/ask" not in reader.get("/hosts/1").text
    assert operator.post("/hosts/9/ask").status_code == 404
    with writing(stores.engine) as session:
        session.get_one(Host, host.id).removed_at = make.now()
    assert operator.post("/hosts/1/ask").status_code == 422
    assert "/hosts/1/ask" not in operator.get("/hosts/1").text
    assert agent.double.asked == []
