"""From samples and dumps of agents to what the incident says: headline, class, report, timeline."""

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import pytest

from app.protocol.messages import Refusal, StackSample, StacksAnswer
from app.store.database import reading, writing
from app.store.evidence import get_artifact
from app.store.incidents import get_incident
from app.store.reports import report_of
from app.store.stores import Stores
from app.store.tables import Incident, Target
from app.store.target_servers import confirm
from app.store.timeline import timeline
from tests import stacks
from tests.coredump_bytes import Gpu, Kernel, dump_bytes
from tests.integration import diagnosing, make
from tests.integration.agent_double import Asked, Double, agent_double
from tests.integration.at_work import at_work
from tests.integration.conftest import MakeStores
from tests.integration.diagnosing import ROOT, TP0, TP1, Dumping
from tests.ports import free_port
from tests.waiting import until

pytestmark = pytest.mark.slow

RANKS = {TP0: "TP0", TP1: "TP1"}
APART = {TP0: stacks.CHECKS_CACHE, TP1: stacks.EVICTS}
IDLE = {TP0: stacks.POLLS, TP1: stacks.AWAITS_REQUESTS}
FAULT = Kernel("_Z4topkIfEvPT_i", exception=14, error_at=0x10)
TOPK = Kernel("_Z4topkIfEvPT_i")
GATHER = Kernel("_Z31ncclDevKernel_AllGather_RING_LL24ncclDevKernelArgsStorageILm4096EE")


@pytest.fixture(scope="module")
def stores(make_stores: MakeStores, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Stores]:
    with at_work(make_stores(tmp_path_factory.mktemp("data"))) as opened:
        yield opened


@pytest.fixture
def double() -> Iterator[Double]:
    with agent_double(Double()) as running:
        yield running


def scripted(
    double: Double,
    *samples: Mapping[str, Sequence[str]],
    states: Mapping[str, str] | None = None,
    refuses: Sequence[str] = (),
) -> None:
    """The agent answers each sample with the calls of that number, the last one from then on."""

    def take(asked: Asked) -> StacksAnswer:
        number = asked.body["first_sample"]
        calls = samples[min(number, len(samples)) - 1]
        asked_of = asked.body["process_ids"]
        done = [
            _sample(double, one, number, calls[one], (states or {}).get(one, "S"))
            for one in asked_of
            if one not in refuses
        ]
        refused = [
            Refusal(process_id=one, rank=RANKS[one], kind="ptrace", reason="No right to read it.")
            for one in asked_of
            if one in refuses
        ]
        return StacksAnswer(matched=asked_of, done=done, refused=refused)

    double.says["POST /stacks"] = take


def _sample(
    double: Double, process_id: str, number: int, calls: Sequence[str], state: str
) -> StackSample:
    pid = int(process_id.partition(".")[0])
    return StackSample(
        process_id=process_id,
        pid=pid,
        rank=RANKS[process_id],
        sample=number,
        taken_at=make.now(),
        seconds=0.1,
        mode="plain",
        exact=True,
        state_before=state,
        state_after=state,
        threads=1,
        file=double.file(stacks.dump_json(pid, calls), f"{RANKS[process_id]}-{number}.json"),
    )


def pressed(stores: Stores, double: Double, kind: str = "stacks", **given: Any) -> int:
    host = diagnosing.host(stores, double, diagnosing.new_name(), diagnosing.server())
    target: Target = make.target(stores, "http://127.0.0.1:9", f"decode-{free_port()}")
    with writing(stores.engine) as session:
        confirm(session, target, host.id or 0, ROOT, make.MIRA, make.now())
    if kind == "coredump":
        given = {"host_ids": [host.id], "confirm": host.name, **given}
    return diagnosing.press(stores, diagnosing.incident(stores, target), kind, **given)


def incident(stores: Stores, diagnostic_id: int) -> Incident:
    row = diagnosing.diagnostic(stores, diagnostic_id)
    with reading(stores.engine) as session:
        return get_incident(session, row.incident_id)


def report(stores: Stores, diagnostic_id: int) -> dict[str, Any]:
    with reading(stores.engine) as session:
        row = get_incident(session, diagnosing.diagnostic(stores, diagnostic_id).incident_id)
        return report_of(session, row, at=make.now())


def moments(stores: Stores, diagnostic_id: int) -> list[tuple[str, str]]:
    row = diagnosing.diagnostic(stores, diagnostic_id)
    with reading(stores.engine) as session:
        return [(one.kind, one.says) for one in timeline(session, row.incident_id)]


def test_a_stopped_rank_is_named_by_the_first_of_its_samples(
    stores: Stores, double: Double
) -> None:
    scripted(double, IDLE, states={TP1: "T"})
    diagnostic_id = pressed(stores, double, samples=3, interval_seconds=5.0)

    def compared() -> dict[str, Any] | None:
        return (diagnosing.diagnostic(stores, diagnostic_id).answer or {}).get("comparison")

    comparison = until(compared)
    assert comparison is not None
    assert (comparison["verdict"], comparison["outliers"]) == ("rank divergence", ["TP1"])
    assert (comparison["samples"], comparison["stuck"]) == (1, None)
    headline = incident(stores, diagnostic_id).headline
    assert headline is not None
    assert (headline["id"], headline["status"]) == ("rank-stopped", "established")


@pytest.mark.parametrize("kind", ["stacks", "native stacks"])
def test_a_rank_that_stands_apart_for_five_seconds_makes_the_incident_a_hang(
    stores: Stores, double: Double, kind: str
) -> None:
    scripted(double, APART)
    diagnostic_id = pressed(stores, double, kind, samples=2, interval_seconds=5.0)
    answer = diagnosing.ended(stores, diagnostic_id).answer or {}
    assert answer["comparison"]["stuck"] is True
    assert answer["comparison"]["samples"] == 2
    row = incident(stores, diagnostic_id)
    assert (row.problem_class, row.verdict, row.rank) == ("hang/timeout", "wedged", 0)
    [tells] = [says for kind, says in moments(stores, diagnostic_id) if kind == "FindingMade"]
    assert "TP1" in tells
    told = report(stores, diagnostic_id)
    assert told["strongest_signal"]["id"] == "rank-divergence"
    assert told["best_guess"]["status"] == "supported"
    assert any(one["what"] == "rank-divergence" for one in told["checked"])
    files = {f"artifact {one.artifact_id}" for one in diagnosing.items(stores, diagnostic_id)}
    assert {one["artifact"] for one in told["strongest_signal"]["evidence"]} <= files


def test_an_idle_server_is_neither_stuck_nor_failing(stores: Stores, double: Double) -> None:
    scripted(double, IDLE)
    diagnostic_id = pressed(stores, double, samples=2, interval_seconds=0.5)
    answer = diagnosing.ended(stores, diagnostic_id).answer or {}
    assert (answer["comparison"]["verdict"], answer["comparison"]["stuck"]) == ("idle", None)
    row = incident(stores, diagnostic_id)
    assert (row.problem_class, row.verdict) == (None, "unknown")
    assert not [one for one in moments(stores, diagnostic_id) if one[0] == "FindingMade"]


def test_a_rank_that_was_refused_is_missing_with_its_reason(stores: Stores, double: Double) -> None:
    scripted(double, APART, refuses=[TP1])
    diagnostic_id = pressed(stores, double, samples=2, interval_seconds=0.5)
    answer = diagnosing.ended(stores, diagnostic_id).answer or {}
    [missing] = answer["comparison"]["missing"]
    assert (missing["rank"], missing["reason"]) == ("TP1", "No right to read it.")
    assert answer["comparison"]["outliers"] == []


def test_a_host_that_gave_nothing_is_refused_though_it_was_compared(
    stores: Stores, double: Double
) -> None:
    double.says["POST /stacks"] = lambda _: (503, {"error": "busy", "detail": "Not now."})
    row = diagnosing.ended(stores, pressed(stores, double))
    assert row.state == "refused"
    missing = (row.answer or {})["comparison"]["missing"]
    assert [one["rank"] for one in missing] == ["TP0", "TP1"]


def test_a_comparison_that_cannot_be_made_ends_nothing(stores: Stores, double: Double) -> None:
    def garbage(asked: Asked) -> StacksAnswer:
        done = [_sample(double, one, 1, stacks.POLLS, "S") for one in asked.body["process_ids"]]
        file = double.file(b"[[[\x00 no stacks")
        return StacksAnswer(
            matched=asked.body["process_ids"],
            done=[one.model_copy(update={"file": file}) for one in done],
            refused=[],
        )

    double.says["POST /stacks"] = garbage
    row = diagnosing.ended(stores, pressed(stores, double))
    assert (row.state, (row.answer or {})["comparison"]["captured"]) == ("done", 0)


def test_a_coredump_with_an_exception_is_read_and_makes_the_incident_a_crash(
    stores: Stores, double: Double
) -> None:
    Dumping(double, "growing", "complete", data=dump_bytes(Gpu([FAULT])))
    diagnostic_id = pressed(stores, double, "coredump", process_ids=[TP0])
    diagnosing.ended(stores, diagnostic_id)
    [item] = diagnosing.items(stores, diagnostic_id)
    document = item.detail["inspected"]
    assert document["complete"] is True
    assert document["file"] == "core.nvcudmp"
    assert item.fingerprint == document["fingerprint"] is not None
    assert "target cudacore core.nvcudmp" in document["commands"][0]
    row = incident(stores, diagnostic_id)
    assert row.headline is not None
    assert (row.headline["id"], row.problem_class) == ("gpu-exception", "crash")
    [evidence] = row.headline["evidence"]
    assert evidence["artifact"] == f"artifact {item.artifact_id}"
    [tells] = [says for kind, says in moments(stores, diagnostic_id) if kind == "FindingMade"]
    assert tells.startswith("CUDBG_EXCEPTION_WARP_ILLEGAL_ADDRESS")


def test_coredumps_of_several_ranks_are_told_beside_each_other(
    stores: Stores, double: Double
) -> None:
    Dumping(double, "complete", data=dump_bytes(Gpu([GATHER])))
    diagnostic_id = pressed(stores, double, "coredump", process_ids=[TP0, TP1])
    answer = diagnosing.ended(stores, diagnostic_id, seconds=60).answer or {}
    [group] = answer["coredumps"]["groups"]
    assert (group["ranks"], group["waits"]) == (["TP0", "TP1"], True)
    assert [one["id"] for one in report(stores, diagnostic_id)["ruled_out"]] == ["gpu-no-exception"]


def test_ranks_that_are_dumped_one_by_one_are_told_beside_each_other_too(
    stores: Stores, double: Double
) -> None:
    Dumping(double, "complete", data=dump_bytes(Gpu([GATHER])))
    first = pressed(stores, double, "coredump", process_ids=[TP0])
    assert "coredumps" not in (diagnosing.ended(stores, first).answer or {})
    row = diagnosing.diagnostic(stores, first)
    [host] = row.hosts
    Dumping(double, "complete", data=dump_bytes(Gpu([TOPK])))
    second = diagnosing.press(
        stores,
        row.incident_id,
        "coredump",
        host_ids=[host["host_id"]],
        confirm=host["name"],
        process_ids=[TP1],
    )
    told = (diagnosing.ended(stores, second).answer or {})["coredumps"]
    assert {tuple(one["ranks"]): one["waits"] for one in told["groups"]} == {
        ("TP0",): True,
        ("TP1",): False,
    }
    assert "Not in that collective: rank TP1." in told["says"]
    assert told["taken_by"] == {"TP0": first, "TP1": second}
    headline = incident(stores, second).headline
    assert headline is not None
    assert headline["id"] == "gpu-places-differ"


def test_a_coredump_that_is_none_says_what_it_is(stores: Stores, double: Double) -> None:
    Dumping(double, "complete", data=b"\x7fELF" * 100)
    diagnostic_id = pressed(stores, double, "coredump", process_ids=[TP0])
    diagnosing.ended(stores, diagnostic_id)
    [item] = diagnosing.items(stores, diagnostic_id)
    assert item.detail["inspected"]["complete"] is False
    assert item.detail["inspected"]["note"]
    assert incident(stores, diagnostic_id).problem_class is None


def test_samples_that_are_gone_from_the_store_are_missing_and_end_nothing(
    stores: Stores, double: Double
) -> None:
    scripted(double, APART)
    diagnostic_id = pressed(stores, double, samples=2, interval_seconds=3.0)
    first = until(lambda: diagnosing.items(stores, diagnostic_id))
    assert first is not None
    with reading(stores.engine) as session:
        rows = [get_artifact(session, one.artifact_id or 0) for one in first]
    for row in rows:
        stores.artifacts.delete(row.sha256)
    answer = diagnosing.ended(stores, diagnostic_id)
    assert answer.state == "done"
    comparison = (answer.answer or {})["comparison"]
    assert comparison["captured"] + len(comparison["missing"]) == 2
