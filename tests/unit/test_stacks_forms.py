"""Stacks as they come from terminals, log collectors and other people's loops: the same finding."""

import re
from collections.abc import Callable

import orjson
import pytest

from app.domain.stacks.reading import read_files
from app.domain.stacks.sources import StackFile
from app.domain.stacks.wording import spans
from tests import stacks
from tests.stack_scenes import (
    CHECKS,
    EVICTS,
    EXPERTS,
    GONE,
    PIPELINE,
    REQUESTS,
    VLLM_PREPARES,
    Scene,
    jsons,
    must_say,
    scene,
    sizes,
    texts,
    tp,
)
from tests.stacks import compared, dump_json, dump_text, pid_of

APART = scene(tp(8), CHECKS, TP3=EVICTS)
BODIES = {
    rank: dump_text(f"sglang::scheduler_{rank}", pid_of(rank), calls)
    for rank, calls in APART.items()
}
ALL = "\n".join(BODIES.values())


def coloured(text: str) -> bytes:
    text = re.sub(r"(?m)^Process (\d+): ", "Process \x1b[1m\x1b[32m\\1\x1b[0m: ", text)
    text = re.sub(
        r"(?m)^Thread (\d+) \((\w+)\)", "Thread \x1b[33m\\1\x1b[0m (\x1b[32m\\2\x1b[0m)", text
    )
    return re.sub(
        r"(?m)^    (\S+) \((.*):(\d+)\)$", "    \x1b[32m\\1\x1b[0m (\x1b[36m\\2\x1b[0m:\\3)", text
    ).encode()


FORMS: dict[str, Callable[[str], bytes]] = {
    "colours": coloured,
    "crlf": lambda text: text.replace("\n", "\r\n").encode(),
    "mark-of-byte-order": lambda text: text.encode("utf-8-sig"),
    "utf-16": lambda text: text.encode("utf-16"),
    "half-a-character": lambda text: text.encode().replace(b"InductorSubproc", b"Induct\xc3"),
    "hexadecimal-threads": lambda text: re.sub(
        r"Thread (\d+) ", lambda found: f"Thread 0x{int(found[1]):X} ", text
    ).encode(),
}


@pytest.mark.parametrize("form", FORMS.values(), ids=FORMS.keys())
def test_a_text_is_read_whatever_it_went_through(form: Callable[[str], bytes]) -> None:
    files = [StackFile(f"{rank.lower()}.txt", form(body)) for rank, body in BODIES.items()]
    must_say(compared(files), "rank divergence", ["TP3"], None)


COLLECTED = {
    "kubernetes-runtime": "2026-08-04T11:58:43.123456789Z stderr F ",
    "time-stamps": "2026-08-04T11:58:43.123456789Z ",
    "kubectl-prefix": "[pod/sglang-0/sglang] ",
    "kubectl-prefix-and-time": "[pod/sglang-0/sglang] 2026-08-04T11:58:43.1Z ",
    "docker-compose": "sglang-1  | ",
    "journal": "Aug 04 11:58:43 gpu07 sglang[4411]: ",
    "stamp-of-the-server": "[2026-08-04 11:58:43 TP0] ",
    "vllm": "(EngineCore_DP0 pid=77) ",
    "ray": "(RayWorkerWrapper pid=812, ip=10.0.0.2) ",
    "torchrun": "[rank0]: ",
}


@pytest.mark.parametrize("prefix", COLLECTED.values(), ids=COLLECTED.keys())
def test_the_prefix_of_a_log_collector_is_no_part_of_a_line(prefix: str) -> None:
    log = "\n".join(f"{prefix}{line}" for line in ALL.split("\n"))
    must_say(compared([StackFile("server.log", log.encode())]), "rank divergence", ["TP3"], None)


def test_a_log_in_json_lines_of_docker_is_read() -> None:
    lines = [orjson.dumps({"log": f"{line}\n", "stream": "stderr"}) for line in ALL.split("\n")]
    found = compared([StackFile("abc-json.log", b"\n".join(lines))])
    must_say(found, "rank divergence", ["TP3"], None)


@pytest.mark.parametrize("prefix", ["", *COLLECTED.values()], ids=["none", *COLLECTED])
def test_failures_in_a_collected_log_are_missing_ranks(prefix: str) -> None:
    [file] = [one for one in stacks.case("34") if one.path.endswith("server.log")]
    log = "\n".join(f"{prefix}{line}" for line in file.body.decode().split("\n"))
    missing = read_files([StackFile("server.log", log.encode())]).missing
    if prefix.startswith("[2026"):
        assert missing == ()  # two stamps are no line of any server
    else:
        assert [(one.rank, one.kind) for one in missing] == [(n, "permission") for n in tp(8)]


def test_the_words_of_older_servers_for_a_failed_dump_are_known() -> None:
    log = (
        "[2025-03-04 11:58:43 TP1] Pyspy failed to dump PID 701. Error: sh: 1: py-spy: not found\n"
    )
    lost = [one for one in read_files([StackFile("s.log", log.encode())]).missing if one.pid]
    assert [(one.rank, one.pid, one.kind) for one in lost] == [("TP1", 701, "tool_missing")]


def _documents(apart: Scene) -> list[bytes]:
    return [dump_json(pid_of(rank), calls) for rank, calls in apart.items()]


JSONS: dict[str, Callable[[], bytes]] = {
    "a-line-each": lambda: b"\n".join(_documents(APART)),
    "a-thread-a-line": lambda: b"\n".join(
        orjson.dumps(one) for body in _documents(APART) for one in orjson.loads(body)
    ),
    "one-after-another": lambda: b"".join(
        orjson.dumps(orjson.loads(body), option=orjson.OPT_INDENT_2) for body in _documents(APART)
    ),
}


@pytest.mark.parametrize("body", JSONS.values(), ids=JSONS.keys())
def test_several_documents_in_one_file_are_all_read(body: Callable[[], bytes]) -> None:
    found = compared([StackFile("all.json", body())])
    assert (found.captured, found.verdict) == (8, "rank divergence")
    assert found.outliers == (f"pid {pid_of('TP3')}",)


def test_documents_of_one_process_in_one_file_are_its_samples() -> None:
    files = [
        StackFile(f"{rank.lower()}.jsonl", b"\n".join([dump_json(pid_of(rank), calls)] * 2))
        for rank, calls in APART.items()
    ]
    must_say(compared(files), "rank divergence", ["TP3"], True)


def test_the_last_of_several_documents_that_is_cut_is_told() -> None:
    body = b"\n".join(_documents(APART))[:-30]
    reading = read_files([StackFile("all.json", body)])
    assert len(reading.samples) == 7
    assert ["cut short" in one.reason for one in reading.failures] == [True]


def test_ranks_under_their_names_in_one_document_are_read() -> None:
    told = {rank: orjson.loads(dump_json(pid_of(rank), calls)) for rank, calls in APART.items()}
    found = compared([StackFile("all.json", orjson.dumps(told))])
    must_say(found, "rank divergence", ["TP3"], None)


# Whose they are ------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "folder", ["10.0.0.{}", "ip-10-0-0-{}", "sglang-{}", "vllm-worker-{}", "h100-0{}", "node{}"]
)
def test_the_same_pid_on_another_host_is_no_second_sample(folder: str) -> None:
    files = [
        StackFile(
            f"cap/{folder.format(at // 8)}/{900 + at % 8}.json", dump_json(900 + at % 8, calls)
        )
        for at, calls in enumerate(scene(tp(16), CHECKS, TP11=EVICTS).values())
    ]
    found = compared(files)
    assert (found.captured, found.samples, found.stuck) == (16, 1, None)
    assert found.outliers == (f"pid 903 ({folder.format(1)})",)


@pytest.mark.parametrize("folder", ["sample{}", "t{}", "dump-{}", "hang-{}", "sglang-stacks-{}"])
def test_folders_of_samples_are_no_hosts(folder: str) -> None:
    files = [
        StackFile(f"{folder.format(look)}/{pid_of(rank)}.json", dump_json(pid_of(rank), calls))
        for look in (1, 2)
        for rank, calls in APART.items()
    ]
    found = compared(files)
    assert (found.captured, found.samples) == (8, 2)


def test_titles_without_numbers_name_no_rank() -> None:
    files = [
        StackFile(f"{at}.txt", dump_text("sglang::scheduler", 700 + at, calls).encode())
        for at, calls in enumerate(APART.values())
    ]
    must_say(compared(files), "rank divergence", ["pid 703"], None)


def test_an_engine_core_of_vllm_without_workers_is_the_rank_itself() -> None:
    core = "run_engine_core (vllm/v1/engine/core.py:740)"
    loop = ("run_busy_loop (vllm/v1/engine/core.py:800)", core, "<module> (<string>:1)")
    dump = dump_text("VLLM::EngineCore", 500, VLLM_PREPARES, root=loop)
    [sample] = read_files([StackFile("1.txt", dump.encode())]).samples
    assert sample.pid == 500


# Who should be there -------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("files", "missing"),
    [
        pytest.param(
            texts(scene([f"DP1_TP{n}" for n in range(8, 16)], stacks.SYNCS_MLP)),
            tp(8),
            id="attention-dp-one-host-of-two",
        ),
        pytest.param([*texts(scene(EXPERTS[:7], CHECKS)), sizes(tp_size=8)], ["TP7"], id="experts"),
        pytest.param(
            [
                StackFile(f"rank{n}.json", dump_json(900 + n, stacks.SYNCS_MLP))
                for n in range(8, 16)
            ],
            [f"rank{n}" for n in range(8)],
            id="numbered-files-of-one-host",
        ),
        pytest.param(
            texts(scene([one for one in PIPELINE if one != "PP1_TP2"], CHECKS)),
            ["PP1_TP2"],
            id="one-of-a-stage",
        ),
        pytest.param(
            [*texts(scene(PIPELINE[:4], CHECKS)), sizes(tp_size=4, pp_size=2)],
            PIPELINE[4:],
            id="a-whole-stage",
        ),
        pytest.param(
            texts(scene(["PP0", "PP2"], stacks.RECEIVES_STAGE)), ["PP1"], id="stages-of-one-rank"
        ),
    ],
)
def test_ranks_that_nobody_tried_are_missed_whatever_their_names(
    files: list[StackFile], missing: list[str]
) -> None:
    found = compared(files)
    assert [one.rank for one in found.missing] == missing
    assert {one.kind for one in found.missing} == {"not tried"}
    assert found.outliers == ()
    assert "Not read, so unknown" in found.says


def test_local_numbers_on_two_hosts_miss_nobody() -> None:
    files = [
        StackFile(f"sglang-{at // 8}/tp{at % 8}.json", dump_json(900 + at % 8, calls))
        for at, calls in enumerate(scene(tp(16), CHECKS).values())
    ]
    assert compared([*files, sizes(tp_size=16)]).missing == ()


# Who ended meanwhile -------------------------------------------------------------------------


def _without_last(rank: str, *instead: StackFile) -> list[StackFile]:
    name = f"{rank}-{pid_of(rank)}-3.pyspy.json"
    return [*[one for one in jsons(APART, APART, APART) if one.path != name], *instead]


@pytest.mark.parametrize("rank", ["TP3", "TP5"])
def test_a_rank_that_is_gone_at_a_later_sample_has_ended(rank: str) -> None:
    name = f"{rank}-{pid_of(rank)}-3.pyspy.json"
    files = _without_last(rank, StackFile(name, b""), StackFile(f"{name}.err", GONE.encode()))
    found = compared(files)
    assert (found.verdict, found.outliers, found.ground) == ("rank divergence", (rank,), "state")
    assert f"{rank} has ended" in found.says
    assert found.settles[0].startswith(f"How {rank} ended")
    assert not any("kill -CONT" in one for one in found.settles)


def test_a_failure_before_the_first_sample_is_no_end() -> None:
    files = [StackFile("sample0/tp3.txt", GONE.encode()), *texts(APART)]
    assert compared(files).ground == "awaited"


def test_a_rank_that_was_started_anew_is_one_rank_and_its_old_samples_do_not_count() -> None:
    fresh = StackFile("TP3-4242-3.pyspy.json", dump_json(4242, stacks.COMPUTES))
    reading = read_files(_without_last("TP3", fresh))
    found = compared(reading)
    assert (found.captured, found.moved["TP3"], found.stuck) == (8, None, None)
    assert [one.kind for one in reading.failures] == ["restarted"]
    assert f"pid {pid_of('TP3')}, and then pid 4242" in reading.failures[0].reason


def test_two_servers_of_one_host_are_no_restart() -> None:
    files = [
        StackFile(f"{rank}-{pid + at}-1.pyspy.json", dump_json(pid + at, CHECKS))
        for pid in (700, 900)
        for at, rank in enumerate(tp(4))
    ]
    assert compared(files).captured == 8


def test_a_stopped_rank_that_only_the_log_tells_of_is_named() -> None:
    why = "unexpected waitpid result PtraceEvent(Pid(9), SIGSTOP, 128)"
    said = f"Failed to suspend process\n    1: {why}"
    log = f"[2026-11-30 01:33:18 TP1] Pyspy failed (py-spy dump  --pid 9). Error: Error: {said}\n"
    found = compared([StackFile("server.log", log.encode()), *texts({"TP0": REQUESTS})])
    assert (found.verdict, found.outliers) == ("rank divergence", ("TP1",))


# Stages of a pipeline ------------------------------------------------------------------------

STAGES = scene(["PP0", "PP1", "PP2", "PP3"], stacks.RECEIVES_STAGE, PP2=EVICTS)
COMPUTES = STAGES | {"PP2": stacks.COMPUTES}


@pytest.mark.parametrize(
    ("looks", "verdict", "outliers", "stuck"),
    [
        pytest.param([STAGES], "not enough evidence", [], None, id="one-look"),
        pytest.param([STAGES] * 2, "rank divergence", ["PP2"], True, id="nothing-moves"),
        pytest.param([COMPUTES] * 2, "not enough evidence", [], None, id="a-busy-one-caught-twice"),
        pytest.param([COMPUTES] * 3, "rank divergence", ["PP2"], True, id="a-batch-thrice"),
        pytest.param([COMPUTES, STAGES], "not enough evidence", [], False, id="it-goes-on"),
    ],
)
def test_stages_that_wait_for_another_one(
    looks: list[Scene], verdict: str, outliers: list[str], stuck: bool | None
) -> None:
    must_say(compared(texts(*looks)), verdict, outliers, stuck)


def test_a_stage_that_waits_is_no_symmetric_wedge_while_the_one_before_it_works() -> None:
    busy = scene(PIPELINE[:4], stacks.COMPUTES) | scene(PIPELINE[4:], stacks.RECEIVES_STAGE)
    must_say(compared(texts(busy, busy)), "not enough evidence", [], None)


# Words ---------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("ranks", "told"),
    [
        (["TP0", "TP1", "TP2", "TP4"], "TP0-2, TP4"),
        ([f"DP{n // 4}_TP{n}" for n in range(8)], "DP0_TP0-3, DP1_TP4-7"),
        (EXPERTS, "TP0_EP0 to TP7_EP7"),
        (["pid 1 (a)", "pid 2 (a)", "pid 3 (a)"], "pid 1 (a), pid 2 (a), pid 3 (a)"),
    ],
)
def test_ranks_that_follow_each_other_are_told_together(ranks: list[str], told: str) -> None:
    assert spans(ranks) == told


def test_one_stopped_rank_alone_is_not_asked_for_its_world() -> None:
    found = compared(texts({"TP0": EVICTS}), states={"TP0": "T"})
    assert [one.partition(":")[0] for one in found.settles] == ["Who stopped it"]
