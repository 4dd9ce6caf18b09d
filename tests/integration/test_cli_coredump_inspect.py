"""``incident-console coredump inspect``: what a person gets for a dump, and for what is none."""

import contextlib
import gzip
import json
import os
import socket
import subprocess
import sys
import tempfile
from pathlib import Path

import pytest

from app.clients.coredumps import inspect_file
from app.errors import Rejected
from tests.coredump_bytes import Gpu, Kernel, dump_bytes
from tests.integration.coredump_target import agent, target
from tests.integration.shared_tools import needs
from tests.integration.test_coredump_simulator import PATIENT, simulator
from tests.waiting import until

pytestmark = pytest.mark.slow

ROOT = Path(__file__).parents[2]
NAME = "_Z31ncclDevKernel_AllGather_RING_LL24ncclDevKernelArgsStorageILm4096EE"
TEXT = "ncclDevKernel_AllGather_RING_LL(ncclDevKernelArgsStorage<4096ul>)"
KEYS = {"file", "complete", "devices", "kernels", "exceptions", "commands", "note"}


def inspect(*arguments: str | Path, folder: Path = ROOT) -> tuple[int, str, str]:
    done = subprocess.run(
        [sys.executable, "-m", "app", "coredump", "inspect", *map(str, arguments)],
        cwd=folder,
        env={**os.environ, "PYTHONPATH": str(ROOT)},
        text=True,
        capture_output=True,
        timeout=120,
        check=False,
    )
    return done.returncode, done.stdout, done.stderr


def test_a_dump_is_told_as_text_and_as_one_document(tmp_path: Path) -> None:
    kernel = Kernel(NAME, sms=(0, 3), exception=14, error_at=0x40)
    path = tmp_path / "core 1.nvcudmp"
    path.write_bytes(dump_bytes(Gpu([kernel])))

    status, text, _ = inspect(path)
    as_json = json.loads(inspect(path.name, "--json", folder=tmp_path)[1])

    assert status == 0
    assert "look one kernel upstream" in text
    assert f"'target cudacore {path}'" in text
    assert as_json.keys() >= KEYS
    assert (as_json["file"], as_json["complete"]) == (path.name, True)
    assert as_json["kernels"][0]["name"] == TEXT
    assert as_json["exceptions"][0]["code"] == 14


@pytest.mark.parametrize(
    ("data", "reason"),
    [
        pytest.param(b"INFO: ready\n" * 40, "Not an ELF file.", id="log"),
        pytest.param(dump_bytes(Gpu())[:-100], "bytes. Nothing can be read of it", id="truncated"),
        pytest.param(gzip.compress(bytes(10_000)), "inside is no ELF file", id="gzip"),
    ],
)
def test_what_cannot_be_read_is_status_1_with_the_reason(
    tmp_path: Path, data: bytes, reason: str
) -> None:
    (tmp_path / "core").write_bytes(data)
    status, out, err = inspect("core", "--json", folder=tmp_path)
    document = json.loads(out)

    assert (status, document["complete"]) == (1, False)
    assert reason in document["note"]
    assert reason in err


def test_what_is_no_file_is_refused_without_waiting(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "pipe")

    assert "no regular file" in inspect(tmp_path / "pipe")[2]
    assert "no regular file" in inspect(tmp_path)[2]
    assert "There is no file" in inspect(tmp_path / "gone")[2]


@pytest.mark.parametrize(
    ("name", "reason"),
    [
        ("pipe", "pipe is no regular file."),
        ("folder", "folder is no regular file."),
        ("socket", "socket is no regular file."),
        ("gone", "There is no file gone."),
        ("to-nowhere", "There is no file to-nowhere."),
        ("circle", "circle cannot be opened: Too many levels of symbolic links."),
        ("core/x", "core/x cannot be opened: Not a directory."),
        ("n" * 300, "cannot be opened: File name too long."),
        ("/dev/zero", "/dev/zero is no regular file."),
        ("/proc/self/mem", "Reading it failed: Input/output error."),
    ],
    ids=lambda told: told[:12],
)
def test_what_cannot_be_opened_or_read_is_one_document_and_status_1(
    tmp_path: Path, name: str, reason: str
) -> None:
    os.mkfifo(tmp_path / "pipe")
    (tmp_path / "folder").mkdir()
    (tmp_path / "core").write_bytes(b"")
    (tmp_path / "to-nowhere").symlink_to("gone")
    (tmp_path / "circle").symlink_to("circle")
    with socket.socket(socket.AF_UNIX) as server, contextlib.chdir(tmp_path):
        server.bind("socket")
    status, out, err = inspect(name, "--json", folder=tmp_path)
    document = json.loads(out)

    assert (status, document["complete"], document["kind"]) == (1, False, "not readable")
    assert document.keys() >= KEYS
    assert reason in document["note"]
    assert reason in err


@pytest.mark.skipif(os.geteuid() != 0, reason="only root can become somebody else")
def test_a_dump_of_another_user_is_said_to_be_closed_to_this_one() -> None:
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder, "core")
        path.write_bytes(dump_bytes(Gpu()))
        path.chmod(0o600)
        Path(folder).chmod(0o755)
        os.seteuid(65_534)
        try:
            with pytest.raises(Rejected, match="Permission denied") as refused:
                inspect_file(path)
        finally:
            os.seteuid(0)
    assert refused.value.fix == "Read it as its owner, or have a copy made."


def test_a_name_with_control_characters_is_neither_obeyed_nor_pasted(tmp_path: Path) -> None:
    path = tmp_path / "a\x1b[31m\nb"
    path.write_bytes(dump_bytes(Gpu([Kernel(NAME)])))
    status, out, _ = inspect(path)

    assert (status, "\x1b" in out) == (0, False)
    assert "'target cudacore FILE'" in out


@pytest.mark.slow
def test_a_dump_that_a_process_wrote_on_demand_is_read(tmp_path: Path) -> None:
    with target(tmp_path / "t", "ok") as fake, agent(tmp_path / "a") as ours:
        done = ours.ending(ours.trigger(fake.id))
        assert done.path is not None
        document = json.loads(inspect(done.path, "--json")[1])

    assert document["complete"]
    assert document["exceptions"] == []


@pytest.mark.slow
@pytest.mark.parametrize("variant", ["ok", "gzip"])
def test_a_dump_of_the_shared_simulator_is_read(tmp_path: Path, variant: str) -> None:
    with simulator(tmp_path / "t", variant) as fake, agent(tmp_path / "a", limits=PATIENT) as ours:
        until(fake.untouched)
        done = ours.ending(ours.trigger(fake.id))
        assert done.path is not None
        document = json.loads(inspect(done.path, "--json")[1])

    (kernel,) = document["kernels"]
    assert kernel["place"] == "NCCL AllGather"
    assert (kernel["grid"], kernel["block"]) == ([24, 1, 1], [512, 1, 1])
    assert sum(place["threads"] for place in kernel["pcs"]) == 256
    assert document["devices"][0]["arch"] == "sm_90"


@pytest.mark.parametrize(
    ("name", "reason"),
    [
        ("archive/gzip_bomb_1GiB.gz", "inside is no ELF file"),
        ("archive/zip_bomb_512MiB.zip", "a zip archive"),
        ("archive/zstd_bomb_1GiB.zst", "zstd"),
        ("pickle/72_truncated_valid.pkl", "Not an ELF file"),
    ],
)
def test_an_attack_is_refused_at_once(name: str, reason: str) -> None:
    status, _, err = inspect(needs("attacks") / name)

    assert (status, reason in err) == (1, True)
