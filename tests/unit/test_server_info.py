"""What /server_info tells of topology and room, over its versions."""

from typing import Any

import pytest

from app.domain.server_info import capacity, read_server_info, topology

BASE: dict[str, Any] = {
    "tp_size": 8,
    "dp_size": 2,
    "disaggregation_mode": "null",
    "version": "0.5.23",
}


def states(*memory: Any) -> dict[str, Any]:
    return {**BASE, "internal_states": [{"memory_usage": one} for one in memory]}


def test_topology_is_told_as_numbers_and_no_disaggregation_as_none() -> None:
    told = topology(read_server_info("server_info", BASE))
    assert (told["tp_size"], told["dp_size"], told["disaggregation_mode"]) == (8, 2, None)
    assert told["pp_size"] is None


@pytest.mark.parametrize(
    ("graph", "told"),
    [
        pytest.param({"graph": 2.3}, 2.3, id="a number"),
        pytest.param({"cuda_graph": 1.5}, 1.5, id="its name in 0.4.9"),
        pytest.param({"graph": {"prefill": 0.5, "decode": 1.25}}, 1.75, id="by phase since 0.5.17"),
        pytest.param({"graph": {"prefill": "x", "decode": 1.25}}, None, id="one phase unknown"),
        pytest.param({}, None, id="not told"),
    ],
)
def test_memory_of_graphs_as_number_or_by_phase(graph: dict[str, Any], told: float | None) -> None:
    assert capacity(read_server_info("server_info", states(graph)))["graph_gb"] == told


def test_numbers_that_the_rust_frontend_writes_as_text_are_numbers() -> None:
    assert (
        capacity(read_server_info("server_info", states({"kvcache": "0.008"})))["kv_cache_gb"]
        == 0.008
    )


def test_memory_that_differs_between_ranks_is_no_figure_of_the_server() -> None:
    told = capacity(read_server_info("server_info", states({"weight": 10.0}, {"weight": 11.0})))
    assert told["weight_gb"] is None
    assert [one["weight_gb"] for one in told["per_rank"]] == [10.0, 11.0]


@pytest.mark.parametrize(
    "value", [None, [], "text", 3, {}, {"models": []}, {"detail": "x"}], ids=repr
)
def test_an_answer_of_something_else_is_none(value: Any) -> None:
    assert read_server_info("server_info", value) is None


@pytest.mark.parametrize(
    "value",
    [
        {"tp_size": "eight", "internal_states": [None, 3, {"memory_usage": []}]},
        {"tp_size": 10**400, "version": 5, "frontend": ["rust"], "internal_states": "x"},
        {"launch_command": None, "dp_size": True, "disaggregation_mode": {}},
    ],
    ids=["odd states", "odd sizes", "odd types"],
)
def test_nonsense_gives_unknown_figures_and_never_raises(value: Any) -> None:
    info = read_server_info("server_info", value)
    assert info is not None
    assert topology(info)["tp_size"] is None
    assert capacity(info)["weight_gb"] is None
    assert info.frontend is None


def test_nothing_answered_is_unknown_throughout() -> None:
    assert set(topology(None).values()) == {None}
    assert capacity(None)["per_rank"] == []
