"""What may be said of a coredump at one moment: a byte that was sent is never "dumped".

Pure: from what was seen and how long ago, to a state and its words. A dump is complete only when
its structure fits and nobody has it open for writing.
"""

from dataclasses import dataclass
from shlex import quote

from app.agent.evidence.sizes import seconds_text, size_text
from app.domain.coredump_file import Shape
from app.protocol.messages import CoredumpState

GIB = 1024**3
FULL_BELOW_BYTES = 16 * 1024**2  # so little is left free on a disk that was filled


@dataclass(frozen=True, slots=True)
class Limits:
    """How long and how much; the defaults are for production, tests shorten them."""

    min_free_bytes: int = 10 * GIB
    poll_seconds: float = 0.25
    retry_seconds: float = 5.0  # without progress, before the one retry
    no_file_seconds: float = 60.0  # SGLang waits as long for its own
    settle_seconds: float = 10.0  # closed, incomplete and unchanged: it stays so
    stalled_seconds: float = 600.0  # open for writing, and not growing
    watched_seconds: float = 6 * 3600.0  # at most; a dump of eight GPUs takes less than one hour
    pause_seconds: float = 600.0  # between two triggers of one process
    host_lock: str = "incident-console-coredump"  # one dump at a time among all of one name


@dataclass(frozen=True, slots=True)
class Look:
    """The file of a dump as it is now."""

    path: str  # as the host knows it
    size_bytes: int
    shape: Shape
    writers: int  # processes that have it open for writing; at least so many
    holes: bool = False  # parts of it were never written


@dataclass(frozen=True, slots=True)
class Moment:
    """All that is known at one moment after a trigger."""

    look: Look | None  # None: no file has been seen
    alive: bool  # the process, before the look
    since_sent_seconds: float
    since_growth_seconds: float
    bytes_per_second: float | None = None
    free_bytes: int | None = None  # where the dump goes


@dataclass(frozen=True, slots=True)
class Verdict:
    """What is said; *final*: nothing more is looked at."""

    state: CoredumpState
    says: str
    fix: str | None = None
    command: str | None = None
    final: bool = False


def judge(moment: Moment, limits: Limits) -> Verdict:
    """The state of a dump at *moment*."""
    look = moment.look
    if look is None:
        return _without_file(moment, limits)
    if look.writers:
        return _being_written(look, moment, limits)
    if look.shape.kind == "complete":
        return _whole(look, moment)
    if not moment.alive:
        return _cut_off(look, moment, "The process ended before the driver had written all of it")
    if moment.since_growth_seconds < limits.settle_seconds:
        return Verdict("growing", f"{look.path} is closed, but it may be opened again.")
    if look.shape.kind == "gzip":
        return Verdict(
            "complete",
            f"The driver has closed {look.path}; {look.shape.says}, so its end was not checked.",
            final=True,
        )
    return _cut_off(look, moment, "The driver closed the file before its end")


def given_up(look: Look | None, limits: Limits) -> Verdict:
    """What is said of a dump that has come to no end in all the time that it is watched."""
    file = f"{look.path}, {size_text(look.size_bytes)} so far," if look else "What was asked for"
    return Verdict(
        "timed-out",
        f"{file} has come to no end in {seconds_text(limits.watched_seconds)}. "
        "It is no longer watched.",
        fix="Find out what writes it, before anything is collected.",
        command=f"ls -l {quote(look.path)}" if look else None,
        final=True,
    )


def _without_file(moment: Moment, limits: Limits) -> Verdict:
    if not moment.alive:
        return Verdict(
            "no-file",
            "The process ended before a coredump appeared. No dump was produced.",
            fix="Look in its log for the reason; take what the server wrote at its crash.",
            final=True,
        )
    if moment.since_sent_seconds < limits.no_file_seconds:
        return Verdict(
            "sent", "The trigger was sent. No file has appeared yet; that proves nothing."
        )
    if _is_full(moment):
        return Verdict(
            "no-file",
            "No dump was produced: the disk that it would go to is full.",
            fix="Free space there first.",
            command="df -h",
            final=True,
        )
    waited = seconds_text(moment.since_sent_seconds)
    return Verdict(
        "no-file",
        f"No dump was produced in {waited}. The driver took the trigger, or is stuck.",
        fix="Do not trigger again, it may still come. Look for 'coredump:' in the log.",
        final=True,
    )


def _being_written(look: Look, moment: Moment, limits: Limits) -> Verdict:
    size = size_text(look.size_bytes)
    if moment.since_growth_seconds >= limits.stalled_seconds:
        return Verdict(
            "timed-out",
            f"{look.path} is still open for writing, but has not grown from {size} for "
            f"{seconds_text(moment.since_growth_seconds)}. It is no longer watched.",
            fix="Do not collect it. Ending the process cuts it off for good.",
            command=f"ls -l {quote(look.path)}",
            final=True,
        )
    if not moment.alive:  # a child of it writes on
        return Verdict("growing", f"The process has ended, another still writes {look.path}.")
    rate = moment.bytes_per_second
    pace = f", {size_text(int(rate))} a second" if rate else ""
    return Verdict(
        "growing",
        f"Still growing: {size} so far{pace}.",
        fix="Do not collect it, trigger again or end the process yet.",
    )


def _whole(look: Look, moment: Moment) -> Verdict:
    if not moment.alive and look.holes:
        return _cut_off(look, moment, "The process ended, and parts of the file were never written")
    ended = "" if moment.alive else " The process has ended since."
    return Verdict(
        "complete",
        f"Complete: {size_text(look.size_bytes)}, {look.shape.says}, nobody writes it.{ended}",
        final=True,
    )


def _cut_off(look: Look, moment: Moment, why: str) -> Verdict:
    says = f"{why}: {look.shape.says}. The file is of little use and is left where it is."
    if _is_full(moment):
        return Verdict(
            "truncated",
            f"{says} Its disk is full.",
            fix="Free space first: this partial file takes "
            f"{size_text(look.size_bytes)}. Nothing is deleted for you.",
            command=f"ls -l {quote(look.path)}; df -h {quote(look.path)}",
            final=True,
        )
    return Verdict(
        "truncated",
        says,
        fix="Look for a reason in the log of the server, then decide on another try.",
        command=f"ls -l {quote(look.path)}",
        final=True,
    )


def _is_full(moment: Moment) -> bool:
    return moment.free_bytes is not None and moment.free_bytes < FULL_BELOW_BYTES
