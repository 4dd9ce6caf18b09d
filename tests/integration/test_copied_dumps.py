"""Dumps that a server wrote, copied into the incident: console, worker, agent and real folders."""

import os
import shlex
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager
from dataclasses import asdict, dataclass
from functools import partial
from pathlib import Path
from threading import Barrier

import pytest
from sqlmodel import select

from app.domain.playbook import RecordRequests
from app.errors import Conflict
from app.protocol.messages import DumpFound, Dumps, Server
from app.store import evidence, hosts
from app.store.database import reading, writing
from app.store.dumps import dumps_of
from app.store.stores import Stores
from app.store.tables import Artifact, DiagnosticItem, Host, Job, Target
from app.store.target_servers import confirm
from tests.integration import diagnosing, make
from tests.integration.agent_double import Asked, Double, agent_double
from tests.integration.at_work import at_work
from tests.integration.conftest import MakeStores
from tests.integration.diagnosing import ROOT
from tests.integration.played import played
from tests.ports import free_port
from tests.waiting import until

pytestmark = [
    pytest.mark.slow,
    pytest.mark.skipif(sys.platform != "linux", reason="looks into processes"),
]

PICKLE = b"\x80\x04\x95 never loaded "
Serve = Callable[[Path], AbstractContextManager[Target]]


@pytest.fixture(scope="module")
def stores(make_stores: MakeStores, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Stores]:
    with at_work(make_stores(tmp_path_factory.mktemp("data")), with_agent=True) as opened:
        yield opened


@pytest.fixture
def serve(stores: Stores) -> Serve:
    """Plays a server that dumps into a folder, linked to a target of its own."""
    with reading(stores.engine) as session:
        [host] = [one for one in hosts.list_hosts(session) if one.embedded]

    def seen(port: int) -> Server | None:
        told = hosts.processes_of(diagnosing.heard(stores, host))
        found = [one for one in told.servers if port in one.ports] if told else []
        return found[0] if found and not found[0].starting else None

    @contextmanager
    def serving(folder: Path) -> Iterator[Target]:
        port = free_port()
        node = {"listens": port, "children": [{"title": "sglang::scheduler_TP0"}]}
        with played(node, "--port", str(port), "--crash-dump-folder", str(folder)):
            server = until(lambda: seen(port))
            assert server is not None
            yield _linked(stores, host, server.id)

    return serving


def _linked(stores: Stores, host: Host, server_id: str) -> Target:
    target = make.target(stores, "http://127.0.0.1:9", f"decode-{free_port()}")
    with writing(stores.engine) as session:
        confirm(session, target, host.id or 0, server_id, make.MIRA, make.now())
    return target


def _old(path: Path, data: bytes, seconds: float = 60) -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(data)
    os.utime(path, (time.time() - seconds, time.time() - seconds))
    return path


@dataclass(frozen=True)
class Copied:
    """What one press brought."""

    state: str
    says: str
    answer: str
    items: list[DiagnosticItem]

    @property
    def done(self) -> list[DiagnosticItem]:
        return [one for one in self.items if one.state == "done"]


def _press(stores: Stores, incident_id: int, **given: object) -> Copied:
    diagnostic_id = diagnosing.press(stores, incident_id, "server dumps", **given)
    return _ended(stores, diagnostic_id)


def _ended(stores: Stores, diagnostic_id: int) -> Copied:
    row = diagnosing.ended(stores, diagnostic_id, seconds=60)
    answers = (row.answer or {}).get("hosts", [])
    says = " ".join(one["says"] for one in answers)
    return Copied(row.state, row.says, says, diagnosing.items(stores, diagnostic_id))


def _artifacts(stores: Stores, incident_id: int) -> list[Artifact]:
    with reading(stores.engine) as session:
        query = select(Artifact).where(Artifact.incident_id == incident_id)
        return list(session.exec(query))


def test_dumps_are_copied_byte_by_byte_the_newest_first_and_say_when_they_were_written(
    stores: Stores, serve: Serve, tmp_path: Path
) -> None:
    _old(tmp_path / "2026-01-01_00-00-00.pkl", PICKLE + b"request", 600)
    _old(tmp_path / "gpu-7" / "core.cuda.1767225600.4711", b"\x7fELF", 300)
    newest = _old(tmp_path / "gpu-7" / "crash_dump_1.pkl", PICKLE + b"crash", 60)
    _old(tmp_path / "notes.pkl", b"not a dump")
    with serve(tmp_path) as target:
        incident_id = diagnosing.incident(stores, target)
        copied = _press(stores, incident_id)
    assert copied.state == "done", copied.says
    assert [one.kind for one in copied.items] == ["crash dump", "coredump", "request dump"]
    first = copied.items[0]
    assert first.detail["path"] == str(newest)
    with reading(stores.engine) as session:
        artifact = evidence.get_artifact(session, first.artifact_id or 0)
    assert (artifact.tier, artifact.kind, artifact.taken_by) == ("T2", "crash dump", "mira")
    assert stores.artifacts.read(artifact.sha256, 10**6) == PICKLE + b"crash"
    written_at = newest.stat().st_mtime if newest.exists() else 0
    assert artifact.covers_to is not None
    assert abs(artifact.covers_to.timestamp() - written_at) < 1
    assert copied.answer == f"3 dumps lie in {tmp_path}."
    with reading(stores.engine) as session:
        told = dumps_of(session, incident_id)
    names = {one.name.partition("-")[2] for one in told}  # the agent's number comes first
    assert names == {"crash_dump_1.pkl", "2026-01-01_00-00-00.pkl"}
    assert make.until(stores, told[0].job_id or 0, "succeeded").kind == "ingest"


def test_a_second_press_brings_only_what_is_new(
    stores: Stores, serve: Serve, tmp_path: Path
) -> None:
    _old(tmp_path / "crash_dump_1.pkl", PICKLE + b"one")
    with serve(tmp_path) as target:
        incident_id = diagnosing.incident(stores, target)
        first = _press(stores, incident_id)
        _old(tmp_path / "crash_dump_2.pkl", PICKLE + b"two", 30)
        _old(tmp_path / "crash_dump_3.pkl", PICKLE + b"one", 20)
        second = _press(stores, incident_id)
        elsewhere = _press(stores, diagnosing.incident(stores, target))
    kept = first.items[0].artifact_id
    states = [(one.state, one.artifact_id == kept) for one in second.items]
    assert states == [("here-already", True), ("done", False), ("here-already", True)]
    assert f"The same bytes are here as artifact {kept}." in second.items[0].says
    assert "2 were here already" in second.says
    assert len(_artifacts(stores, incident_id)) == 2
    assert len(elsewhere.done) == 2, "another incident has evidence of its own"


def test_what_was_purged_is_not_brought_back(stores: Stores, serve: Serve, tmp_path: Path) -> None:
    _old(tmp_path / "crash_dump_1.pkl", PICKLE + b"private")
    with serve(tmp_path) as target:
        incident_id = diagnosing.incident(stores, target)
        [item] = _press(stores, incident_id).items
        evidence.purge(
            stores, item.artifact_id or 0, actor=make.MIRA, reason="Private.", at=make.now()
        )
        [again] = _press(stores, incident_id).items
    assert (again.state, again.artifact_id) == ("refused", None)
    assert "purged by mira" in again.says


def test_what_grows_or_is_too_large_is_left_there_with_words(
    stores: Stores, serve: Serve, tmp_path: Path
) -> None:
    folder = tmp_path / "it's"
    growing, huge = folder / "crash_dump_growing.pkl", folder / "crash_dump_huge.pkl"
    _old(huge, PICKLE)
    os.truncate(huge, 2 << 30)
    os.utime(huge, (1, 1))
    _old(folder / "crash_dump_1.pkl", PICKLE + b"whole")
    with serve(folder) as target:
        growing.write_bytes(PICKLE)
        os.utime(growing, (time.time() + 30, time.time() + 30))
        copied = _press(stores, diagnosing.incident(stores, target))
    says = {Path(one.detail["path"]).name: one for one in copied.items}
    assert "still being written" in says[growing.name].says
    assert str(growing) in says[growing.name].says
    left = says[huge.name]
    assert (left.state, f"{huge} has 2.0 GiB" in left.says) == ("refused", True)
    assert left.command is not None
    ssh, _, name, there, *here = shlex.split(left.command)
    assert (ssh, name, here) == ("ssh", left.host_name, [">", "crash_dump_huge.pkl"])
    assert shlex.split(there) == ["cat", "--", str(huge)]
    assert [Path(one.detail["path"]).name for one in copied.done] == ["crash_dump_1.pkl"]


def test_sixteen_are_copied_at_once_and_the_rest_on_the_next_press(
    stores: Stores, serve: Serve, tmp_path: Path
) -> None:
    for number in range(18):
        _old(tmp_path / f"crash_dump_{number}.pkl", PICKLE + b"%d" % number, 60 + number)
    with serve(tmp_path) as target:
        incident_id = diagnosing.incident(stores, target)
        first, second = _press(stores, incident_id), _press(stores, incident_id)
    taken = [Path(one.detail["path"]).name for one in first.done]
    assert taken == [f"crash_dump_{number}.pkl" for number in range(16)]
    assert "2 older dumps were not asked for" in first.items[-1].says
    assert len(second.done) == 2
    assert len(_artifacts(stores, incident_id)) == 18


def test_only_dumps_of_the_chosen_server_are_copied_from_a_shared_folder_too(
    stores: Stores, serve: Serve, tmp_path: Path
) -> None:
    _old(tmp_path / "shared" / "crash_dump_1.pkl", PICKLE + b"of one of them")
    _old(tmp_path / "other" / "crash_dump_2.pkl", PICKLE + b"of the other")
    with (
        serve(tmp_path / "shared") as first,
        serve(tmp_path / "shared") as second,
        serve(tmp_path / "other"),
    ):
        brought = [_press(stores, diagnosing.incident(stores, one)) for one in (first, second)]
    for one in brought:
        assert [Path(item.detail["path"]).name for item in one.items] == ["crash_dump_1.pkl"]


def test_an_empty_folder_is_an_answer_and_a_missing_one_a_refusal(
    stores: Stores, serve: Serve, tmp_path: Path
) -> None:
    (tmp_path / "empty").mkdir()
    with serve(tmp_path / "empty") as empty, serve(tmp_path / "missing") as missing:
        nothing = _press(stores, diagnosing.incident(stores, empty))
        unread = _press(stores, diagnosing.incident(stores, missing))
    assert (nothing.state, nothing.answer) == ("done", f"No dump lies in {tmp_path / 'empty'}.")
    assert (unread.state, unread.answer) == ("refused", "")
    assert "cannot be read" in unread.items[0].says


def test_a_server_that_is_gone_is_told_before_anything_is_asked(
    stores: Stores, serve: Serve, tmp_path: Path
) -> None:
    with serve(tmp_path) as target:
        incident_id = diagnosing.incident(stores, target)
    with reading(stores.engine) as session:
        [host] = [one for one in hosts.list_hosts(session) if one.embedded]
    until(lambda: diagnosing.heard(stores, host) and _is_lost(stores, incident_id))


def _is_lost(stores: Stores, incident_id: int) -> bool:
    try:
        _press(stores, incident_id)
    except Conflict as error:
        return "is known now" in error.what
    return False


@pytest.fixture
def double() -> Iterator[Double]:
    with agent_double(Double()) as running:
        yield running


def _dumping(double: Double, sizes: list[int]) -> None:
    """Have *double* tell of dumps of *sizes*; each is a few bytes in truth."""
    told = [
        DumpFound(
            id=f"{number:032x}",
            path=f"/dumps/crash_dump_{number}.pkl",
            size_bytes=size,
            changed_at=make.now(),
            server_id=ROOT,
        )
        for number, size in enumerate(sizes)
    ]
    double.says["GET /dumps"] = lambda _: Dumps(at=make.now(), dumps=told, looked_in=["/dumps"])
    for number, one in enumerate(told):
        file = double.file(b"%d" % number, f"{number}.pkl", "crash dump")
        whole = one.model_copy(update={"file": file})
        double.says[f"POST /dumps/{one.id}"] = partial(_same, whole)


def _same(dump: DumpFound, _: Asked) -> DumpFound:
    return dump


def _target(stores: Stores, double: Double) -> Target:
    host = diagnosing.host(stores, double, diagnosing.new_name(), diagnosing.server())
    return _linked(stores, host, ROOT)


def test_four_gibibytes_are_copied_at_most(stores: Stores, double: Double) -> None:
    _dumping(double, [1 << 30] * 5)
    copied = _press(stores, diagnosing.incident(stores, _target(stores, double)))
    assert len(copied.done) == 4
    assert double.those("GET /dumps")[0].query == {"process_id": [ROOT]}
    assert "1 older dump was not asked for" in copied.items[-1].says


def test_dumps_of_other_servers_are_not_taken_from_an_agent_that_tells_of_all(
    stores: Stores, double: Double
) -> None:
    _dumping(double, [1])
    other = DumpFound(
        id="f" * 32, path="/dumps/crash_dump_9.pkl", size_bytes=1, changed_at=make.now(),
        server_id="7.7",
    )  # fmt: skip
    nobodys = other.model_copy(update={"server_id": None, "path": "/elsewhere/crash_dump_8.pkl"})
    said = double.says["GET /dumps"]

    def told(asked: Asked) -> Dumps:
        answer: Dumps = said(asked)
        return answer.model_copy(update={"dumps": [*answer.dumps, other, nobodys]})

    double.says["GET /dumps"] = told
    copied = _press(stores, diagnosing.incident(stores, _target(stores, double)))
    assert [one.detail["path"] for one in copied.items] == ["/dumps/crash_dump_0.pkl"]


def test_two_presses_at_once_keep_equal_bytes_once(stores: Stores, double: Double) -> None:
    _dumping(double, [1])
    both, say = Barrier(2, timeout=100), double.says["POST /dumps/" + "0" * 32]

    def together(asked: Asked) -> DumpFound:
        both.wait()
        answer: DumpFound = say(asked)
        return answer

    double.says["POST /dumps/" + "0" * 32] = together
    incident_id = diagnosing.incident(stores, _target(stores, double))
    asked = [diagnosing.press(stores, incident_id, "server dumps") for _ in range(2)]
    items = [item for one in asked for item in _ended(stores, one).items]
    assert sorted(one.state for one in items) == ["done", "here-already"]
    assert len(_artifacts(stores, incident_id)) == 1


def test_an_agent_that_refuses_one_dump_takes_nothing_from_the_others(
    stores: Stores, double: Double
) -> None:
    _dumping(double, [1, 1])
    refusal = {"error": "no-space", "detail": "The quota is used up.", "fix": "Remove some."}
    double.says["POST /dumps/" + "0" * 32] = lambda _: (507, refusal)
    copied = _press(stores, diagnosing.incident(stores, _target(stores, double)))
    refused = [one for one in copied.items if one.state == "refused"]
    assert [one.says for one in refused] == ["/dumps/crash_dump_0.pkl: The quota is used up."]
    assert (refused[0].fix, len(copied.done)) == ("Remove some.", 1)


def test_a_host_that_does_not_answer_is_one_refusal(stores: Stores, double: Double) -> None:
    gone = Double(url=f"http://127.0.0.1:{free_port()}")
    copied = _press(stores, diagnosing.incident(stores, _target(stores, gone)))
    assert (copied.state, len(copied.items)) == ("refused", 1)
    assert copied.items[0].kind == "unreachable"


def test_a_folder_that_was_set_while_the_server_ran_is_named_to_the_agent(
    stores: Stores, serve: Serve, tmp_path: Path
) -> None:
    named = tmp_path / "named"
    request = _old(named / "2026-01-01_00-00-00.pkl", PICKLE)
    _old(named / "crash_dump_1.pkl", PICKLE + b"not asked for")
    with serve(tmp_path / "crash") as target:
        incident_id = diagnosing.incident(stores, target)
        assert _press(stores, incident_id).done == []
        _recorded(stores, target, str(named))
        copied = _press(stores, incident_id)
    assert [one.detail["path"] for one in copied.done] == [str(request)]
    assert [one.kind for one in copied.done] == ["request dump"]


def _recorded(stores: Stores, target: Target, folder: str) -> None:
    """A recording into *folder* that is over."""
    step = RecordRequests(target.id or 0, folder, 5, 60.0)
    with writing(stores.engine) as session:
        job = Job(
            key=f"recorded {target.id}",
            kind="record",
            target_id=target.id,
            partition=f"record:{target.id}",
            arguments=asdict(step),
            state="succeeded",
            requested_by="mira",
            created_at=make.now(),
            result={"phase": "off"},
        )
        session.add(job)
