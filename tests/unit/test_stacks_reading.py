"""Files of stacks in every shape that they come in."""

import orjson
import pytest

from app.domain.stacks.reading import read_files
from app.domain.stacks.samples import Reading
from app.domain.stacks.sources import StackFile
from app.domain.stacks.text import read_text
from tests import captured, stacks
from tests.stacks import dump_json, dump_text, files_in

TITLE = "sglang::scheduler_TP0"


def read(*files: tuple[str, str | bytes]) -> Reading:
    found = [(path, body.encode() if isinstance(body, str) else body) for path, body in files]
    return read_files([StackFile(*one) for one in found])


def test_several_processes_and_every_odd_line_in_one_text() -> None:
    reading = read_files(stacks.case("07"))
    assert [one.pid for one in reading.processes] == [1881, 1950, 1902]
    assert sum(one.threads for one in reading.processes) == 6
    assert sum(one.unnamed_threads for one in reading.processes) == 1
    assert sum(one.threads_without_frames for one in reading.processes) == 1
    by_pid = {one.pid: one for one in reading.processes}
    assert by_pid[1881].numbers is None
    numbers = by_pid[1950].numbers
    assert numbers is not None
    assert (numbers.dp, numbers.tp, numbers.ep, numbers.pp) == (1, 3, 3, 0)
    assert by_pid[1902].rank is None


def test_odd_names_places_and_threads_are_read_to_the_letter() -> None:
    [_, child, last] = read_text(stacks.case("07")[0].body.decode())
    worker = child.threads[1]
    assert worker.name == 'worker "q" ä模 (x): idle'
    assert [(one.function, one.file, one.line, one.native) for one in worker.frames[2:]] == [
        ("work", "a file (copy).py", 3, False),
        ("Thread.run", "threading.py", 982, False),
        ("0x7f25a1b2c3d4", "libc.so.6", None, True),
        ("gloo::transport::tcp::UnboundBuffer::waitRecv", "libtorch_cpu.so", None, True),
        ("operator()", "torch/csrc/x.h", 12, True),
    ]
    assert child.threads[0].name is None
    assert child.threads[0].owns_gil is True
    assert last.threads[0].id == "0x7ED3637AE700"
    assert [frame.function for frame in last.threads[0].frames] == ["<listcomp>", "<lambda>"]


def test_each_rank_of_a_partial_capture_is_read_or_missing_with_its_reason() -> None:
    reading = read_files(stacks.case("06"))
    assert [sample.rank for sample in reading.samples] == ["TP0"]
    assert {one.rank: one.kind for one in reading.missing} == {
        "TP1": "cut short",
        "TP2": "native_unavailable",
        "TP3": "process_gone_or_zombie",
        "TP4": "tool_missing",
        "TP5": "not tried",
        "TP6": "not tried",
        "TP7": "not tried",
    }
    assert [one.rank for one in reading.missing if one.partial] == ["TP1"]
    assert reading.expected == 8


def test_every_error_text_has_its_kind() -> None:
    reading = read_files(stacks.case("08"))
    kinds = orjson.loads((stacks.CASES / "08-pyspy-error-texts/expected.json").read_bytes())
    told = {one.file.removesuffix(".stderr.txt"): one.kind for one in reading.failures}
    assert told == kinds["parse_facts"]["kinds"]


def test_a_log_of_failed_dumps_gives_missing_ranks() -> None:
    reading = read_files(stacks.case("34"))
    assert [one.rank for one in reading.missing] == [f"TP{number}" for number in range(8)]
    assert {one.kind for one in reading.missing} == {"permission"}


def test_a_log_names_ranks_of_several_groups() -> None:
    line = "Pyspy failed (py-spy dump  --pid 700). Error: Error: failed to get os threadid"
    lost, *others = read(("server.log", f"[2026-11-30 01:33:06 DP1 TP3] {line}\n")).missing
    assert (lost.rank, lost.kind) == ("DP1_TP3", "native_unavailable")
    assert [(one.rank, one.kind) for one in others] == [
        (f"TP{number}", "not tried") for number in range(3)
    ]


def test_a_log_with_a_dump_in_it_gives_the_dump() -> None:
    dump = dump_text("sglang::scheduler_TP1", 25_357, stacks.CHECKS_CACHE)
    log = f"[2026-11-30 01:33:06 TP1] Pyspy dump for PID 25357:\n{dump}[2026-11-30 01:33:07] Next\n"
    [sample] = read(("server.log", f"[2026-11-30 01:33:01] Up\n{log}")).samples
    assert sample.rank == "TP1"
    assert [len(thread.frames) for thread in sample.dump.threads] == [11, 2, 2]


@pytest.mark.parametrize("state", ["idle", "active", "active+gil"])
def test_the_state_of_a_thread_is_read(state: str) -> None:
    [dump] = read_text(dump_text(TITLE, 700, stacks.EVICTS, state=state))
    assert dump.main is not None
    assert dump.main.active is (state != "idle")
    assert dump.main.owns_gil is {"idle": None, "active": False, "active+gil": True}[state]


# Which file is which sample ----------------------------------------------------------------------


def test_files_of_one_process_are_its_samples_in_their_order() -> None:
    text = dump_text(TITLE, 700, stacks.EVICTS)
    reading = read(*((f"s{number}/tp0.txt", text) for number in (10, 2, 1)))
    assert [(one.number, one.path) for one in reading.samples] == [
        (1, "s1/tp0.txt"),
        (2, "s2/tp0.txt"),
        (3, "s10/tp0.txt"),
    ]


def test_other_formats_of_a_process_are_not_counted_again() -> None:
    body = dump_json(19_358, stacks.AWAITS_REQUESTS)
    native = dump_json(19_358, ("pthread_cond_wait (libc.so.6)", *stacks.AWAITS_REQUESTS))
    secret = body.replace(b'"locals":null', b'"locals":[{"name":"key","repr":"sk-1"}]')
    stem = "sglang_scheduler_TP0.19358"
    reading = read(
        (f"{stem}.locals.json", secret),
        (f"{stem}.native.json", native),
        (f"{stem}.native.txt", dump_text(TITLE, 19_358, stacks.AWAITS_REQUESTS)),
        (f"{stem}.nonblocking.json", body),
        (f"{stem}.txt", dump_text(TITLE, 19_358, stacks.AWAITS_REQUESTS)),
        (f"{stem}.json", body),
    )
    assert [(one.rank, one.path) for one in reading.samples] == [("TP0", f"{stem}.json")]
    assert b"sk-1" not in repr(reading).encode()


def test_the_same_pid_on_two_hosts_is_two_ranks() -> None:
    body = dump_json(3300, stacks.SYNCS_MLP)
    reading = read(("a/TP0-3300-1.pyspy.json", body), ("b/TP8-3300-1.pyspy.json", body))
    assert [one.rank for one in reading.samples] == ["TP0", "TP8"]
    same = dump_text(TITLE, 3300, stacks.SYNCS_MLP)
    reading = read(("node0/tp0.txt", same), ("node1/tp0.txt", same))
    assert [one.rank for one in reading.samples] == ["TP0 (node0)", "TP0 (node1)"]


def test_helpers_of_the_server_are_met_and_not_compared() -> None:
    reading = read(
        ("main.18808.json", dump_json(18_808, ("run (uvicorn/server.py:66)",))),
        ("sglang_detokenizer.19360.json", dump_json(19_360, stacks.POLLS)),
        ("sglang_scheduler_TP0.19358.json", dump_json(19_358, stacks.POLLS)),
    )
    assert [one.rank for one in reading.samples] == ["TP0"]
    assert len(reading.processes) == 3


def test_plain_processes_that_a_person_chose_are_compared() -> None:
    reading = read(
        ("process-711-1.pyspy.json", _plain(711)), ("process-712-1.pyspy.json", _plain(712))
    )
    assert [one.rank for one in reading.samples] == ["pid 711", "pid 712"]


def _plain(pid: int) -> bytes:
    [thread] = orjson.loads(dump_json(pid, stacks.AWAITS_LOCK))
    thread["frames"] = thread["frames"][:2]
    return orjson.dumps([thread])


# What our own command writes ---------------------------------------------------------------------


def test_a_folder_of_ours_is_read_with_what_its_answer_tells() -> None:
    told = {
        "process_id": "3300.77",
        "pid": 3300,
        "rank": "TP0",
        "sample": 1,
        "taken_at": "2026-11-30T03:02:10Z",
        "mode": "nonblocking",
        "exact": True,
        "state_before": "T",
        "state_after": "T",
        "file": {"name": "TP0-3300-1.pyspy.json"},
    }
    refused = {
        "process_id": "3301.78",
        "rank": "TP1",
        "kind": "busy",
        "reason": "py-spy is on this process already.",
        "fix": "Wait for it.",
        "command": None,
    }
    answer = {"matched": ["3300.77", "3301.78"], "done": [told], "refused": [refused]}
    reading = read(
        ("s/TP0-3300-1.pyspy.json", dump_json(3300, stacks.POLLS)),
        ("s/TP1-3301-1.pyspy.json", b""),
        ("s/TP1-3301-1.pyspy.json.err", "busy: py-spy is on this process already.\nWait for it.\n"),
        ("s/answer.json", orjson.dumps(answer)),
    )
    [sample] = reading.samples
    assert sample.taken_at == stacks.MOMENT
    assert sample.exact is True
    assert reading.states == {"TP0": "T"}
    [lost] = reading.missing
    assert (lost.rank, lost.kind, lost.fix) == ("TP1", "busy", "Wait for it.")
    assert reading.unrecognised == ()


def test_an_error_beside_an_empty_file_is_the_reason_in_our_words_or_in_those_of_py_spy() -> None:
    reading = read(
        ("TP0-10-1.pyspy.json", b""),
        ("TP0-10-1.pyspy.json.err", "permission: No right to look.\nGive it.\nsetcap x\n"),
        ("tp1.json", b""),
        ("tp1.json.err", "Error: failed to get os threadid\n"),
    )
    assert [(one.rank, one.kind, one.reason, one.command) for one in reading.missing[:1]] == [
        ("TP0", "permission", "No right to look.", "setcap x")
    ]
    assert reading.missing[1].kind == "native_unavailable"


# Damaged and hostile -----------------------------------------------------------------------------


def test_json_that_ends_too_early_is_a_missing_rank() -> None:
    reading = read(("tp3.json", dump_json(700, stacks.POLLS)[:200]))
    [lost] = [one for one in reading.missing if one.rank == "TP3"]
    assert "cut short" in lost.reason


def test_a_text_that_ends_within_a_frame_is_not_compared() -> None:
    text = dump_text(TITLE, 700, stacks.EVICTS, helpers=())
    [lost] = read(("tp0.txt", text[: text.index("evict (") + 9])).missing
    assert (lost.kind, lost.partial) == ("cut short", True)


def test_a_main_thread_that_does_not_reach_its_module_was_cut() -> None:
    text = dump_text(TITLE, 700, stacks.EVICTS, helpers=())
    whole = text.rstrip("\n")
    assert read(("tp0.txt", whole)).missing == ()
    [lost] = read(("tp0.txt", whole[: whole.rindex("\n")])).missing
    assert lost.kind == "cut short"


def test_a_folder_named_after_a_rank_names_it() -> None:
    body = dump_json(700, stacks.POLLS)
    reading = read(("01-tp8-hang/tp3/dump.json", body))
    assert [one.rank for one in reading.samples] == ["TP3"]


def test_a_head_without_stacks_is_a_failed_dump() -> None:
    [lost] = read(("tp0.txt", f"Process 700: {TITLE}\nPython v3.12.3 (/bin/python)\n\n")).missing
    assert "failed dump" in lost.reason


def test_a_command_line_cannot_pass_for_a_thread() -> None:
    head = 'Process 700: python -c \nThread 1 (idle): "MainThread"\n    f (evil.py:1)\n'
    [dump] = read_text(head + 'Python v3.12.3 (x)\n\nThread 700 (idle): "MainThread"\n')
    assert [len(thread.frames) for thread in dump.threads] == [0]


def test_what_has_nothing_to_do_with_stacks_is_listed() -> None:
    reading = read(("notes.md", "# Found it"), ("x.json", b'{"a": 1}'), ("gpu.csv", "0,100 %"))
    assert reading.unrecognised == ("notes.md", "x.json", "gpu.csv")
    assert reading.empty


def test_hostile_files_are_survived() -> None:
    folder = captured.needs(captured.ATTACKS)
    hostile = [one for one in files_in(folder) if one.path.startswith(("json/", "text/", "prom/"))]
    assert read_files(hostile).samples == ()


def test_every_capture_in_every_state_is_survived() -> None:
    folder = captured.needs(captured.SHARED / "captures" / "pyspy-states")
    reading = read_files(files_in(folder))
    kinds = {one.kind for one in reading.failures}
    assert {"permission", "process_gone_or_zombie", "target_stopped_or_traced"} <= kinds
    assert len(reading.samples) > 15
