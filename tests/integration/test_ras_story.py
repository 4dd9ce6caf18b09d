"""NCCL's answers through the console: what the incident says, and stacks compared with them."""

from collections.abc import Iterator, Sequence
from datetime import timedelta
from pathlib import Path
from typing import Any

import orjson
import pytest

from app.protocol.messages import RasAnswer
from app.store.database import reading, writing
from app.store.incidents import get_incident
from app.store.reports import report_of
from app.store.stores import Stores
from app.store.tables import Diagnostic, Incident, Target
from app.store.target_servers import confirm
from app.store.timeline import timeline
from tests import ras, stacks
from tests.integration import diagnosing, make
from tests.integration.agent_double import Double, agent_double
from tests.integration.at_work import at_work
from tests.integration.conftest import MakeStores
from tests.integration.diagnosing import ROOT, TP0, TP1
from tests.integration.test_cli_stacks_compare import call
from tests.integration.test_comparing import scripted
from tests.ports import free_port

pytestmark = pytest.mark.slow

WAITS = {TP0: stacks.AWAITS_GPU, TP1: stacks.AWAITS_GPU}


def body(*all_reduce: int) -> bytes:
    """An answer about the two ranks of ``diagnosing.server``."""
    ranks = [ras.rank(n, count, pid=101 + n) for n, count in enumerate(all_reduce)]
    return ras.answer(ras.communicator(ranks))


HUNG = [body(48_211, 48_210)] * 2


@pytest.fixture(scope="module")
def stores(make_stores: MakeStores, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Stores]:
    with at_work(make_stores(tmp_path_factory.mktemp("data"))) as opened:
        yield opened


@pytest.fixture
def double() -> Iterator[Double]:
    with agent_double(Double()) as running:
        scripted(running, WAITS)
        yield running


class Story:
    """One incident about one server of two ranks."""

    def __init__(self, stores: Stores, double: Double) -> None:
        self.stores, self.double = stores, double
        host = diagnosing.host(stores, double, diagnosing.new_name(), diagnosing.server())
        target: Target = make.target(stores, "http://127.0.0.1:9", f"decode-{free_port()}")
        with writing(stores.engine) as session:
            confirm(session, target, host.id or 0, ROOT, make.MIRA, make.now())
        self.incident_id = diagnosing.incident(stores, target)

    def ras(self, *bodies: bytes, server: str = ROOT) -> Diagnostic:
        """The diagnostic that brought *bodies*, ten seconds apart, the last one now."""

        def answer(_: object) -> RasAnswer:
            files = [
                self.double.file(one, f"nccl-ras-100-{number}.json", "nccl ras").model_copy(
                    update={
                        "process_id": server,
                        "taken_at": make.now() - timedelta(seconds=10 * (len(bodies) - number)),
                    }
                )
                for number, one in enumerate(bodies, start=1)
            ]
            return RasAnswer(at=make.now(), readings=files, says="NCCL answered.")

        self.double.says["GET /ras"] = answer
        return self._pressed("nccl ras")

    def stacks(self) -> Diagnostic:
        return self._pressed("stacks", samples=1)

    def now(self, diagnostic: Diagnostic) -> dict[str, Any]:
        """The answer of *diagnostic* as it stands."""
        return diagnosing.diagnostic(self.stores, diagnostic.id or 0).answer or {}

    @property
    def incident(self) -> Incident:
        with reading(self.stores.engine) as session:
            return get_incident(session, self.incident_id)

    def report(self) -> dict[str, Any]:
        with reading(self.stores.engine) as session:
            return report_of(session, get_incident(session, self.incident_id), at=make.now())

    def tells(self) -> list[str]:
        with reading(self.stores.engine) as session:
            moments = timeline(session, self.incident_id)
        return [one.says for one in moments if one.kind == "FindingMade"]

    def artifacts(self, diagnostic: Diagnostic) -> set[str]:
        items = diagnosing.items(self.stores, diagnostic.id or 0)
        return {f"artifact {one.artifact_id}" for one in items}

    def _pressed(self, kind: str, **given: Any) -> Diagnostic:
        number = diagnosing.press(self.stores, self.incident_id, kind, **given)
        return diagnosing.ended(self.stores, number)


@pytest.fixture
def story(stores: Stores, double: Double) -> Story:
    return Story(stores, double)


def test_a_rank_that_stays_behind_is_the_headline_of_its_incident(story: Story) -> None:
    row = story.ras(*HUNG)
    assert row.state == "done"
    headline = story.incident.headline
    assert headline is not None
    assert (headline["id"], headline["status"]) == ("nccl-rank-behind", "established")
    assert "TP1 launched 48,210 AllReduce, others up to 48,211" in headline["says"]
    assert {one["artifact"] for one in headline["evidence"]} == story.artifacts(row)
    assert (story.incident.problem_class, story.incident.verdict) == ("hang/timeout", "wedged")
    assert story.report()["strongest_signal"]["id"] == "nccl-rank-behind"
    assert len(story.tells()) == 1


@pytest.mark.parametrize(
    ("bodies", "expected"),
    [
        ([body(5, 5), body(9, 9)], ("nccl-moves", None)),
        ([body(5, 5), body(5, 5)], ("nccl-nothing-seen", None)),
        ([b"{}", b"{}"], ("nccl-unreadable", None)),
    ],
    ids=["moves", "even", "foreign"],
)
def test_answers_without_a_rank_behind_make_no_hang(
    story: Story, bodies: Sequence[bytes], expected: tuple[str, str | None]
) -> None:
    found = (story.ras(*bodies).answer or {})["found"]
    assert (found["claims"][0]["id"], found["problem_class"]) == expected
    assert story.incident.problem_class is None


def test_stacks_that_come_after_are_compared_with_the_counts(story: Story) -> None:
    counts = story.ras(*HUNG)
    stacks_row = story.stacks()
    comparison = story.now(stacks_row)["comparison"]
    assert (comparison["outliers"], comparison["ground"], comparison["stuck"]) == (
        ["TP1"],
        "counts",
        True,
    )
    [claim] = story.now(stacks_row)["found"]["claims"]
    cited = {one["artifact"] for one in claim["evidence"]}
    assert story.artifacts(counts) < cited


def test_stacks_that_came_before_are_compared_once_more(story: Story) -> None:
    before = story.stacks()
    assert story.now(before)["comparison"]["outliers"] == []
    story.ras(*HUNG)
    assert story.now(before)["comparison"]["outliers"] == ["TP1"]
    assert story.now(before)["found"]["claims"][0]["status"] == "established"
    assert [says for says in story.tells() if says.startswith("NCCL counts 48,210")]


def test_counts_of_a_server_that_was_started_anew_do_not_touch_the_stacks(story: Story) -> None:
    story.ras(*HUNG, server="100.999")
    comparison = story.now(story.stacks())["comparison"]
    assert (comparison["outliers"], comparison["counted"]) == ([], None)


def test_growth_before_the_stacks_does_not_excuse_them(story: Story) -> None:
    story.ras(body(5, 4), body(9, 9))
    comparison = story.now(story.stacks())["comparison"]
    assert (comparison["outliers"], comparison["stuck"]) == ([], None)


# On the command line -----------------------------------------------------------------------------


def folder(tmp_path: Path, *bodies: bytes, with_stacks: bool = True) -> Path:
    for number, one in enumerate(bodies, start=1):
        (tmp_path / f"nccl-ras-100-{number}.json").write_bytes(one)
    if with_stacks:
        for file in stacks.files(stacks.ranks(2, stacks.AWAITS_GPU)):
            path = tmp_path / file.path
            path.parent.mkdir(exist_ok=True)
            path.write_bytes(file.body)
    return tmp_path


def test_stacks_compare_takes_answers_of_nccl_among_its_files(tmp_path: Path) -> None:
    pids = [stacks.pid_of(f"TP{number}") for number in range(2)]
    ranks = [ras.rank(n, 7 - n, pid=pid) for n, pid in enumerate(pids)]
    answer = ras.answer(ras.communicator(ranks))
    done = call("compare", str(folder(tmp_path, answer, answer)), "--json")
    told = orjson.loads(done.stdout)
    assert (told["outliers"], told["ground"], told["stuck"]) == (["TP1"], "counts", True)
    assert told["ras"]["shown"][0]["few"][0]["label"] == "TP1"
    assert told["unrecognised"] == []


def test_answers_of_nccl_alone_are_told(tmp_path: Path) -> None:
    done = call("compare", str(folder(tmp_path, *HUNG, with_stacks=False)))
    assert done.returncode == 0, done.stderr
    assert done.stdout.startswith("NCCL RAS · 2 answers")
    assert "Rank 1 launched 48,210 AllReduce" in done.stdout
    assert "The ranks of the server are not known here." in done.stdout


def test_a_folder_without_answers_of_nccl_says_so_with_null() -> None:
    told = orjson.loads(call("compare", str(next(stacks.CASES.glob("01-*"))), "--json").stdout)
    assert (told["ras"], told["counted"]) == (None, None)
