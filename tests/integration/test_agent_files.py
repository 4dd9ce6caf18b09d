"""What the agent keeps survives crashes, full disks and other people's hands."""

import os
import signal
import subprocess
import sys
from datetime import UTC, datetime
from pathlib import Path

import pytest

from app.agent.kept.files import AgentFiles
from app.errors import Conflict, Damaged, NoSpace, NotFound, Rejected
from tests.waiting import until

QUOTA_BYTES = 10 * 1024**2
ROOT = Path(__file__).parents[2]

DIES_AFTER_THE_BYTES = """
import os, signal, sys
from pathlib import Path
from app.agent.kept.files import AgentFiles
from app.agent.kept.lines import LineFile

class Dying(LineFile):
    def append(self, line, *, durable=True):
        os.kill(os.getpid(), signal.SIGKILL)

files = AgentFiles.open(Path(sys.argv[1]), quota_bytes=10**7)
files.keep(b"whole", name="whole", kind="stacks")
files._manifest = Dying(Path(sys.argv[1]) / "manifest.jsonl")
files.keep(b"lost", name="lost", kind="stacks")
"""

WRITES_ON = """
import sys, time
with open(sys.argv[1], "ab", 0) as file:
    while True:
        file.write(b"x")
        time.sleep(0.0001)
"""


@pytest.fixture
def files(tmp_path: Path) -> AgentFiles:
    return AgentFiles.open(tmp_path / "files", quota_bytes=QUOTA_BYTES)


def _bytes(files: AgentFiles, file_id: str) -> bytes:
    opened, _ = files.open_file(file_id)
    with opened:
        return opened.read()


def test_what_was_kept_is_there_after_a_restart(files: AgentFiles) -> None:
    taken = files.keep(iter([b"a", b"b"]), name="tp0.json", kind="stacks", process_id="7.9")

    again = AgentFiles.open(files.folder, quota_bytes=QUOTA_BYTES)

    assert again.listing() == [taken]
    assert _bytes(again, taken.id) == b"ab"


def test_a_kill_between_the_bytes_and_the_manifest_leaves_no_line_and_no_damage(
    tmp_path: Path,
) -> None:
    folder = tmp_path / "files"
    command = [sys.executable, "-c", DIES_AFTER_THE_BYTES, str(folder)]
    done = subprocess.run(command, cwd=ROOT, check=False, timeout=60)
    assert done.returncode == -signal.SIGKILL

    files = AgentFiles.open(folder, quota_bytes=QUOTA_BYTES)
    kept = files.keep(b"after", name="after", kind="stacks")

    assert [file.name for file in files.listing()] == ["whole", "after"]
    assert _bytes(files, kept.id) == b"after"
    assert len(list((folder / "kept").iterdir())) == 3  # bytes are never deleted


@pytest.mark.parametrize("torn", [b"{", b'{"file": {"id": "0', b"\xff\xfe", b"null"])
def test_a_torn_last_line_is_stepped_over(files: AgentFiles, torn: bytes) -> None:
    before = files.keep(b"1", name="before", kind="stacks")
    with (files.folder / "manifest.jsonl").open("ab") as manifest:
        manifest.write(torn)

    again = AgentFiles.open(files.folder, quota_bytes=QUOTA_BYTES)
    after = again.keep(b"2", name="after", kind="stacks")

    assert again.listing() == [before, after]
    assert files.listing() == [before, after]


def test_what_another_process_kept_is_seen(files: AgentFiles) -> None:
    hook = AgentFiles.open(files.folder, quota_bytes=QUOTA_BYTES)
    assert files.listing() == []

    taken = hook.keep(b"1", name="by the hook", kind="stacks")

    assert files.listing() == [taken]


def test_beyond_the_quota_nothing_is_kept_and_nothing_is_lost(files: AgentFiles) -> None:
    first = files.keep(b"x" * 1024, name="first", kind="stacks")
    endless = (b"x" * 65_536 for _ in range(1000))

    with pytest.raises(NoSpace, match="quota"):
        files.keep(endless, name="large", kind="log tail")

    assert files.listing() == [first]
    assert list((files.folder / "spool").iterdir()) == []
    assert _bytes(files, first.id) == b"x" * 1024


def test_kept_bytes_that_were_altered_are_not_given_out(files: AgentFiles) -> None:
    taken = files.keep(b"true", name="a", kind="stacks")
    (files.folder / "kept" / taken.id).write_bytes(b"lies")

    with pytest.raises(Damaged):
        files.open_file(taken.id)


def test_kept_bytes_are_given_out_after_their_folder_was_copied(files: AgentFiles) -> None:
    taken = files.keep(b"true", name="a", kind="stacks")
    path = files.folder / "kept" / taken.id
    os.utime(path, (1, 1))

    assert _bytes(files, taken.id) == b"true"


def test_only_files_taken_later_are_listed_on_demand(files: AgentFiles) -> None:
    files.keep(b"1", name="before", kind="stacks")
    moment = datetime.now(UTC)
    later = files.keep(b"2", name="after", kind="stacks")

    assert files.listing(after=moment) == [later]


def test_an_adopted_file_stays_where_it_is_and_is_told_of_once(
    files: AgentFiles, tmp_path: Path
) -> None:
    dump = tmp_path / "core.cuda"
    dump.write_bytes(b"\x7fELF")

    first = files.adopt(dump, name="core.cuda", kind="coredump")
    again = files.adopt(dump, name="core.cuda", kind="coredump")

    assert first == again
    assert files.used_bytes() == 0
    assert _bytes(files, first.id) == b"\x7fELF"
    assert dump.read_bytes() == b"\x7fELF"


def test_an_adopted_file_that_grew_or_was_replaced_is_not_given_out(
    files: AgentFiles, tmp_path: Path
) -> None:
    dump = tmp_path / "core.cuda"
    dump.write_bytes(b"one")
    taken = files.adopt(dump, name="core.cuda", kind="coredump")
    (tmp_path / "other").write_bytes(b"two")
    (tmp_path / "other").rename(dump)

    with pytest.raises(Damaged):
        files.open_file(taken.id)

    dump.unlink()
    with pytest.raises(NotFound):
        files.open_file(taken.id)


def test_what_is_no_regular_file_is_not_adopted(files: AgentFiles, tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "pipe")
    (tmp_path / "link").symlink_to("/etc/hostname")

    with pytest.raises(Rejected):
        files.adopt(tmp_path / "pipe", name="pipe", kind="coredump")
    with pytest.raises(NotFound):
        files.adopt(tmp_path / "link", name="link", kind="coredump")


def test_a_file_that_is_written_while_it_is_read_is_not_adopted(
    files: AgentFiles, tmp_path: Path
) -> None:
    dump = tmp_path / "core.cuda"
    dump.write_bytes(b"x" * 4 * 1024**2)
    writer = subprocess.Popen([sys.executable, "-c", WRITES_ON, str(dump)])

    def adopt() -> bool:
        return files.adopt(dump, name="core.cuda", kind="coredump") is None

    try:
        with pytest.raises(Conflict):
            until(adopt)
    finally:
        writer.kill()
        writer.wait(10)


def test_names_of_strangers_become_harmless(files: AgentFiles) -> None:
    taken = files.keep(b"1", name='../"a"\n\x1b[2J' + "x" * 500, kind="stacks")

    assert taken.name.startswith(".._")
    assert taken.name.isprintable()
    assert len(taken.name) == 200


def test_only_its_owner_reads_the_folder(files: AgentFiles) -> None:
    taken = files.keep(b"1", name="a", kind="stacks")

    assert files.folder.stat().st_mode & 0o777 == 0o700
    assert (files.folder / "manifest.jsonl").stat().st_mode & 0o777 == 0o600
    assert (files.folder / "kept" / taken.id).stat().st_mode & 0o777 == 0o600
