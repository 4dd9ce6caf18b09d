"""Sending on schedule, beside a bare aiohttp loop and the public scripts, at one target."""

import os
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from tests.benchmarks import replay_peers
from tests.benchmarks.load_target import LoadTarget, Run, load_target
from tests.benchmarks.table import row

pytestmark = pytest.mark.benchmark
PER_SECOND, COUNT, FEW = 200, 1600, 100
PEER_COUNT = 600
ROUNDS = 3
QUIET_MS = 10.0


@pytest.fixture(scope="module")
def target(tmp_path_factory: pytest.TempPathFactory) -> Iterator[LoadTarget]:
    with load_target(tmp_path_factory.mktemp("target")) as one:
        yield one


def dues(count: int, per_second: float, speed: float = 1) -> dict[str, float]:
    return {f"r{index}": index / per_second / speed for index in range(count)}


class Cost:
    """What a client's runs cost, the least of all rounds, without what it costs to start."""

    def __init__(self, run: Callable[[int], Run], count: int) -> None:
        self._run, self._count = run, count
        self._few, self._all = list[float](), list[float]()

    def round(self) -> Run:
        """One more round; its run with all requests."""
        self._few.append(self._run(FEW).cpu_seconds)
        run = self._run(self._count)
        assert len(run.arrivals) == self._count
        self._all.append(run.cpu_seconds)
        return run

    @property
    def ms_a_request(self) -> float:
        return 1000 * (min(self._all) - min(self._few)) / (self._count - FEW)


def p99(late: list[float]) -> float:
    return late[int(0.99 * len(late))]


@pytest.fixture(scope="module")
def slow_target(tmp_path_factory: pytest.TempPathFactory) -> Iterator[LoadTarget]:
    """Answers in 2.6 s: 512 are in flight at 200/s."""
    with load_target(tmp_path_factory.mktemp("slow"), itl_ms=164) as one:
        yield one


@pytest.mark.parametrize(("name", "in_flight"), [("target", 50), ("slow_target", 512)])
def test_requests_arrive_on_time_at_little_more_cost_than_a_bare_loop(
    request: pytest.FixtureRequest, name: str, in_flight: int
) -> None:
    pytest.importorskip("aiohttp", reason="aiohttp is not installed to be compared with")
    target: LoadTarget = request.getfixturevalue(name)
    due = dues(COUNT, PER_SECOND)
    own = Cost(lambda count: target.client("ours", count, PER_SECOND), COUNT)
    other = Cost(lambda count: target.client("bare", count, PER_SECOND), COUNT)
    late = [(p99(own.round().late_ms(due)), p99(other.round().late_ms(due))) for _ in range(ROUNDS)]
    cost, bare = own.ms_a_request, other.ms_a_request
    ours, theirs = (min(side) for side in zip(*late, strict=True))
    row(
        f"Replay at {PER_SECOND}/s, streaming, {in_flight} in flight: CPU a request",
        f"{cost:.2f} ms",
        "≤ 1.3 × bare",
        f"bare aiohttp loop {bare:.2f} ms: {cost / bare:.2f} ×",
    )
    row(
        f"Replay at {PER_SECOND}/s, {in_flight} in flight: arrival late, p99",
        f"{ours:.1f} ms",
        "≤ 10 ms, ≤ 2 × bare",
        f"bare aiohttp loop {theirs:.1f} ms, load {os.getloadavg()[0]:.1f}",
    )
    assert cost <= 1.3 * bare
    assert ours <= 2 * theirs
    assert ours <= QUIET_MS or os.getloadavg()[0] > len(os.sched_getaffinity(0))


@pytest.mark.parametrize("name", replay_peers.SCRIPTS)
def test_a_public_script_costs_four_times_as_much(
    target: LoadTarget, tmp_path: Path, name: str
) -> None:
    replay_peers.script(name)
    environment = replay_peers.stand_in(tmp_path)

    def theirs(count: int) -> Run:
        path = replay_peers.dump(tmp_path, count, PER_SECOND)
        command = replay_peers.command(name, target.port, path, parallel=512, speed=1)
        return target.run(command, environment)

    own = Cost(lambda count: target.client("ours", count, PER_SECOND), COUNT)
    other = Cost(theirs, PEER_COUNT)
    due = dues(PEER_COUNT, PER_SECOND)
    lates = [(own.round(), p99(other.round().late_ms(due)))[1] for _ in range(ROUNDS)]
    cost, peer, late = own.ms_a_request, other.ms_a_request, min(lates)
    row(
        f"Replay at {PER_SECOND}/s: CPU a request, beside {replay_peers.SCRIPTS[name]}",
        f"{cost:.2f} ms",
        "≤ 1/4",
        f"{peer:.2f} ms: {peer / cost:.1f} ×, late p99 {late:,.0f} ms",
    )
    assert peer >= 4 * cost


@pytest.mark.parametrize("speed", [2, 4])
def test_speed_divides_the_whole_span(target: LoadTarget, speed: int) -> None:
    count, per_second = 400, 50.0
    intended = (count - 1) / per_second / speed
    spans = [target.client("ours", count, per_second, speed).span_seconds for _ in range(ROUNDS)]
    best = min(spans, key=lambda span: abs(span - intended))
    off = abs(best - intended) / intended
    row(f"Replay at speed {speed}: span", f"{best:.3f} s of {intended:.3f} s", "± 1 %")
    assert off <= 0.01


def test_several_processes_send_a_thousand_a_second(target: LoadTarget) -> None:
    count, per_second = 4000, 1000.0
    intended = (count - 1) / per_second
    runs = [target.client("ours", count, per_second) for _ in range(ROUNDS)]
    best = min(runs, key=lambda run: p99(run.late_ms(dues(count, per_second))))
    late = p99(best.late_ms(dues(count, per_second)))
    assert len(best.arrivals) == count
    row(
        "Replay at 1 000/s, several processes: span",
        f"{best.span_seconds:.2f} s of {intended:.2f} s, late p99 {late:.0f} ms",
        "± 1 %",
    )
    assert abs(best.span_seconds - intended) / intended <= 0.01
