import os
from dataclasses import replace
from datetime import UTC, datetime

import pytest

from app.agent.kept.files import AgentFiles
from app.agent.readiness.preflight_host import host_checks
from app.agent.readiness.preflight_stacks import stack_checks
from app.agent.readiness.rights import Rights, SelfTest
from app.agent.readiness.server_facts import server_facts
from app.cli.preflight import preflight_text
from app.domain.pyspy_errors import NOT_ALLOWED
from app.protocol.messages import (
    Check,
    Loss,
    Preflight,
    Process,
    Readiness,
    RestartCard,
    Role,
    Server,
)
from tests.procfs import SERVE, TRACKER, Made, make, title

NOON = datetime(2026, 11, 30, 12, tzinfo=UTC)
GOOD = Rights(
    euid=0,
    capabilities=frozenset(),
    ptrace_scope=None,
    seccomp="off",
    pyspy="/venv/bin/py-spy",
    pyspy_version=(0, 4, 3),
    nsenter=None,
    tried=SelfTest(None, 0.1),
)
FOUND = Preflight(
    at=NOON,
    host=[Check(capability="stacks", ready=True, says="py-spy 0.4.3 works.")],
    processes=[
        Readiness(
            process_id="7.1",
            title="scheduler TP0\x1b[31m, pid 7",
            checks=[
                Check(capability="grace period", ready=None, says="Not seen from here. " * 9),
                Check(
                    capability="coredump",
                    ready=False,
                    says="No pipe.",
                    fix="Restart it with the variable set.",
                    command=f"incident-console {'long ' * 40}",
                ),
            ],
        )
    ],
    restarts=[
        RestartCard(
            server_id="7.1",
            name="sglang on port 30000",
            advice="Take stacks first.",
            losses=[Loss(how="SIGKILL", saves=["a"], loses=["b"], unknown=["c"], command="kill 7")],
        )
    ],
)


def process(pid: int, role: Role, **given: bool) -> Process:
    return Process(id=f"{pid}.1000", pid=pid, title="", role=role, **given)


def test_a_terminal_shows_states_fixes_commands_and_the_restart_card() -> None:
    text = "\n".join(preflight_text(FOUND, 70))
    assert "1 of 2 ready, 1 unknown" in text
    assert "\x1b" not in text
    assert "  NOT READY   coredump: No pipe.\n              fix: Restart it" in text
    assert "  unknown     grace period:" in text
    assert "If you must restart sglang on port 30000" in text
    assert [line.split()[0] for line in text.splitlines()[-3:]] == ["saves", "loses", "unknown"]


def test_lines_fit_the_terminal_and_commands_stay_whole() -> None:
    lines = list(preflight_text(FOUND, 70))
    long = [line for line in lines if len(line) > 70]
    assert [line.strip().startswith("$ incident-console") for line in long] == [True]


def test_a_host_without_servers_says_so() -> None:
    nothing = FOUND.model_copy(update={"processes": [], "restarts": []})
    assert any("No SGLang or vLLM server" in line for line in preflight_text(nothing, 80))


def test_when_py_spy_does_not_work_here_no_process_is_ready() -> None:
    refused = replace(GOOD, euid=1000, tried=SelfTest(NOT_ALLOWED, 0.1))
    checks = stack_checks(process(1, "scheduler"), refused)
    assert {check.ready for check in checks} == {False}
    assert {check.fix for check in checks} == {NOT_ALLOWED.fix}


@pytest.mark.parametrize(
    ("own_namespace", "ready"), [(None, None), (True, False)], ids=["unknown", "no-cap-sys-admin"]
)
def test_native_stacks_are_not_promised_across_namespaces(
    own_namespace: bool | None, ready: bool | None
) -> None:
    there = Process(
        id="1.1", pid=os.getpid(), title="", role="scheduler", own_pid_namespace=own_namespace
    )
    checks = {check.capability: check for check in stack_checks(there, GOOD)}
    assert checks["stacks"].ready is True
    assert checks["native stacks"].ready is ready


@pytest.mark.parametrize(
    ("roles", "environ", "arguments", "rust"),
    [
        pytest.param(["scheduler", "detokenizer"], None, SERVE, False, id="detokenizer"),
        pytest.param(["scheduler"], b"SGLANG_RUST_SERVER=1\0", SERVE, True, id="told"),
        pytest.param(["scheduler"], b"A=1\0", SERVE, False, id="told-otherwise"),
        pytest.param(["scheduler"], None, SERVE, True, id="no-detokenizer"),
        pytest.param([], None, SERVE, None, id="no-ranks-yet"),
        pytest.param(["scheduler"], None, (*SERVE, "--node-rank", "1"), None, id="second-node"),
    ],
)
def test_the_ingress_is_told_by_what_runs_and_by_the_environment(
    tmp_path_factory: pytest.TempPathFactory,
    roles: list[Role],
    environ: bytes | None,
    arguments: tuple[str, ...],
    rust: bool | None,
) -> None:
    root = make(
        tmp_path_factory.mktemp("made") / "proc", Made(7, 1, arguments), Made(9, 7, TRACKER)
    )
    if environ is not None:
        (root / "7" / "environ").write_bytes(environ)
    members = [process(7, "server"), *(process(8, role) for role in roles)]
    server = Server(id="7.1000", engine="sglang", name="", processes=members)
    assert server_facts(server, root=root).rust_ingress is rust


@pytest.mark.parametrize(
    ("arguments", "known"),
    [
        pytest.param(SERVE, True, id="all-there"),
        pytest.param((*SERVE, "--config", "a.yaml"), False, id="flags-in-a-file"),
        pytest.param(title("sglang::http_server/tokenizer_manager"), False, id="title-over-it"),
        pytest.param((), False, id="not-readable"),
    ],
)
def test_a_command_line_may_not_tell_everything(
    tmp_path_factory: pytest.TempPathFactory, arguments: tuple[str, ...], known: bool
) -> None:
    root = make(tmp_path_factory.mktemp("made") / "proc", Made(7, 1, arguments))
    server = Server(id="7.1000", engine="sglang", name="", processes=[process(7, "server")])
    assert server_facts(server, root=root).command_line_known is known


@pytest.mark.parametrize(
    ("may", "words"),
    [
        pytest.param(GOOD, "processes of user 0 only. nsenter is absent", id="own-user"),
        pytest.param(replace(GOOD, ptrace_scope=1), "yama.ptrace_scope is 1", id="yama"),
        pytest.param(
            replace(GOOD, capabilities=frozenset(("CAP_SYS_PTRACE",))), "other users", id="all"
        ),
    ],
)
def test_a_host_that_works_says_for_whose_processes(
    tmp_path_factory: pytest.TempPathFactory, may: Rights, words: str
) -> None:
    files = AgentFiles.open(tmp_path_factory.mktemp("files"), quota_bytes=2**30)
    check = host_checks(may, files, NOON)[0]
    assert check.ready is True
    assert words in check.says


def test_a_host_where_py_spy_is_missing_says_how_to_get_it(
    tmp_path_factory: pytest.TempPathFactory,
) -> None:
    files = AgentFiles.open(tmp_path_factory.mktemp("files"), quota_bytes=2**30)
    check = host_checks(replace(GOOD, pyspy=None), files, NOON)[0]
    assert check.ready is False
    assert "py-spy" in (check.command or "")
