"""What a target answers in situations that a console must tell apart, as captures."""

from collections.abc import Callable

from app.domain.capture import Capture, Outcome
from tests.bundles import answered, histogram, loads, metrics, rank, serving, silent

Maker = Callable[[], list[Capture]]
BIG = {"model_path": "/models/Qwen3-235B-A22B", "tp_size": 8, "served_model_name": "qwen3-235b"}


def healthy() -> list[Capture]:
    """It works, and tokens come out between the two scrapes."""
    busy = rank(num_running_reqs=3, gen_throughput=300.0)
    return [
        *serving(busy, info=BIG),
        answered("metrics_1", metrics(generation_tokens_total=1000, num_running_reqs=3), at=0.2),
        answered("metrics_2", metrics(generation_tokens_total=4100, num_running_reqs=3), at=10.2),
    ]


def slow() -> list[Capture]:
    """First tokens come late although nothing waits."""
    busy = rank(num_running_reqs=12, gen_throughput=900.0)
    first = histogram("time_to_first_token_seconds", 100, 90, le_1=90, le_5=100, le_20=100)
    later = histogram("time_to_first_token_seconds", 200, 1400, le_1=92, le_5=110, le_20=200)
    queue = histogram("queue_time_seconds", 100, 1, le_0_1=100, le_1=100)
    queued = histogram("queue_time_seconds", 200, 2, le_0_1=200, le_1=200)
    return [
        *serving(busy, info=BIG),
        answered("metrics_1", metrics(generation_tokens_total=5000) + first + queue, at=0.2),
        answered("metrics_2", metrics(generation_tokens_total=14000) + later + queued, at=10.2),
    ]


def stuck() -> list[Capture]:
    """Work is inside, the snapshot is fifteen minutes old, and /ready is green."""
    frozen = rank(num_running_reqs=31, num_waiting_reqs=2, age=900.0, token_usage=0.61)
    still = metrics(generation_tokens_total=88_102_441, num_running_reqs=31, num_queue_reqs=2)
    return [
        answered("ready", b"OK", seconds=0.003),
        answered("model_info", {"model_path": "/models/Qwen3-235B-A22B"}),
        silent("server_info", at=1.0),
        answered("loads_all_1", loads(frozen), at=2.0),
        answered("metrics_1", still, at=0.2),
        answered("metrics_2", still, at=10.2),
        answered("health_generate", b"", status=503, at=11.0, seconds=20.0),
    ]


def gone() -> list[Capture]:
    """Nothing listens."""
    names = ("ready", "model_info", "metrics_1", "server_info", "loads_all_1")
    return [silent(name, Outcome.REFUSED, seconds=0.001) for name in names]


def quiet() -> list[Capture]:
    """The server does not answer for its scheduler, and nothing else tells."""
    return [
        answered("ready", b"OK"),
        answered("model_info", {"model_path": "/models/r1"}),
        silent("server_info", at=1.0),
        silent("loads_all_1", at=6.0, seconds=3.0),
    ]
