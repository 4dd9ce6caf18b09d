from datetime import UTC, datetime
from pathlib import Path

from app.agent.processes.servers import Servers
from app.domain.redaction import keyed_fingerprint
from app.protocol.messages import MAX_PROCESSES, GpuUse, Process, Rank, Server
from tests.procfs import SERVE, SPAWNED, Made, make, tcp, title

CONTAINER = "0::/docker/" + "ab" * 32 + "\n"
BARE = "7f00 r-xp 0 08:01 5 /usr/lib/libc.so.6\n"


def look(root: Path, *processes: Made, gpus: dict[int, list[GpuUse]] | None = None) -> list[Server]:
    return Servers(make(root, *processes), keyed_fingerprint(b"k")).look(gpus).servers


def one(root: Path, *processes: Made) -> Server:
    (server,) = look(root, *processes)
    return server


def roles(server: Server) -> list[tuple[int, str]]:
    return [(process.pid, process.role) for process in server.processes]


def test_a_server_is_its_root_then_its_processes_by_role_and_rank(tmp_path: Path) -> None:
    server = one(
        tmp_path,
        Made(10, 1, (*SERVE, "--port", "8123"), files={3: "socket:[9]"}, tcp=tcp((8123, "0A", 9))),
        Made(11, 10, title("sglang::detokenizer")),
        Made(12, 10, title("sglang::scheduler_TP10_EP0")),
        Made(13, 10, title("sglang::scheduler_TP9_EP0")),
        Made(14, 10, ("nvidia-smi",), exe="/usr/bin/nvidia-smi"),
        Made(99, 2, (), comm="kworker/0:1", flags=0x00200000),
    )
    assert roles(server) == [
        (10, "server"),
        (13, "scheduler"),
        (12, "scheduler"),
        (11, "detokenizer"),
        (14, "other"),
    ]
    assert (server.id, server.engine, server.name, server.ports) == (
        "10.1000",
        "sglang",
        "sglang on port 8123",
        [8123],
    )
    assert server.processes[1].rank == Rank(label="TP9_EP0", tp=9, ep=0)
    assert not server.starting
    assert [process.doubts for process in server.processes] == [[]] * 5


def test_two_ranks_of_the_same_name_on_two_servers_are_two(tmp_path: Path) -> None:
    servers = look(
        tmp_path,
        Made(10, 1, SERVE),
        Made(11, 10, title("sglang::scheduler_TP0")),
        Made(20, 1, (*SERVE, "--port=2")),
        Made(21, 20, title("sglang::scheduler_TP0"), start=2000),
    )
    assert [[p.id for p in server.processes] for server in servers] == [
        ["10.1000", "11.1000"],
        ["20.1000", "21.2000"],
    ]
    assert [server.name for server in servers] == [
        "sglang, port 30000 not open",
        "sglang, port 2 not open",
    ]


def test_a_process_is_told_in_full(tmp_path: Path) -> None:
    made = Made(
        12,
        10,
        title("sglang::scheduler_TP0"),
        state="D",
        start=12_345,
        threads=31,
        inner_pids=(12, 7),
        traced_by=4,
        cgroup=CONTAINER,
        wchan="nv_wait",
        namespaces={"pid": "pid:[5]"},
    )
    process = one(tmp_path, Made(10, 1, SERVE), made).processes[1]
    assert process == Process(
        id="12.12345",
        pid=12,
        inner_pid=7,
        parent_pid=10,
        title="sglang::scheduler_TP0",
        role="scheduler",
        rank=Rank(label="TP0", tp=0),
        state="D",
        uid=0,
        started_at=datetime.fromtimestamp(1_700_000_123.45, UTC),
        threads=31,
        wchan="nv_wait",
        traced_by=4,
        rss_bytes=2500 * 4096,
        own_pid_namespace=True,
        own_mount_namespace=False,
        container="abababababab",
    )


def test_a_child_without_a_title_is_starting_until_the_port_is_open(tmp_path: Path) -> None:
    before = one(tmp_path / "a", Made(10, 1, SERVE), Made(11, 10, SPAWNED))
    assert (before.starting, roles(before)[1]) == (True, (11, "starting"))
    opened = Made(10, 1, SERVE, files={3: "socket:[9]"}, tcp=tcp((30000, "0A", 9)))
    after = one(tmp_path / "b", opened, Made(11, 10, SPAWNED))
    assert (after.starting, roles(after)[1]) == (False, (11, "other"))


def test_a_server_that_has_no_ranks_yet_is_starting(tmp_path: Path) -> None:
    assert one(tmp_path, Made(10, 1, SERVE)).starting


def test_the_rust_server_listens_inside_its_schedulers(tmp_path: Path) -> None:
    ports = tcp((8124, "0A", 9), (8123, "0A", 8), (40001, "0A", 7))
    server = one(
        tmp_path,
        Made(10, 1, (*SERVE, "--port", "8123"), tcp=ports),
        Made(
            11,
            10,
            title("sglang::scheduler_DP0_TP0"),
            files={3: "socket:[8]", 4: "socket:[7]"},
        ),
        Made(12, 10, title("sglang::scheduler_DP1_TP0"), files={3: "socket:[9]"}),
    )
    assert (server.name, server.ports) == ("sglang on port 8123", [8123, 8124])
    assert not server.starting


def test_an_engine_core_of_vllm_is_the_rank_only_where_it_has_no_workers(tmp_path: Path) -> None:
    serve = ("/v/bin/python", "/v/bin/vllm", "serve", "m")
    alone = one(tmp_path / "a", Made(10, 1, serve), Made(11, 10, title("VLLM::EngineCore_DP1")))
    assert roles(alone) == [(10, "server"), (11, "worker")]
    assert alone.processes[1].rank == Rank(label="DP1", dp=1)
    several = one(
        tmp_path / "b",
        Made(10, 1, serve),
        Made(11, 10, title("VLLM::EngineCore")),
        Made(12, 11, title("VLLM::Worker_TP1")),
        Made(13, 11, title("VLLM::Worker_TP0")),
    )
    assert roles(several) == [(10, "server"), (13, "worker"), (12, "worker"), (11, "other")]
    assert several.processes[3].rank is None


def test_a_fork_of_a_rank_is_no_second_rank(tmp_path: Path) -> None:
    server = one(
        tmp_path,
        Made(10, 1, SERVE),
        Made(11, 10, title("sglang::scheduler")),
        Made(12, 11, title("sglang::scheduler")),
    )
    assert roles(server) == [(10, "server"), (11, "scheduler"), (12, "other")]


def test_a_rank_that_died_is_still_shown_as_one(tmp_path: Path) -> None:
    dead = Made(11, 10, (), comm="sglang::schedul", state="Z", maps="")
    process = one(tmp_path, Made(10, 1, SERVE), dead).processes[1]
    assert (process.role, process.state, process.rank) == ("scheduler", "Z", None)
    assert process.title == "[sglang::schedul]"
    assert process.doubts == []


def test_a_title_alone_makes_no_rank_of_anybodys_server(tmp_path: Path) -> None:
    servers = look(
        tmp_path,
        Made(10, 1, SERVE),
        Made(11, 10, title("sglang::scheduler_TP0")),
        Made(66, 1, ("sglang::scheduler_TP9", "999"), exe="/bin/sleep", uid=1000, maps=BARE),
    )
    assert [roles(server) for server in servers] == [
        [(10, "server"), (11, "scheduler")],
        [(66, "scheduler")],
    ]
    assert servers[1].name == "sglang without its server, pid 66"
    assert servers[1].processes[0].doubts == [
        "it runs sleep, not Python",
        "it has neither CUDA nor torch loaded",
        "its server is gone, or it never had one",
    ]


def test_a_liar_below_a_server_is_doubted(tmp_path: Path) -> None:
    liar = Made(11, 10, ("sglang::scheduler_TP9",), exe="/bin/sleep", uid=1000, maps=BARE)
    assert one(tmp_path, Made(10, 1, SERVE), liar).processes[1].doubts == [
        "it runs sleep, not Python",
        "it belongs to user 1000, its server to user 0",
        "it has neither CUDA nor torch loaded",
    ]


def test_secrets_of_a_command_line_stay_where_they_are(tmp_path: Path) -> None:
    server = one(
        tmp_path,
        Made(10, 1, (*SERVE, "--api-key", "tops3cret", "--model-path", "m\n")),
        Made(11, 10, ("curl", "-H", "Authorization: Bearer tops3cret-2")),
    )
    assert "tops3cret" not in server.model_dump_json()
    assert server.command_line is not None
    assert server.command_line.startswith("python3 -m sglang.launch_server --api-key ‹redacted:")
    assert server.command_line.endswith("--model-path m\\n")


def test_the_ranks_of_a_server_come_before_what_is_cut_off(tmp_path: Path) -> None:
    others = [Made(100 + i, 10, ("cc1plus",)) for i in range(MAX_PROCESSES)]
    rank = Made(90_000, 10, title("sglang::scheduler"))
    server = one(tmp_path, Made(10, 1, SERVE), *others, rank)
    assert len(server.processes) == MAX_PROCESSES
    assert roles(server)[:2] == [(10, "server"), (90_000, "scheduler")]


def test_gpus_are_told_by_pid_and_unknown_without_the_driver(tmp_path: Path) -> None:
    use = GpuUse(index=3, used_bytes=5)
    processes = (Made(10, 1, SERVE), Made(11, 10, title("sglang::scheduler")))
    (told,) = look(tmp_path / "a", *processes, gpus={11: [use]})
    assert [process.gpus for process in told.processes] == [[], [use]]
    (untold,) = look(tmp_path / "b", *processes)
    assert [process.gpus for process in untold.processes] == [None, None]


def test_ports_that_may_not_be_seen_are_unknown_and_not_closed(tmp_path: Path) -> None:
    root = make(tmp_path, Made(10, 1, SERVE), Made(11, 10, title("sglang::scheduler")))
    for pid in ("10", "11"):
        (tmp_path / pid / "fd").rmdir()
        (tmp_path / pid / "exe").unlink()
        (tmp_path / pid / "maps").unlink()
    (server,) = Servers(root, keyed_fingerprint(b"k")).look(None).servers
    assert (server.name, server.ports, server.starting) == ("sglang, pid 10", [], False)
    assert not server.ports_known
    assert [process.doubts for process in server.processes] == [[], []]


def test_the_server_of_a_container_takes_in_no_ranks_that_were_left_to_it(tmp_path: Path) -> None:
    servers = look(
        tmp_path,
        Made(10, 2, SERVE, session=10, inner_pids=(10, 1)),
        Made(11, 10, title("sglang::scheduler_TP0"), session=10, inner_pids=(11, 8)),
        Made(12, 10, title("sglang::scheduler_TP0"), session=12, inner_pids=(12, 9)),
    )
    assert [roles(server) for server in servers] == [
        [(10, "server"), (11, "scheduler")],
        [(12, "scheduler")],
    ]
