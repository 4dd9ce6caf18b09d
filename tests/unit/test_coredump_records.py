"""What the agent remembers of coredumps: all that may exist, and of refusals the newest."""

from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import get_args

import pytest

from app.agent.coredump.coredumps import Coredumps
from app.agent.coredump.records import MOST_REFUSED, Record, Records, refused_too_many
from app.agent.kept.files import AgentFiles
from app.agent.processes.gpus import GpuReader
from app.agent.processes.table import ProcessTable
from app.agent.touching.holds import Holds
from app.protocol.messages import Coredump, CoredumpRequest, CoredumpState
from tests.procfs import make

NOON = datetime(2026, 1, 1, 12, tzinfo=UTC)


def record(number: int, state: str = "refused", written_bytes: int = 0) -> Record:
    at = NOON + timedelta(seconds=number)
    told = {"id": f"{number:032x}", "process_id": "7.1", "state": state, "says": "x"}
    coredump = Coredump.model_validate({**told, "started_at": at, "changed_at": at})
    return Record(coredump=coredump, written_bytes=written_bytes)


def test_the_oldest_refusals_are_too_many() -> None:
    records = [record(number) for number in reversed(range(MOST_REFUSED + 2))]
    assert [one.coredump.started_at for one in refused_too_many(records)] == [
        NOON,
        NOON + timedelta(seconds=1),
    ]


@pytest.mark.parametrize("state", get_args(CoredumpState))
def test_what_may_have_a_dump_is_never_too_many(state: str) -> None:
    records = [record(number, state, written_bytes=1) for number in range(MOST_REFUSED + 9)]
    assert refused_too_many(records) == []


def test_refusals_beyond_the_limit_leave_the_list_and_the_disk(tmp_path: Path) -> None:
    folder = tmp_path / "coredumps"
    store = Records(folder)
    store.save(record(0, "complete", written_bytes=1))
    for number in range(1, MOST_REFUSED + 1):
        store.save(record(number))
    coredumps = Coredumps(
        table=ProcessTable(make(tmp_path / "proc"), GpuReader(driver=())),
        holds=Holds(),
        files=AgentFiles.open(tmp_path / "files", quota_bytes=1),
        folder=folder,
        host="gpu-14",
    )

    newest = coredumps.trigger(CoredumpRequest(process_id="7.1", confirm="gpu-14"))

    told = [one.id for one in coredumps.all()]
    assert len(told) == MOST_REFUSED + 1
    assert told[0] == record(0).coredump.id
    assert told[1] == record(2).coredump.id
    assert told[-1] == newest.id
    assert {one.coredump.id for one in Records(folder).load().values()} == set(told)
