"""Lines of the kernel's log."""

from datetime import UTC, datetime

import pytest

from app.agent.evidence.kernel_facts import kernel_facts, log_text
from app.agent.evidence.kernel_log import KernelLog
from app.domain.kernel_log import (
    KernelLine,
    MemoryKill,
    kernel_lines,
    kernel_record,
    memory_kills,
    xids,
)

XID_79 = (
    "NVRM: Xid (PCI:0000:19:00): 79, pid='<unknown>', name=<unknown>, GPU has fallen off the bus."
)
XID_31 = "NVRM: Xid (PCI:0000:3b:00): 31, pid=4711, name=python3, Ch 00000008, intr 00000000."
OOM = (
    "Memory cgroup out of memory: Killed process 4712 (sglang::schedul) total-vm:9kB, anon-rss:8kB"
)
BOOT = datetime(2026, 1, 1, tzinfo=UTC)


def test_a_record_of_the_kernel_is_read_with_its_time() -> None:
    record = f"4,1234,98765432,-;{XID_79}\n SUBSYSTEM=pci\n".encode()
    assert kernel_record(record) == KernelLine(98.765432, XID_79)


@pytest.mark.parametrize(
    "record",
    [
        f"12,1,5,-;{XID_79}\n".encode(),
        b"",
        b"\xff\xfe;",
        b"4;no time",
    ],
    ids=["written by a program", "empty", "garbage", "no time"],
)
def test_what_the_kernel_did_not_say_is_not_believed(record: bytes) -> None:
    assert kernel_record(record) is None


def test_lines_of_dmesg_and_of_the_journal_are_read_alike() -> None:
    text = f"[    1.500000] {OOM}\n[ 1234.567890] gpu-7 kernel: {XID_31}\n-- Boot 1 --\n"
    assert list(kernel_lines(text)) == [KernelLine(1.5, OOM), KernelLine(1234.56789, XID_31)]


def test_an_xid_has_its_number_device_pid_and_level() -> None:
    lost, fault = xids([KernelLine(1, XID_79), KernelLine(2, XID_31)])
    assert (lost.number, lost.device, lost.pid, lost.level) == (79, "PCI:0000:19:00", None, "bad")
    assert (fault.number, fault.pid, fault.level) == (31, 4711, "warn")


def test_an_xid_that_we_do_not_know_has_no_meaning_and_is_no_good_news() -> None:
    (xid,) = xids([KernelLine(1, "NVRM: Xid (PCI:0000:01:00 GPU-I:05): 999, odd")])
    assert (xid.number, xid.meaning, xid.level) == (999, None, "warn")


def test_a_memory_kill_is_told_once_with_what_ran_out() -> None:
    lines = [
        KernelLine(7, "Out of memory: Kill process 12 (python3) score 900 or sacrifice child"),
        KernelLine(7, "Out of memory: Killed process 12 (python3) total-vm:1kB"),
        KernelLine(9, OOM),
    ]
    assert memory_kills(lines) == [
        MemoryKill(7, 12, "python3", limit=False),
        MemoryKill(9, 4712, "sglang::schedul", limit=True),
    ]


def test_facts_tell_when_and_what() -> None:
    killed = "sglang::schedul (pid 4712)"
    facts = kernel_facts(KernelLog((KernelLine(60, XID_79), KernelLine(90, OOM)), "x"), BOOT)
    assert [fact.says for fact in facts] == [
        "2026-01-01 00:01:00 UTC: Xid 79 on PCI:0000:19:00: the GPU has fallen off the bus.",
        f"2026-01-01 00:01:30 UTC: the kernel killed {killed} at the limit of its control group.",
    ]
    assert {fact.level for fact in facts} == {"bad"}


def test_a_log_without_errors_is_quiet_and_never_good() -> None:
    facts = kernel_facts(KernelLog((KernelLine(1, "hello"),), "dmesg"), BOOT)
    assert {fact.level for fact in facts} == {"quiet"}


def test_a_log_that_cannot_be_read_is_unknown() -> None:
    assert [fact.level for fact in kernel_facts(None, BOOT)] == ["unknown"]


def test_a_kept_log_looks_as_dmesg_prints_it() -> None:
    assert log_text(KernelLog((KernelLine(1.5, OOM),), "x")) == f"[    1.500000] {OOM}\n"
