from collections.abc import Sequence

from app.domain.doubts import doubts
from app.domain.server_tree import Seen, Tree, find_trees
from app.domain.titles import read_title
from tests.procfs import SERVE, SPAWNED, TRACKER

SCHEDULER = ("sglang::scheduler_TP0",)
SHELL = ("bash",)


def trees(
    *processes: tuple[int, int, Sequence[str]], sessions: dict[int, int] | None = None
) -> list[Tree]:
    """Those of processes given as pid, parent and arguments; 1 is the first of them all."""
    sessions = sessions or {}
    seen = {
        pid: Seen(pid, parent, arguments, read_title(arguments), sessions.get(pid, 1))
        for pid, parent, arguments in processes
    }
    return find_trees(seen, lambda pid: pid == 1)


def test_two_servers_on_one_host_never_mix() -> None:
    found = trees(
        (1, 0, ("init",)),
        (10, 1, (*SERVE, "--port", "1")),
        (20, 1, (*SERVE, "--port", "2")),
        (11, 10, ("sglang::data_parallel_controller",)),
        (12, 11, SCHEDULER),
        (21, 20, SCHEDULER),
        (22, 21, ("nvcc",)),
        (30, 1, SHELL),
    )
    assert found == [
        Tree(10, "sglang", members=[10, 11, 12]),
        Tree(20, "sglang", members=[20, 21, 22]),
    ]


def test_a_server_inside_the_processes_of_another_is_its_own() -> None:
    found = trees(
        (10, 1, (*SERVE, "--port", "1")),
        (11, 10, SHELL),
        (12, 11, ("python3", "/v/bin/vllm", "serve", "m")),
        (13, 12, ("VLLM::EngineCore",)),
    )
    assert found == [
        Tree(10, "sglang", members=[10, 11]),
        Tree(12, "vllm", members=[12, 13]),
    ]


def test_a_fork_with_the_arguments_of_its_server_is_no_second_server() -> None:
    assert trees((10, 1, SERVE), (11, 10, SHELL), (12, 11, SERVE)) == [
        Tree(10, "sglang", members=[10, 11, 12])
    ]


def test_a_shell_that_starts_a_server_is_no_server() -> None:
    found = trees((9, 1, ("bash", "-c", "python3 -m sglang.launch_server")), (10, 9, SERVE))
    assert found == [Tree(10, "sglang", members=[10])]


def test_each_scheduler_whose_server_died_stands_alone() -> None:
    found = trees((1, 0, ("init",)), (11, 1, SCHEDULER), (12, 1, SCHEDULER), (13, 12, SHELL))
    assert found == [
        Tree(11, "sglang", gone=True, members=[11]),
        Tree(12, "sglang", gone=True, members=[12, 13]),
    ]


def test_with_the_server_gone_its_controller_keeps_its_ranks() -> None:
    found = trees((11, 1, ("sglang::data_parallel_controller",)), (12, 11, SCHEDULER))
    assert found == [Tree(11, "sglang", gone=True, members=[11, 12])]


def test_a_program_of_somebodys_own_that_holds_the_engine_is_its_server() -> None:
    found = trees(
        (10, 1, ("python3", "rollout.py")), (11, 10, TRACKER), (12, 10, SCHEDULER), (13, 10, SHELL)
    )
    assert found == [Tree(10, "sglang", members=[10, 11, 12, 13])]


def test_a_python_that_only_started_something_titled_holds_no_engine() -> None:
    found = trees((10, 1, ("python3", "anything.py")), (12, 10, SCHEDULER))
    assert found == [Tree(12, "sglang", gone=True, members=[12])]


def test_a_server_that_is_the_first_of_its_container_adopts_no_ranks_of_another() -> None:
    found = trees(
        (1, 0, SERVE),
        (11, 1, SCHEDULER),
        (12, 1, SCHEDULER),
        (13, 12, SHELL),
        sessions={1: 1, 11: 1, 12: 7, 13: 7},
    )
    assert found == [
        Tree(1, "sglang", members=[1, 11]),
        Tree(12, "sglang", gone=True, members=[12, 13]),
    ]


def test_a_frontend_that_titled_itself_is_a_server() -> None:
    found = trees((10, 1, ("sglang::http_server/tokenizer_manager",)), (11, 10, SCHEDULER))
    assert found == [Tree(10, "sglang", members=[10, 11])]


def test_what_has_no_title_and_no_server_is_nobodys() -> None:
    assert trees((10, 1, SPAWNED), (11, 10, SHELL)) == []


def test_parents_in_a_circle_end_the_look() -> None:
    assert trees((10, 11, SHELL), (11, 10, SCHEDULER)) == [
        Tree(11, "sglang", gone=True, members=[10, 11])
    ]


def test_nothing_known_is_no_doubt() -> None:
    assert doubts(program=None, uid=None, server_uid=0) == []
    assert doubts(program="/v/bin/python3.11 (deleted)", uid=0, server_uid=0) == []


def test_doubts_say_what_speaks_against_a_title() -> None:
    assert doubts(
        program="/bin/sle\nep", uid=7, server_uid=0, libraries=set(), server_gone=True
    ) == [
        "it runs sle\\nep, not Python",
        "it belongs to user 7, its server to user 0",
        "it has neither CUDA nor torch loaded",
        "its server is gone, or it never had one",
    ]
