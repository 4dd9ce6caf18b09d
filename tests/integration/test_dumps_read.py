"""Files of requests, read in a process that can do nothing else: real dumps, cases, attacks."""

import gzip
import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import orjson
import pytest

from app.clients.dumps import Reading, export_file, index_file, read_requests, summarize_file
from app.domain.dumps.recorded import Row
from app.errors import NotFound, Rejected
from tests.captured import ATTACKS, CASES, SHARED, needs
from tests.dump_layouts import pickled, record

DUMPS = SHARED / "captures" / "dumps"
CASE = CASES / "21-bad-and-hostile-dump-files"
CANARY = Path("/tmp/canary-console-test")  # what a payload of an attack touches when it runs
MIB = 1024 * 1024


@pytest.mark.parametrize(
    ("name", "kind", "finished", "unfinished", "aborted"),
    [
        ("real/crash_sigterm_unhealthy_sigstop.pkl", "crash dump", 101, 30, 3),
        ("real/crash_sigkill_tp1_rank.pkl", "crash dump", 66, 57, 0),
        ("real/crash_watchdog_tp2_hang.pkl", "crash dump", 1, 37, 0),
        ("real/request_dump_2026-11-30_01-15-19.pkl", "request dump", 10, 0, 0),
        ("real/request_dump_tp2_2026-11-30_01-27-51.pkl", "request dump", 10, 0, 0),
        ("old_versions/dump_0.4.6.post5.pkl", "request dump", 11, 1, 0),
        ("old_versions/dump_0.5.2.pkl", "crash dump", 11, 1, 0),
        ("synthetic/a_request_dump_0523.pkl", "request dump", 51, 3, 3),
        ("synthetic/b_crash_dump_0523.pkl", "crash dump", 19, 7, 1),
        ("synthetic/c_plain_list_of_tuples.pkl", "request dump", 24, 1, 1),
        ("synthetic/d_server_args_none.pkl", "request dump", 10, 0, 0),
        ("synthetic/h_empty_requests.pkl", "request dump", 0, 0, 0),
        ("synthetic/j_protocol2.pkl", "request dump", 3, 0, 0),
        ("synthetic/k_protocol5.pkl", "request dump", 3, 0, 0),
    ],
)
def test_dumps_of_real_servers_have_their_requests(
    name: str, kind: str, finished: int, unfinished: int, aborted: int
) -> None:
    document = summarize_file(needs(DUMPS) / name)

    assert document["kind"] == kind
    assert (document["finished"], document["unfinished"], document["aborted"]) == (
        finished, unfinished, aborted,
    )  # fmt: skip
    assert document["requests_total"] == finished + unfinished  # aborted ones ended
    assert not document["truncated"]


def test_the_crash_dump_of_a_server_with_keys_shows_none_of_them() -> None:
    document = summarize_file(needs(DUMPS) / "real/crash_sigkill_tp1_rank.pkl", tier="T2")
    everything = json.dumps(document, ensure_ascii=False)

    assert "sk-user-111" not in everything
    assert "sk-admin-222" not in everything
    assert "--admin-api-key ‹redacted:" in document["launch_command"]
    assert document["topology"]["tp_size"] == 2
    assert document["blocked"][0] == "sglang.srt.server_args._rebuild_server_args"
    unfinished = [one for one in document["suspects"] if "unfinished" in one["why"]]
    assert len(unfinished) == 57
    assert not any("trigger" in one for one in document["suspects"])


@pytest.mark.parametrize(
    ("name", "kind", "requests", "why"),
    [
        ("a_ok", "crash dump", 3, None),
        ("b_zero_bytes", "unreadable", 0, "0 bytes"),
        ("c_truncated", "unreadable", 1, "Truncated: "),
        ("d_bare_list_old_format", "request dump", 3, None),
        ("e_reduce_os_system", "unreadable", 3, "Refused: it asks for posix.system"),
        ("f_builtins_getattr_chain", "unreadable", 0, "builtins.getattr"),
        ("g_remote_code_class_inside", "crash dump", 3, None),
        ("h_html_saved_as", "unreadable", 0, "web page"),
        ("i_gzipped", "crash dump", 3, None),
        ("j_five_field_records", "request dump", 1, "looks the same"),
        ("k_length_lie_1TiB", "unreadable", 0, "claims 1099511627776 bytes"),
        ("l_nested_20000", "unreadable", 0, "No dump"),
        ("m_requests_missing", "unreadable", 0, "no key requests"),
        ("n_empty_requests", "request dump", 0, None),
    ],
)
def test_the_case_of_bad_and_hostile_files_has_its_verdicts(
    name: str, kind: str, requests: int, why: str | None, tmp_path: Path
) -> None:
    needs(CASE)
    document = summarize_file(CASE / f"{name}.pkl")

    assert (document["kind"], document["requests_total"]) == (kind, requests)
    assert why is None or why in document["problems"][0]
    assert not Path("UNPICKLED_MARKER").exists()
    assert "SECRET-0001" not in json.dumps(document)
    if name == "a_ok":
        assert set(document["blocked"]) == {
            "sglang.srt.managers.io_struct.GenerateReqInput",
            "sglang.srt.server_args.ServerArgs",
        }
    if name == "i_gzipped":
        assert document["format"].startswith("gzip: ")
    if name == "j_five_field_records":
        assert "unknown extra field" in document["requests"][0]["problems"][0]


SUMMARIZE_EACH = """
import resource, sys
from pathlib import Path
import orjson
from app.clients.dumps import summarize_file
for path in sys.argv[1:]:
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    document = summarize_file(Path(path))
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    seconds = after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime
    print(orjson.dumps([document, seconds, after.ru_maxrss]).decode())
"""


@pytest.mark.slow
def test_no_attack_runs_or_gets_past_the_limits() -> None:
    attacks = [
        *sorted(needs(ATTACKS / "pickle").iterdir()),
        *sorted((ATTACKS / "archive").iterdir()),
    ]
    legitimate = {f"9{n}_legit_proto{n}.pkl" for n in range(6)}
    readable = {"79_hostile_fields.pkl", "80_rid_replay_urls.pkl", *legitimate}
    CANARY.unlink(missing_ok=True)
    # In a process of its own: what this one's children held before would count as theirs.
    done = subprocess.run(
        [sys.executable, "-c", SUMMARIZE_EACH, *map(str, attacks)],
        cwd=Path(__file__).parents[2],
        capture_output=True,
        check=True,
    )
    told = [orjson.loads(line) for line in done.stdout.splitlines()]
    for attack, (document, seconds, most_kib) in zip(attacks, told, strict=True):
        assert seconds < 5, attack.name
        assert most_kib < 256 * 1024, attack.name
        assert (document["kind"] != "unreadable") is (attack.name in readable), attack.name
        assert document["problems"] or attack.name in readable, attack.name
        assert not any("broke off" in one or "crashed" in one for one in document["problems"])
    assert not CANARY.exists()
    assert len(attacks) > 60


def test_rows_come_in_batches_and_are_those_of_the_document(tmp_path: Path) -> None:
    path = tmp_path / "dump.pkl"
    path.write_bytes(pickled({"server_args": None, "requests": [record(n) for n in range(2500)]}))
    batches: list[list[Row]] = []
    document = index_file(path, take=lambda rows: batches.append(list(rows)))

    assert [len(batch) for batch in batches] == [1000, 1000, 500]
    assert [one["index"] for batch in batches for one in batch] == list(range(2500))
    assert document["requests_total"] == 2500
    assert document["requests"] == []


def test_an_open_descriptor_is_read_and_stays_open(tmp_path: Path) -> None:
    path = tmp_path / "x"
    path.write_bytes(gzip.compress(pickled([record(1)])))
    descriptor = os.open(path, os.O_RDONLY)
    try:
        document = index_file(descriptor, reading=Reading(called="a.pkl"), take=lambda rows: None)
        assert (document["file"], document["finished"]) == ("a.pkl", 1)
        assert os.fstat(descriptor).st_size
    finally:
        os.close(descriptor)


def test_what_taking_raises_ends_the_reading(tmp_path: Path) -> None:
    path = tmp_path / "dump.pkl"
    path.write_bytes(pickled([record(n) for n in range(3000)]))

    def full(rows: Any) -> None:
        raise OSError("no space")

    with pytest.raises(OSError, match="no space"):
        index_file(path, take=full)


def test_few_requests_are_read_as_they_are(tmp_path: Path) -> None:
    path = tmp_path / "dump.pkl"
    path.write_bytes(pickled([record(n, text=f"prompt {n} " * 400) for n in range(30)]))
    found = read_requests(path, [3, 17, 99], "T2")

    assert [one["index"] for one in found] == [3, 17]
    assert found[1]["payload"]["text"] == "prompt 17 " * 400
    with pytest.raises(Rejected, match="0 bytes"):
        read_requests(_empty(tmp_path), [0], "T2")


def test_marks_of_secrets_compare_under_one_key(tmp_path: Path) -> None:
    path = tmp_path / "dump.pkl"
    path.write_bytes(
        pickled({"server_args": None, "requests": [], "launch_command": "x --api-key sk-FAKE-1"})
    )
    reading = Reading(key=b"k" * 32)
    commands = {summarize_file(path, reading=reading)["launch_command"] for _ in range(2)}

    assert len(commands) == 1
    assert summarize_file(path)["launch_command"] not in commands


def test_exported_lines_are_written_one_by_one(tmp_path: Path) -> None:
    path = tmp_path / "dump.pkl"
    path.write_bytes(pickled([record(n) for n in range(5)]))
    lines: list[bytes] = []
    document = export_file(path, lines.append, "T0")

    assert [json.loads(line)["index"] for line in lines] == [0, 1, 2, 3, 4]
    assert document["requests_total"] == 5


def test_paths_without_a_file_are_told(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "pipe")
    with pytest.raises(NotFound):
        summarize_file(tmp_path / "nothing")
    for path in (tmp_path, tmp_path / "pipe"):
        with pytest.raises(Rejected, match="no regular file"):
            summarize_file(path)


def _empty(folder: Path) -> Path:
    path = folder / "empty.pkl"
    path.touch()
    return path
