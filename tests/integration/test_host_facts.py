"""Facts of this very host, and of a server on it."""

import os
from pathlib import Path

import pytest

from app.agent.evidence.facts import host_facts
from app.agent.evidence.kernel_log import read_kernel_log
from app.agent.kept.files import AgentFiles
from tests.integration.telling import agent_files, telling


def test_every_topic_is_told_and_each_fact_names_its_source(tmp_path: Path) -> None:
    log = tmp_path / "server.log"
    with log.open("wb") as output, telling(output=output) as told:
        server = told.server
        answer = host_facts(
            table=told.table, files=agent_files(tmp_path / "files"), process_ids=[server.id]
        )
    topics = {fact.topic for fact in answer.facts}
    wanted = {"clock", "boot", "load", "memory", "pressure", "kernel log", "disk", "cgroup"}
    assert topics == wanted | {"network", "process"}
    assert all(fact.source and fact.says.endswith(".") for fact in answer.facts)
    assert {file.kind for file in answer.files} <= {"kernel log", "log tail"}
    assert [file.process_id for file in answer.files if file.kind == "log tail"] == [server.id]
    of_process = [fact.says for fact in answer.facts if fact.topic == "process"]
    assert of_process[0].startswith(f"server (pid {told.root.pid}) ")


def test_the_folder_that_a_server_dumps_to_is_measured(tmp_path: Path) -> None:
    with telling("--crash-dump-folder", str(tmp_path), output=None) as told:
        answer = host_facts(
            table=told.table, files=agent_files(tmp_path / "f"), process_ids=[told.server.id]
        )
    says = [fact.says for fact in answer.facts if fact.source == str(tmp_path)]
    assert len(says) == 1
    assert " are free where " in says[0]


def test_a_process_that_is_gone_is_refused_and_the_host_still_told(tmp_path: Path) -> None:
    with telling() as told:
        gone, table = told.server.id, told.table
    answer = host_facts(table=table, files=agent_files(tmp_path), process_ids=[gone])
    assert [(one.process_id, one.kind) for one in answer.refused] == [(gone, "gone")]
    assert "memory" in {fact.topic for fact in answer.facts}


def test_a_full_quota_costs_the_files_and_not_the_facts(tmp_path: Path) -> None:
    log = tmp_path / "server.log"
    files = AgentFiles.open(tmp_path / "files", quota_bytes=1)
    with log.open("wb") as output, telling(output=output) as told:
        answer = host_facts(table=told.table, files=files, process_ids=[told.server.id])
    assert answer.facts
    assert "no space" in {one.kind for one in answer.refused}


def test_the_kernel_log_is_read_to_its_end_and_no_further() -> None:
    if not os.access("/dev/kmsg", os.R_OK):
        pytest.skip("the kernel's log is not for us")
    log = read_kernel_log()
    assert log is not None
    assert log.source == "/dev/kmsg"
    assert sorted(line.seconds for line in log.lines) == [line.seconds for line in log.lines]


@pytest.mark.parametrize("device", ["missing", "pipe"])
def test_a_device_without_a_line_says_nothing_about_the_kernel(device: str, tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "pipe")  # empty, as the device is in many containers
    log = read_kernel_log(tmp_path / device)
    assert log is None or (log.lines and log.source in ("dmesg", "journalctl -k"))
