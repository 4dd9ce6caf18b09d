import pytest

from app.domain.titles import (
    RankNumbers,
    Title,
    declared_port,
    is_python,
    is_spawned,
    printable,
    read_comm,
    read_title,
    serves,
)
from tests.procfs import SPAWNED, title

TITLES = {
    "sglang::scheduler": Title("sglang", "scheduler", RankNumbers("TP0")),
    "sglang::scheduler_TP7": Title("sglang", "scheduler", RankNumbers("TP7", tp=7)),
    "sglang::scheduler_DP1_TP3_EP3_PP0": Title(
        "sglang", "scheduler", RankNumbers("DP1_TP3_EP3_PP0", tp=3, pp=0, dp=1, ep=3)
    ),
    "sglang::scheduler_DP0_PP1_ATTN_CP4_MOE_DP5_TP2_EP6": Title(
        "sglang",
        "scheduler",
        RankNumbers("DP0_PP1_ATTN_CP4_MOE_DP5_TP2_EP6", tp=2, pp=1, dp=0, ep=6),
    ),
    "sglang::scheduler_MOE_DP5_TP2": Title("sglang", "scheduler", RankNumbers("MOE_DP5_TP2", tp=2)),
    "sgl_diffusion::scheduler_TP1": Title("sglang", "scheduler", RankNumbers("TP1", tp=1)),
    "sglang::detokenizer": Title("sglang", "detokenizer"),
    "sglang::detokenizer_router": Title("sglang", "router"),
    "sglang::data_parallel_controller": Title("sglang", "dp controller"),
    "sglang::tokenizer_worker:4711": Title("sglang", "tokenizer worker"),
    "sglang::http_server/tokenizer_manager": Title("sglang", "server"),
    "sglang::http_server/multi_tokenizer_router": Title("sglang", "server"),
    "sglang::something_of_next_year": Title("sglang", "other"),
    "VLLM::Worker": Title("vllm", "worker", RankNumbers("TP0")),
    "VLLM::Worker_TP1": Title("vllm", "worker", RankNumbers("TP1", tp=1)),
    "VLLM::Worker_DP0_PP1_TP2_EP3": Title(
        "vllm", "worker", RankNumbers("DP0_PP1_TP2_EP3", tp=2, pp=1, dp=0, ep=3)
    ),
    "VLLM::EngineCore": Title("vllm", "engine core", RankNumbers("TP0")),
    "VLLM::EngineCore_DP1": Title("vllm", "engine core", RankNumbers("DP1", dp=1)),
    "VLLM::APIServer_0": Title("vllm", "tokenizer worker"),
    "VLLM::DPCoordinator": Title("vllm", "dp controller"),
}
SERVERS = {
    "python3 -m sglang.launch_server --port 1": "sglang",
    "/usr/bin/python3.12 -u -X dev -m sglang.launch_server": "sglang",
    "python /opt/sglang/launch_server.py": "sglang",
    "/v/bin/python /v/bin/sglang serve --model-path m": "sglang",
    "/v/bin/python3 /v/bin/vllm serve m": "vllm",
    "python -m vllm.entrypoints.openai.api_server": "vllm",
    "python -m vllm.entrypoints.cli.main serve m": "vllm",
    "python -m sglang.cli.main serve": "sglang",
    "python -m sglang.cli.main version": None,
    "python -m vllm.entrypoints.cli.main bench": None,
    "bash -c python3 -m sglang.launch_server": None,
    "tini -- python3 -m sglang.launch_server": None,
    "python3 -m sglang.bench_serving": None,
    "python3 -m sglang_router.launch_router": None,
    "python3 /v/bin/vllm bench": None,
    "python3 -c pass sglang.launch_server": None,
    "python3": None,
    "": None,
}


@pytest.mark.parametrize(("text", "said"), TITLES.items(), ids=list(TITLES))
def test_a_title_says_engine_role_and_rank(text: str, said: Title) -> None:
    assert read_title(title(text)) == said


def test_a_title_that_fills_its_area_comes_in_pieces_and_is_still_one() -> None:
    assert read_title(["sglang::scheduler_TP1", "and", "much", "more"]) == Title(
        "sglang", "scheduler", RankNumbers("TP1", tp=1)
    )


@pytest.mark.parametrize(
    "arguments", [(), ("python3",), ("not-sglang::scheduler",), ("less", "sglang::scheduler")]
)
def test_what_does_not_begin_as_a_title_is_none(arguments: tuple[str, ...]) -> None:
    assert read_title(arguments) is None


def test_a_title_of_megabytes_is_read_at_once() -> None:
    assert read_title(["sglang::scheduler_" + "A" * 2_000_000]) == Title(
        "sglang", "scheduler", RankNumbers("TP0")
    )


@pytest.mark.parametrize(
    ("comm", "said"),
    [
        ("sglang::schedul", Title("sglang", "scheduler")),
        ("sglang::detoken", Title("sglang", "detokenizer")),
        ("VLLM::Worker_TP", Title("vllm", "worker")),
        ("sglang", None),
        ("python3", None),
    ],
)
def test_of_a_zombie_the_first_letters_of_its_name_are_left(comm: str, said: Title | None) -> None:
    assert read_comm(comm) == said


@pytest.mark.parametrize(("line", "engine"), SERVERS.items(), ids=list(SERVERS))
def test_a_command_line_starts_a_server_only_when_python_runs_it(
    line: str, engine: str | None
) -> None:
    assert serves(line.split()) == engine


@pytest.mark.parametrize(
    ("flags", "port"),
    [
        ("--port 8123", 8123),
        ("--port=8123", 8123),
        ("--port 1 --port 2", 2),
        ("--port", 30000),
        ("--port x", 30000),
        ("--port ²", 30000),
        ("", 30000),
    ],
)
def test_the_port_is_the_last_one_told_or_that_of_the_engine(flags: str, port: int) -> None:
    assert declared_port(flags.split(), "sglang") == port


def test_python_is_told_by_the_name_of_its_program() -> None:
    names = ("python", "/usr/bin/python3.11", "python3.13t", "pypy3", "bash", "/x/python/sleep")
    assert [is_python(name) for name in names] == [True, True, True, True, False, False]


def test_a_child_of_multiprocessing_has_no_title_yet() -> None:
    assert is_spawned(SPAWNED)
    assert not is_spawned(("python3", "-c", "pass"))


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        ("größer", "größer"),
        ("a\nb\x1b[2Jc", "a\\nb\\x1b[2Jc"),
        ("abc\u202edcba", "abc\\u202edcba"),
        ("x" * 300, "x" * 199 + "…"),
    ],
    ids=["utf-8", "control", "right to left", "long"],
)
def test_a_title_is_shown_on_one_line_and_moves_no_cursor(text: str, shown: str) -> None:
    assert printable(text) == shown
