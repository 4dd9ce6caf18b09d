"""The stacks of many processes in the same moment, a few times: what a hang is told from."""

import os
import re
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from datetime import UTC, datetime
from threading import Event, Lock
from typing import Literal, Protocol

from app.agent.processes.proc import pid_of, read_stat
from app.agent.stacks import pyspy
from app.agent.stacks.pyspy_calls import CANCELLED
from app.agent.touching.holds import Holds
from app.agent.touching.turns import Turns
from app.domain.stacks.samples import ENDED
from app.errors import ConsoleError, NoSpace, NotFound
from app.protocol.messages import (
    FileTaken,
    Process,
    Refusal,
    StackSample,
    StacksAnswer,
    StacksRequest,
)

LONGEST_WAIT_SECONDS = 10.0  # for the moment that several hosts agreed on
AT_ONCE = max(2, os.cpu_count() or 1)  # a py-spy is a tenth of a second of one core
HOPELESS = frozenset(("process_gone_or_zombie", "tool_missing"))  # a later sample fails alike


class Finder(Protocol):
    """Where processes are looked up: ``ProcessTable``, or what a person named."""

    def find(self, process_id: str) -> Process: ...


class Keeper(Protocol):
    """Where what was read is kept: ``AgentFiles``, or a folder of plain files."""

    def keep(
        self,
        data: bytes,
        *,
        name: str,
        kind: str,
        process_id: str | None = None,
        tier: Literal["T0", "T1", "T2"] = "T1",
    ) -> FileTaken: ...


def take_stacks(
    request: StacksRequest,
    *,
    table: Finder,
    holds: Holds,
    files: Keeper,
    cancel: Event | None = None,
) -> StacksAnswer:
    """Every sample of every process asked for, kept in *files*, and every refusal with its fix.

    All processes of a sample are read at once, as far as the cores allow; a slow one holds
    nobody up. Waits for ``not_before``, ten seconds at most. A failure is told for its process.
    *cancel* ends it early with what there is.
    """
    taking = _Taking(request, holds, files, cancel or Event())
    matched = list(taking.matched(table))
    starts_at = time.monotonic() + _seconds_until(request.not_before)
    if matched:
        with ThreadPoolExecutor(len(matched), thread_name_prefix="stacks") as threads:
            takings = [threads.submit(taking.all_samples, one, starts_at) for one in matched]
            for one in takings:
                one.result()
    order = {process_id: place for place, process_id in enumerate(request.process_ids)}
    return StacksAnswer(
        matched=[process.id for process in matched],
        done=sorted(taking.done, key=lambda one: (one.sample, order[one.process_id])),
        refused=sorted(taking.refused, key=lambda one: order.get(one.process_id or "", 0)),
    )


def sample_name(process: Process, sample: int, mode: str) -> str:
    """``TP0-41878-1.pyspy.json``; native ones say so, as they are compared apart."""
    label = process.rank.label if process.rank else process.role
    label = "process" if label == "other" else label
    safe = re.sub(r"[^A-Za-z0-9_.]+", "_", label)[:60]
    kind = "native.pyspy" if mode.startswith("native") else "pyspy"
    return f"{safe}-{process.pid}-{sample}.{kind}.json"


def _seconds_until(moment: datetime | None) -> float:
    """Seconds to wait for *moment*: none for the past, and never longer than ten."""
    if moment is None:
        return 0.0
    aware = moment if moment.tzinfo else moment.replace(tzinfo=UTC)
    return min(LONGEST_WAIT_SECONDS, max(0.0, (aware - datetime.now(UTC)).total_seconds()))


@dataclass(slots=True)
class _Taking:
    """One request on its way. Its lists grow from many threads, under the lock."""

    request: StacksRequest
    holds: Holds
    files: Keeper
    cancel: Event
    done: list[StackSample] = field(default_factory=list)
    refused: list[Refusal] = field(default_factory=list)
    _turns: Turns = field(default_factory=lambda: Turns(AT_ONCE))
    _lock: Lock = field(default_factory=Lock)

    def matched(self, table: Finder) -> Iterator[Process]:
        """The processes asked for, each once; those that are not there are refused."""
        for process_id in dict.fromkeys(self.request.process_ids):
            try:
                yield table.find(process_id)
            except NotFound as error:
                self._refuse(_not_found(process_id, error))

    def all_samples(self, process: Process, starts_at: float) -> None:
        """Each sample in its time, as long as there is hope for the next one."""
        for number in range(self.request.samples):
            due_at = starts_at + number * self.request.interval_seconds
            self.cancel.wait(max(0.0, due_at - time.monotonic()))
            if self.cancel.is_set():
                if number == 0:
                    self._refuse(pyspy.refusal(process, CANCELLED))
                return
            answer = self._one_sample(process, self.request.first_sample + number)
            self._note(answer)
            if isinstance(answer, Refusal) and answer.kind in HOPELESS:
                return

    def _one_sample(self, process: Process, sample: int) -> StackSample | Refusal:
        try:
            with self._turns.turn(), self.holds.hold(process.pid, "py-spy"):
                reading = pyspy.read(process, self.request.mode, cancel=self.cancel)
            if isinstance(reading, Refusal):
                return reading
            return self._kept(process, sample, reading)
        except ConsoleError as error:
            return _could_not(process, error)
        except OSError as error:
            return _could_not(process, NoSpace(f"It was read, but not kept: {error.strerror}."))

    def _kept(self, process: Process, sample: int, reading: pyspy.Reading) -> StackSample:
        file = self.files.keep(
            reading.json,
            name=sample_name(process, sample, reading.mode),
            kind="stacks",
            process_id=process.id,
        )
        return StackSample(
            process_id=process.id,
            pid=process.pid,
            rank=process.rank.label if process.rank else None,
            sample=sample,
            taken_at=reading.taken_at,
            seconds=round(reading.seconds, 3),
            mode=reading.mode,
            exact=reading.exact,
            state_before=reading.state_before,
            state_after=reading.state_after,
            threads=reading.threads,
            file=file,
            notes=list(reading.notes),
        )

    def _note(self, answer: StackSample | Refusal) -> None:
        if isinstance(answer, Refusal):
            self._refuse(answer)
            return
        with self._lock:
            self.done.append(answer)

    def _refuse(self, refusal: Refusal) -> None:
        """Each reason once for a process, however many samples it cost."""
        with self._lock:
            if refusal not in self.refused:
                self.refused.append(refusal)


def _not_found(process_id: str, error: NotFound) -> Refusal:
    stat = read_stat(pid_of(process_id))
    kind = "gone" if stat is None or stat.state in ENDED else "unknown process"
    if stat is not None and process_id != f"{stat.pid}.{stat.start_ticks}":
        kind = "restarted"
    return Refusal(
        process_id=process_id,
        kind=kind,
        reason=error.what,
        fix=error.fix or "Ask for the processes again.",
        command=error.command,
    )


def _could_not(process: Process, error: ConsoleError) -> Refusal:
    """Busy with another tool, or no room for the file."""
    return Refusal(
        process_id=process.id,
        rank=process.rank.label if process.rank else None,
        kind="busy" if error.code == "conflict" else error.code,
        reason=error.what,
        fix=error.fix,
        command=error.command,
    )
