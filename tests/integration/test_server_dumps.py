"""Crash and request dumps in the folders of a server."""

import os
import time
from contextlib import AbstractContextManager
from pathlib import Path

import pytest

from app.agent.evidence.dumps import fetch_dump, find_dumps
from app.agent.evidence.server_folders import server_folders
from app.agent.kept.files import AgentFiles
from app.errors import Conflict, NoSpace, NotFound, TooLarge
from app.protocol.messages import DumpFound
from tests.integration.telling import Told, agent_files, telling

PICKLE = b"\x80\x04\x95 never loaded"


def _old(path: Path, data: bytes = PICKLE) -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(data)
    os.utime(path, (time.time() - 60, time.time() - 60))
    return path


def _found(told: Told) -> list[DumpFound]:
    ours = told.server.id
    return [one for one in find_dumps(table=told.table).dumps if one.server_id == ours]


def _serving(folder: Path) -> AbstractContextManager[Told]:
    return telling("--crash-dump-folder", str(folder))


def test_dumps_are_listed_by_their_names_and_only_those(tmp_path: Path) -> None:
    crash = _old(tmp_path / "gpu-7" / "crash_dump_2026-01-01_00-00-00.pkl")
    request = _old(tmp_path / "2026-01-01_00-00-00.pkl")
    core = _old(tmp_path / "gpu-7" / "core.cuda.1767225600.4711")
    _old(tmp_path / "notes.pkl")
    _old(tmp_path / "a" / "b" / "crash_dump_too_deep.pkl")
    with _serving(tmp_path) as told:
        found = _found(told)
        looked_in = find_dumps(table=told.table).looked_in
    assert {one.path for one in found} == {str(crash), str(request), str(core)}
    assert str(tmp_path) in looked_in
    assert all(one.file is None and not one.growing for one in found)


def test_a_dump_keeps_its_id_and_is_copied_once(tmp_path: Path) -> None:
    _old(tmp_path / "dumps" / "host" / "crash_dump_1.pkl")
    files = agent_files(tmp_path / "files")
    with _serving(tmp_path / "dumps") as told:
        (first,), (again,) = _found(told), _found(told)
        assert first.id == again.id
        fetched = [fetch_dump(first.id, table=told.table, files=files) for _ in range(2)]
    assert fetched[0].file == fetched[1].file
    assert fetched[0].file is not None
    assert (fetched[0].file.kind, fetched[0].file.tier) == ("crash dump", "T2")
    opened, _ = files.open_file(fetched[0].file.id)
    with opened:
        assert opened.read() == PICKLE


def test_only_the_folders_of_the_servers_that_are_asked_about_are_looked_in(
    tmp_path: Path,
) -> None:
    for name in ("one", "two"):
        _old(tmp_path / name / "crash_dump_1.pkl")
    with _serving(tmp_path / "one") as one, _serving(tmp_path / "two"):
        told = find_dumps(table=one.table, process_ids=[one.server.id, "999999.1"])
    assert [dump.path for dump in told.dumps] == [str(tmp_path / "one" / "crash_dump_1.pkl")]
    assert told.looked_in == [str(tmp_path / "one")]
    assert [refusal.kind for refusal in told.refused] == ["gone"]


def test_dumps_leave_room_for_stacks(tmp_path: Path) -> None:
    _old(tmp_path / "dumps" / "crash_dump_1.pkl", b"x" * 800)
    files = AgentFiles.open(tmp_path / "files", quota_bytes=1000)
    with _serving(tmp_path / "dumps") as told:
        (found,) = _found(told)
        with pytest.raises(NoSpace, match="quota"):
            fetch_dump(found.id, table=told.table, files=files)
    assert files.keep(b"x" * 800, name="stacks", kind="stacks").size_bytes == 800


@pytest.mark.parametrize("how", ["link", "linked folder", "hard link", "fifo"])
def test_no_name_leads_out_of_the_folder(how: str, tmp_path: Path) -> None:
    outside = _old(tmp_path / "outside" / "crash_dump_secret.pkl", b"secret")
    dumps = tmp_path / "dumps"
    dumps.mkdir()
    match how:
        case "link":
            (dumps / "crash_dump_1.pkl").symlink_to(outside)
        case "linked folder":
            (dumps / "host").symlink_to(outside.parent)
        case "hard link":
            if os.geteuid() != 0:
                pytest.skip("only root may give a file away")
            os.chown(outside, 12345, 12345)
            (dumps / "crash_dump_1.pkl").hardlink_to(outside)
        case "fifo":
            os.mkfifo(dumps / "crash_dump_1.pkl")
    with _serving(dumps) as told:
        assert _found(told) == []


def test_a_dump_that_grows_is_shown_and_not_taken(tmp_path: Path) -> None:
    dump = _old(tmp_path / "crash_dump_1.pkl")
    dump.write_bytes(PICKLE)
    with _serving(tmp_path) as told:
        (found,) = _found(told)
        assert found.growing
        with pytest.raises(Conflict, match="still being written"):
            fetch_dump(found.id, table=told.table, files=agent_files(tmp_path / "files"))


def test_a_dump_that_the_server_holds_open_is_growing_and_its_folder_is_found(
    tmp_path: Path,
) -> None:
    dump = _old(tmp_path / "2026-01-01_00-00-00.pkl")
    with dump.open("ab") as output, telling(output=output) as told:
        until_written = time.time() - 60
        os.utime(dump, (until_written, until_written))
        (found,) = _found(told)
    assert found.growing


def test_a_folder_whose_name_is_no_text_is_still_told_in_json(tmp_path: Path) -> None:
    odd = tmp_path / os.fsdecode(b"odd-\xff")
    dump = _old(odd / "2026-01-01_00-00-00.pkl")
    with dump.open("ab") as output, telling(output=output) as told:
        dumps = find_dumps(table=told.table)
    assert any("odd-" in one.path for one in dumps.dumps)
    assert "odd-" in dumps.model_dump_json()


def test_another_file_of_the_same_name_is_not_the_dump_that_was_shown(tmp_path: Path) -> None:
    dump = _old(tmp_path / "crash_dump_1.pkl")
    with _serving(tmp_path) as told:
        (found,) = _found(told)
        dump.rename(tmp_path / "kept")
        _old(dump, b"another")
        with pytest.raises(NotFound):
            fetch_dump(found.id, table=told.table, files=agent_files(tmp_path / "files"))


def test_a_very_large_dump_is_left_where_it_is(tmp_path: Path) -> None:
    dump = _old(tmp_path / "crash_dump_1.pkl")
    os.truncate(dump, 2 << 30)
    os.utime(dump, (1, 1))
    with _serving(tmp_path) as told:
        (found,) = _found(told)
        with pytest.raises(TooLarge):
            fetch_dump(found.id, table=told.table, files=agent_files(tmp_path / "files"))


def test_a_folder_that_is_not_there_is_a_refusal(tmp_path: Path) -> None:
    with _serving(tmp_path / "missing") as told:
        refused = [one for one in find_dumps(table=told.table).refused if "missing" in one.reason]
    assert len(refused) == 1


def test_folders_come_from_the_command_line_and_the_environment(tmp_path: Path) -> None:
    variables = {
        "CUDA_COREDUMP_FILE": f"{tmp_path}/cores/%h/core.%p",
        "SGLANG_CUDA_COREDUMP_DIR": f"{tmp_path}/sglang",
    }
    flag = f"--crash-dump-folder={tmp_path}/crashes"
    with telling(flag, environment=variables) as told:
        paths = [folder.path for folder in server_folders(told.server)]
    assert paths == [f"{tmp_path}/{name}" for name in ("crashes", "sglang", "cores")]


def test_in_a_folder_that_the_console_names_only_request_dumps_of_the_server_are_seen(
    tmp_path: Path,
) -> None:
    named = tmp_path / "named"
    request = _old(named / "2026-01-01_00-00-00.pkl")
    _old(named / "crash_dump_1.pkl")
    _old(named / "core.cuda.1.2")
    _old(named / "id_rsa")
    _old(named / "below" / "2026-01-01_00-00-01.pkl")
    strange = _old(named / "2026-01-01_00-00-02.pkl")
    if os.geteuid() == 0:
        os.chown(strange, 12345, 12345)
    else:
        strange.unlink()
    (named / "2026-01-01_00-00-03.pkl").symlink_to("/etc/hostname")
    files = agent_files(tmp_path / "files")
    with _serving(tmp_path / "dumps") as told:
        folders, table = [str(named)], told.table
        dumps = find_dumps(process_ids=[told.server.id], table=table, folders=folders)
        assert [one.path for one in dumps.dumps] == [str(request)]
        assert str(named) in dumps.looked_in
        fetched = fetch_dump(dumps.dumps[0].id, files=files, table=table, folders=folders)
        with pytest.raises(NotFound):
            fetch_dump(dumps.dumps[0].id, table=told.table, files=files)
    assert fetched.file is not None
    assert (fetched.file.kind, fetched.file.tier) == ("request dump", "T2")


def test_a_named_folder_gives_no_other_way_up(tmp_path: Path) -> None:
    _old(tmp_path / "secret" / "2026-01-01_00-00-00.pkl")
    with _serving(tmp_path / "dumps") as told:
        up = [f"{tmp_path}/dumps/../secret"]
        assert [one.path for one in server_folders(told.server, up)] == [str(tmp_path / "dumps")]


def test_a_folder_of_the_command_line_stays_what_it_is_when_it_is_named_too(
    tmp_path: Path,
) -> None:
    with _serving(tmp_path) as told:
        [folder] = server_folders(told.server, [f"{tmp_path}/"])
    assert not folder.requests_only
