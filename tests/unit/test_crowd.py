"""Many made-up servers of one user: they hide nobody else's, and that not all are told is told."""

from pathlib import Path

import pytest

from app.agent.processes.asked_for import servers_asked_for
from app.agent.processes.gpus import GpuReader
from app.agent.processes.ports import OF_A_LOOK, OF_A_PROCESS
from app.agent.processes.servers import Found, Servers
from app.agent.processes.table import ProcessTable
from app.domain.crowd import Candidate, in_turns
from app.domain.redaction import keyed_fingerprint
from app.errors import NotFound
from app.protocol.messages import MAX_SERVERS, GpuUse, Processes
from tests.procfs import SERVE, Made, make, tcp, title

MALLORY, ADA = 1000, 1001
BARE = "7f00 r-xp 0 08:01 5 /usr/lib/libc.so.6\n"
ADAS = 90_000
REAL = (
    Made(
        ADAS,
        1,
        SERVE,
        uid=ADA,
        start=9000,
        files={3: "socket:[9]"},
        tcp=tcp((30000, "0A", 9)),
        namespaces={"net": "net:[5]"},
    ),
    Made(ADAS + 1, ADAS, title("sglang::scheduler_TP0"), uid=ADA, start=9100),
)


def crowd(count: int, *, first: int = 100, uid: int = MALLORY, maps: str = BARE) -> list[Made]:
    return [Made(first + i, 1, SERVE, uid=uid, maps=maps) for i in range(count)]


def look(root: Path, *made: Made, gpus: dict[int, list[GpuUse]] | None = None) -> Found:
    return Servers(make(root, *made), keyed_fingerprint(b"k")).look(gpus)


def roots(found: Found) -> list[int]:
    return [server.processes[0].pid for server in found.servers]


def test_a_users_many_fakes_do_not_hide_the_server_of_another(tmp_path: Path) -> None:
    found = look(tmp_path, *crowd(3 * MAX_SERVERS), *REAL)
    assert len(found.servers) == MAX_SERVERS
    assert found.left_out == 2 * MAX_SERVERS + 1
    assert roots(found)[-1] == ADAS, "by pid, though it had its turn early"
    assert found.servers[-1].ports == [30000]


def test_containers_of_one_user_take_turns_as_well(tmp_path: Path) -> None:
    fakes = crowd(2 * MAX_SERVERS, uid=0)
    other = Made(ADAS, 1, SERVE, start=9000, cgroup="0::/docker/" + "ab" * 32 + "\n", maps=BARE)
    assert ADAS in roots(look(tmp_path, *fakes, other))


@pytest.mark.parametrize("proof", ["libraries", "gpu"])
def test_of_one_users_own_those_that_run_a_model_come_first(tmp_path: Path, proof: str) -> None:
    late = Made(ADAS, 1, SERVE, uid=MALLORY, start=9000, maps=BARE)
    if proof == "libraries":
        late = Made(ADAS, 1, SERVE, uid=MALLORY, start=9000)
    gpus = {ADAS: [GpuUse(index=0)]} if proof == "gpu" else {}
    assert ADAS in roots(look(tmp_path, *crowd(2 * MAX_SERVERS), late, gpus=gpus))


def test_where_all_fit_nobody_is_left_out(tmp_path: Path) -> None:
    found = look(tmp_path, *crowd(MAX_SERVERS - 1), *REAL)
    assert (len(found.servers), found.left_out) == (MAX_SERVERS, 0)


def test_turns_go_round_the_users_and_the_older_one_is_first() -> None:
    one, two, three = (Candidate(pid, 7, None, 0, start) for pid, start in ((1, 5), (2, 4), (3, 9)))
    other = Candidate(4, 8, None, 0, 100)
    strong = Candidate(5, 8, None, 1, 200)
    assert in_turns([one, two, three, other, strong]) == [strong, two, one, other, three]


def test_that_not_all_are_told_is_told(tmp_path: Path) -> None:
    root = make(tmp_path, *crowd(MAX_SERVERS + 1), *REAL)
    table = ProcessTable(root, GpuReader(driver=()))
    told = table.processes()
    assert told.servers_left_out == 2
    assert told.cut is not None
    assert told.cut.startswith("2 more run here and are not told")
    servers, refused = servers_asked_for(table, None)
    assert (len(servers), [one.reason for one in refused]) == (MAX_SERVERS, [told.cut])
    left_out = next(100 + i for i in range(MAX_SERVERS + 1) if 100 + i not in _pids(told))
    with pytest.raises(NotFound, match=r"no part of a server on this host that is told") as error:
        table.find(f"{left_out}.1000")
    assert error.value.why == told.cut


def _pids(told: Processes) -> set[int]:
    return {process.pid for server in told.servers for process in server.processes}


def test_an_older_agent_says_nothing_of_it_and_an_older_console_reads_it() -> None:
    old = {"at": "2026-01-01T00:00:00Z", "servers": [], "gpus": "absent"}
    told = Processes.model_validate(old)
    assert (told.servers_left_out, told.cut) == (0, None)
    assert told.model_dump(mode="json").keys() - old.keys() == {"supported", "servers_left_out"}


def _holding(pid: int, count: int, uid: int = MALLORY) -> Made:
    return Made(pid, 1, SERVE, uid=uid, files=dict.fromkeys(range(count), "/dev/null"))


def test_ports_among_too_many_open_files_are_unknown_and_not_closed(tmp_path: Path) -> None:
    (server,) = look(tmp_path, _holding(10, OF_A_PROCESS + 1)).servers
    assert (server.name, server.ports, server.ports_known) == ("sglang, pid 10", [], False)
    assert not look(tmp_path / "more", _holding(10, OF_A_PROCESS)).servers[0].name.endswith("10")


def test_what_one_user_holds_open_does_not_hide_the_port_of_another(tmp_path: Path) -> None:
    heavy = [_holding(100 + i, OF_A_PROCESS) for i in range(OF_A_LOOK // OF_A_PROCESS + 2)]
    found = look(tmp_path, *heavy, *REAL)
    known = [server.ports_known for server in found.servers]
    assert found.servers[-1].ports == [30000]
    assert known.count(False) == 3, "the rest of a look is for whoever comes late"
