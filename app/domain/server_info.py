"""What /server_info tells, in every shape that SGLang 0.4.6 to 0.5.23 has sent.

Old servers merge the state of the scheduler into the top level, newer ones give
``internal_states``: a list with one entry per DP rank, once an object, empty when the
schedulers did not answer in time. Rank 0 is never taken for the whole server.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from app.domain.figures import figure, table, text, whole

_TOPOLOGY = ("tp_size", "dp_size", "pp_size", "ep_size", "nnodes", "node_rank")
_STATE_KEYS = ("last_gen_throughput", "memory_usage")
_ARGUMENT_KEYS = ("tp_size", "internal_states", "max_total_num_tokens", "launch_command")
_MOST_RANKS = 1024
_WEIGHT = ("weight", "weight_gb")
_KV_CACHE = ("kvcache", "kv_cache_gb")
_GRAPH = ("graph", "graph_gb", "cuda_graph")


@dataclass(frozen=True, slots=True)
class RankState:
    """One scheduler's own account; figures are None where its version does not tell them."""

    dp_rank: int
    place: str  # JSON pointer into the answer
    throughput: float | None = None  # tokens/s of the last decode interval; does not decay
    weight_gb: float | None = None
    kv_cache_gb: float | None = None
    graph_gb: float | None = None
    token_capacity: int | None = None
    max_running_requests: int | None = None

    def as_json(self) -> dict[str, Any]:
        return {
            "dp_rank": self.dp_rank,
            "last_gen_throughput": self.throughput,
            "weight_gb": self.weight_gb,
            "kv_cache_gb": self.kv_cache_gb,
            "graph_gb": self.graph_gb,
            "token_capacity": self.token_capacity,
            "max_running_requests": self.max_running_requests,
        }


@dataclass(frozen=True, slots=True)
class ServerInfo:
    """One answer of /server_info, read. ``artifact`` is the capture it came from."""

    artifact: str
    arguments: Mapping[str, Any]
    shape: str  # "flat", "list", "object", "empty", "arguments only"
    ranks: tuple[RankState, ...] = field(default=())

    @property
    def version(self) -> str | None:
        return text(self.arguments.get("version"), limit=60)

    @property
    def frontend(self) -> str | None:
        """ "python" or "rust" as the server says itself (since 0.5.21); None when it does not."""
        told = self.arguments.get("frontend")
        return told if told in ("python", "rust") else None

    @property
    def dp_size(self) -> int | None:
        return whole(self.arguments.get("dp_size"))


def read_server_info(artifact: str, value: object) -> ServerInfo | None:
    """The answer *value*; None when it is not an SGLang server's (a gateway, another engine)."""
    if not isinstance(value, Mapping) or not any(key in value for key in _ARGUMENT_KEYS):
        return None
    shape, places = _states(value)
    ranks = tuple(_rank(index, place, state) for index, (place, state) in enumerate(places))
    return ServerInfo(artifact, value, shape, ranks)


def _states(value: Mapping[str, Any]) -> tuple[str, list[tuple[str, Mapping[str, Any]]]]:
    states = value.get("internal_states")
    if isinstance(states, Mapping):
        return "object", [("/internal_states", states)]
    if isinstance(states, list):
        found = [
            (f"/internal_states/{i}", table(state)) for i, state in enumerate(states[:_MOST_RANKS])
        ]
        return ("list" if found else "empty"), found
    if any(key in value for key in _STATE_KEYS):
        return "flat", [("", value)]
    return "arguments only", []


def _rank(index: int, place: str, state: Mapping[str, Any]) -> RankState:
    memory = table(state.get("memory_usage"))
    own = whole(state.get("dp_rank"))
    return RankState(
        dp_rank=index if own is None else own,
        place=place,
        throughput=figure(state.get("last_gen_throughput")),
        weight_gb=_first(memory, _WEIGHT),
        kv_cache_gb=_first(memory, _KV_CACHE),
        graph_gb=_graph_gb(memory),
        token_capacity=whole(memory.get("token_capacity")),
        max_running_requests=whole(state.get("effective_max_running_requests_per_dp")),
    )


def _first(memory: Mapping[str, Any], names: tuple[str, ...]) -> float | None:
    known = (figure(memory.get(name)) for name in names)
    return next((value for value in known if value is not None), None)


def _graph_gb(memory: Mapping[str, Any]) -> float | None:
    """GB of CUDA graphs: a number, since 0.5.17 an object of phases that is summed here."""
    told = next((memory[name] for name in _GRAPH if name in memory), None)
    if not isinstance(told, Mapping):
        return figure(told)
    phases = [figure(value) for value in told.values()]
    known = [value for value in phases if value is not None]
    return round(sum(known), 3) if known and len(known) == len(phases) else None


def topology(info: ServerInfo | None) -> dict[str, Any]:
    """Sizes of the parallel groups as the server says them; None where it does not."""
    arguments = info.arguments if info else {}
    mode = text(arguments.get("disaggregation_mode"), limit=20)
    return {
        **{name: whole(arguments.get(name)) for name in _TOPOLOGY},
        "disaggregation_mode": None if mode in (None, "null") else mode,
        "enable_dp_attention": _switch(arguments.get("enable_dp_attention")),
        "ranks_seen": len(info.ranks) if info else None,
    }


def _switch(value: object) -> bool | None:
    return value if isinstance(value, bool) else None


def capacity(info: ServerInfo | None) -> dict[str, Any]:
    """Room of the server. Memory is per DP rank: one figure only where all told ranks agree."""
    arguments = info.arguments if info else {}
    ranks = info.ranks if info else ()
    return {
        "max_total_num_tokens": whole(arguments.get("max_total_num_tokens")),
        "max_req_input_len": whole(arguments.get("max_req_input_len")),
        "max_running_requests": whole(arguments.get("max_running_requests")),
        "context_length": whole(arguments.get("context_length"))
        or whole(arguments.get("max_context_length")),
        "chunked_prefill_size": whole(arguments.get("chunked_prefill_size")),
        "mem_fraction_static": figure(arguments.get("mem_fraction_static")),
        "page_size": whole(arguments.get("page_size")),
        "weight_gb": _alike([rank.weight_gb for rank in ranks]),
        "kv_cache_gb": _alike([rank.kv_cache_gb for rank in ranks]),
        "graph_gb": _alike([rank.graph_gb for rank in ranks]),
        "per_rank": [rank.as_json() for rank in ranks],
    }


def _alike(values: list[float | None]) -> float | None:
    distinct = set(values)
    return distinct.pop() if len(distinct) == 1 else None
