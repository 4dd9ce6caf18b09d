"""Real triggers of real pipes: what each behaviour of a driver ends in."""

import hashlib
import os
import signal
from dataclasses import replace
from pathlib import Path

import pytest

from app.agent.coredump.coredumps import Coredumps
from tests.integration.coredump_target import (
    QUICK,
    agent,
    needs_namespaces,
    target,
)
from tests.waiting import until

pytestmark = pytest.mark.slow


@pytest.mark.parametrize("variant", ["ok", "gzip", "sparse_first", "renamed"])
def test_a_dump_that_the_driver_finishes_is_complete_and_served_as_it_is(
    tmp_path: Path, variant: str
) -> None:
    with target(tmp_path / "t", variant) as fake, agent(tmp_path / "a") as ours:
        sent = ours.trigger(fake.id)
        done = ours.ending(sent)

        assert (sent.state, sent.found_by) == ("sent", "descriptor"), sent
        assert done.state == "complete", done
        assert done.file is not None
        opened, file = ours.files.open_file(done.file.id)
        with opened:
            served = opened.read()
        assert hashlib.sha256(served).hexdigest() == file.sha256 == done.file.sha256
        assert Path(str(done.path)).read_bytes() == served  # where the driver put it
        assert fake.untouched()


@pytest.mark.parametrize("variant", ["needs_4096"])
def test_one_retry_with_a_full_buffer_wakes_a_driver_that_waits_for_one(
    tmp_path: Path, variant: str
) -> None:
    with target(tmp_path / "t", variant) as fake, agent(tmp_path / "a") as ours:
        done = ours.ending(ours.trigger(fake.id))

        assert done.state == "complete"
        assert "4096 bytes were sent, once" in done.notes[-1]


@pytest.mark.parametrize("variant", ["ignored", "write_error"])
def test_a_trigger_without_a_file_ends_as_no_file_and_advises_against_another(
    tmp_path: Path, variant: str
) -> None:
    with target(tmp_path / "t", variant) as fake, agent(tmp_path / "a") as ours:
        done = ours.ending(ours.trigger(fake.id))

        assert done.state == "no-file"
        assert "Do not trigger again" in str(done.fix)
        assert done.file is None
        assert fake.untouched()


def test_a_dump_that_never_ends_is_watched_for_so_long_and_its_host_is_free_again(
    tmp_path: Path,
) -> None:
    patient = replace(QUICK, watched_seconds=3.0, pause_seconds=0.0)
    with target(tmp_path / "t", "endless") as fake, agent(tmp_path / "a", limits=patient) as ours:
        done = ours.ending(ours.trigger(fake.id))

        assert done.state == "timed-out"
        assert "no end in 3 s" in done.says
        assert done.file is None
        assert fake.untouched()
        again = ours.trigger(fake.id)
        assert "since it was asked for" not in again.says, "another dump has its turn"


def test_a_stalled_dump_times_out_and_is_not_served(tmp_path: Path) -> None:
    with target(tmp_path / "t", "stall") as fake, agent(tmp_path / "a") as ours:
        done = ours.ending(ours.trigger(fake.id))

        assert done.state == "timed-out"
        assert "still open for writing" in done.says
        assert done.file is None
        assert fake.untouched()


@pytest.mark.parametrize("variant", ["truncated", "dies_during"])
def test_a_dump_that_is_cut_off_is_truncated_and_left_where_it_is(
    tmp_path: Path, variant: str
) -> None:
    with target(tmp_path / "t", variant) as fake, agent(tmp_path / "a") as ours:
        done = ours.ending(ours.trigger(fake.id))

        assert done.state == "truncated"
        assert done.file is not None
        assert done.file.kind == "truncated coredump"
        assert Path(str(done.path)).stat().st_size == done.size_bytes


def test_a_sparse_dump_whose_process_dies_is_truncated_although_its_structure_fits(
    tmp_path: Path,
) -> None:
    with (
        target(tmp_path / "t", "sparse_first", "--size-bytes=4000000", "--seconds=20") as fake,
        agent(tmp_path / "a") as ours,
    ):
        sent = ours.trigger(fake.id)
        fake.wait_for("dump")
        until(lambda: (ours.coredumps.get(sent.id).size_bytes or 0) > 3_000_000)
        os.kill(fake.pid, signal.SIGKILL)
        fake.process.wait()

        assert ours.ending(sent).state == "truncated"


def test_a_process_that_ends_after_its_dump_leaves_a_complete_one(tmp_path: Path) -> None:
    with target(tmp_path / "t", "abort_after") as fake, agent(tmp_path / "a") as ours:
        done = ours.ending(ours.trigger(fake.id))

        assert done.state == "complete", done


def test_a_process_that_dies_of_the_trigger_produced_no_dump(tmp_path: Path) -> None:
    with target(tmp_path / "t", "dies_first") as fake, agent(tmp_path / "a") as ours:
        done = ours.ending(ours.trigger(fake.id))

        assert (done.state, done.says[:17]) == ("no-file", "The process ended")


def test_a_growing_dump_is_held_not_served_and_refuses_a_second_trigger(tmp_path: Path) -> None:
    with (
        target(tmp_path / "t", "held") as fake,
        agent(tmp_path / "a") as ours,
        agent(tmp_path / "b", lock=ours.lock) as another,
    ):
        sent = ours.trigger(fake.id)
        growing = ours.until_state(sent, "growing")
        second, elsewhere = ours.trigger(fake.id), another.trigger(fake.id)

        assert growing.file is None
        assert ours.files.listing() == []
        assert ours.holds.holder(fake.pid) == "A CUDA coredump"
        assert {second.state, elsewhere.state} == {"refused"}
        assert "being written already" in second.says
        assert "being written already" in elsewhere.says
        fake.let_end()
        assert ours.ending(sent).state == "complete"
        assert until(lambda: ours.holds.holder(fake.pid) is None)
        assert "One in 10 min" in str(ours.trigger(fake.id).fix)
        assert len(list(fake.folder.glob("core_*"))) == 1


def test_a_dump_goes_where_its_template_says(tmp_path: Path) -> None:
    (tmp_path / "dumps").mkdir()
    told = {"CUDA_COREDUMP_FILE": str(tmp_path / "dumps" / "x.%h.%t.%p")}
    with (
        target(tmp_path / "t", "ok", "--keep-environment", environment=told) as fake,
        agent(tmp_path / "a") as ours,
    ):
        done = ours.ending(ours.trigger(fake.id))

        assert done.state == "complete"
        assert Path(str(done.path)).parent == tmp_path / "dumps"


def test_a_restarted_agent_goes_on_watching_and_writes_nothing_again(tmp_path: Path) -> None:
    with target(tmp_path / "t", "held") as fake:
        with agent(tmp_path / "a") as first:
            sent = first.trigger(fake.id)
            first.until_state(sent, "growing")
        with agent(tmp_path / "a") as second:
            assert second.coredumps.get(sent.id).state == "growing"
            second.coredumps.resume()
            fake.let_end()
            done = second.ending(sent)

        assert done.state == "complete"
        assert "sends nothing again" in done.notes[-1]
        assert fake.untouched()


def test_a_restarted_agent_sends_no_retry(tmp_path: Path) -> None:
    with target(tmp_path / "t", "needs_4096") as fake:
        with agent(tmp_path / "a", limits=replace(QUICK, retry_seconds=60)) as first:
            sent = first.trigger(fake.id)
        with agent(tmp_path / "a") as second:
            second.coredumps.resume()
            done = second.ending(sent)

        assert done.state == "no-file"
        assert list(fake.folder.glob("core_*")) == []


def test_a_dump_that_ended_while_no_agent_ran_is_found_complete(tmp_path: Path) -> None:
    with target(tmp_path / "t", "held") as fake:
        with agent(tmp_path / "a") as first:
            sent = first.trigger(fake.id)
            first.until_state(sent, "growing")
        fake.let_end()
        fake.wait_for("closed")
        os.kill(fake.pid, signal.SIGKILL)
        fake.process.wait()
        with agent(tmp_path / "a") as second:
            second.coredumps.resume()

            assert second.ending(sent).state == "complete"


def test_what_is_known_survives_the_agent(tmp_path: Path) -> None:
    with agent(tmp_path / "a") as first:
        refused = first.trigger("1.1")
    with agent(tmp_path / "a") as second:
        found: Coredumps = second.coredumps

        assert [coredump.id for coredump in found.all()] == [refused.id]
        assert found.get(refused.id) == refused


@pytest.mark.slow
@pytest.mark.parametrize("variant", ["ok", "slow", "gzip", "dies_during"])
def test_a_dump_in_a_container_is_found_and_served_from_outside(
    tmp_path: Path, variant: str
) -> None:
    needs_namespaces()
    with (
        target(tmp_path / "t", variant, inside="size=64m") as fake,
        agent(tmp_path / "a") as ours,
    ):
        sent = ours.trigger(fake.id)
        done = ours.ending(sent)

        expected = "truncated" if variant == "dies_during" else "complete"
        assert (done.state, done.found_by) == (expected, "descriptor"), done
        assert str(done.path).startswith(f"/proc/{fake.pid}/root/")
        assert done.file is not None
        opened, file = ours.files.open_file(done.file.id)
        with opened:
            assert hashlib.sha256(opened.read()).hexdigest() == file.sha256


@pytest.mark.slow
def test_a_dump_that_fills_its_disk_is_truncated_and_the_full_disk_is_named(
    tmp_path: Path,
) -> None:
    needs_namespaces()
    with (
        target(tmp_path / "t", "ok", "--size-bytes=3000000", inside="size=1m") as fake,
        agent(tmp_path / "a") as ours,
    ):
        done = ours.ending(ours.trigger(fake.id))

        assert (done.state, "Its disk is full" in done.says) == ("truncated", True), done
        assert "Nothing is deleted" in str(done.fix)
