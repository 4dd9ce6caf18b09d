"""CUDA coredumps on demand: one trigger, then only watching, until the end of it is certain.

Nothing but a few bytes into the process's own pipe is ever written, at most twice, and what the
driver wrote is never copied, moved or deleted. Each step is on the disk before it is taken, so
that an agent that is restarted goes on watching and never triggers again.
"""

import secrets
from contextlib import ExitStack, suppress
from datetime import UTC, datetime
from pathlib import Path
from threading import Event, Lock, Thread

from app.agent.coredump import gate, refusals
from app.agent.coredump.dump_watch import DumpWatch
from app.agent.coredump.endings import Limits
from app.agent.coredump.pipes import TRIGGER, Pipe, Uses, find_pipe, write
from app.agent.coredump.records import Record, Records, refused_too_many
from app.agent.coredump.watcher import Watcher
from app.agent.kept.files import AgentFiles
from app.agent.processes import proc
from app.agent.processes.table import ProcessTable
from app.agent.touching.holds import Holds
from app.errors import ConsoleError, NoSpace, NotFound
from app.protocol.messages import Coredump, CoredumpRequest, Process

_TOOL = "A CUDA coredump"
_JOIN_SECONDS = 5.0
_PRODUCTION = Limits()


class Coredumps:
    """All coredumps of one agent; safe to share between threads."""

    def __init__(
        self,
        *,
        table: ProcessTable,
        holds: Holds,
        files: AgentFiles,
        folder: Path,
        host: str,
        limits: Limits = _PRODUCTION,
    ) -> None:
        self._table, self._holds, self._files = table, holds, files
        self._host, self._limits = host, limits
        self._store = Records(folder)
        self._records = self._store.load()
        self._lock, self._one_trigger = Lock(), Lock()
        self._stop = Event()
        self._threads: list[Thread] = []

    def trigger(self, request: CoredumpRequest) -> Coredump:
        """Send one byte and return at once: "sent", or "refused" with the reason and the fix."""
        with self._one_trigger:
            try:
                return self._triggered(request)
            except ConsoleError as error:
                return self._refused(request.process_id, error)

    def get(self, coredump_id: str) -> Coredump:
        """As it is known now; raises NotFound."""
        with self._lock:
            record = self._records.get(coredump_id)
        if record is None:
            raise NotFound("The agent knows no such coredump.")
        return record.coredump

    def all(self) -> list[Coredump]:
        """Every one that was asked for in the order of asking; of refused ones the newest."""
        with self._lock:
            coredumps = [record.coredump for record in self._records.values()]
        return sorted(coredumps, key=lambda coredump: coredump.started_at)

    def resume(self) -> None:
        """Go on watching what an earlier agent triggered; nothing is written to any pipe."""
        with self._lock:
            unfinished = [record for record in self._records.values() if not record.final]
        for record in unfinished:
            self._resume(record)

    def close(self) -> None:
        """Stop watching; the dumps themselves go on, and ``resume`` takes them up again."""
        self._stop.set()
        for thread in self._threads:
            thread.join(_JOIN_SECONDS)

    def _triggered(self, request: CoredumpRequest) -> Coredump:
        process = self._table.find(request.process_id)
        if request.confirm != self._host:
            raise refusals.wrong_name(self._host)
        self._check_turn(process)
        server = self._table.server_of(process.id)
        with ExitStack() as held:
            held.callback(gate.dump_turn(self._limits).release)
            held.enter_context(self._holds.hold(process.pid, _TOOL))
            trackers = gate.tracker_environments(member.pid for member in server.processes)
            uses = gate.uses_of(process.pid, proc.pid_of(server.id), trackers)
            gate.check_process(uses)
            gate.check_settings(uses)
            pipe = find_pipe(uses)
            watch = DumpWatch(uses, pipe)
            held.callback(watch.close)
            self._check_watch(process, uses, watch)
            record = self._begun(process, uses, pipe, watch)
            self._send(record)
            self._watch(record, watch, held.pop_all(), may_retry=True)
        return record.coredump

    def _check_turn(self, process: Process) -> None:
        """Raises where a dump is running here, or this process was asked a short while ago."""
        with self._lock:
            records = list(self._records.values())
        if running := next((record for record in records if not record.final), None):
            pid = proc.pid_of(running.coredump.process_id)
            raise refusals.dump_running(f"of process {pid}, since it was asked for")
        now = datetime.now(UTC)
        for record in records:
            age_seconds = (now - record.coredump.started_at).total_seconds()
            mine = record.coredump.process_id == process.id and record.written_bytes > 0
            if mine and age_seconds < self._limits.pause_seconds:
                raise refusals.too_soon(age_seconds, self._limits.pause_seconds)

    def _check_watch(self, process: Process, uses: Uses, watch: DumpWatch) -> None:
        """Raises where a dump is under way already, or the disk has no room for another."""
        if under_way := watch.dump_under_way():
            raise refusals.dump_running(under_way)
        with self._lock:
            sizes = [record.coredump.size_bytes or 0 for record in self._records.values()]
        gate.check_room(uses, watch.folders, process, self._limits, max(sizes, default=0))

    def _begun(self, process: Process, uses: Uses, pipe: Pipe, watch: DumpWatch) -> Record:
        """The record of a trigger that is about to be sent, on the disk."""
        now = datetime.now(UTC)
        coredump = Coredump(
            id=secrets.token_hex(16),
            process_id=process.id,
            rank=process.rank.label if process.rank else None,
            state="sent",
            says="The trigger was sent. Nothing acknowledges it; a file may follow.",
            found_by=pipe.found_by,
            started_at=now,
            changed_at=now,
            notes=[f"Pipe: {pipe.path}"],
        )
        record = Record(
            coredump=coredump,
            uses=uses,
            pipe=pipe,
            baseline=watch.baseline,
            written_bytes=len(TRIGGER),
        )
        try:
            self._store.save(record)
        except OSError as error:
            raise NoSpace(
                f"The agent cannot note the trigger: {error.strerror}. Nothing was sent.",
                fix="Free space for the agent's state folder.",
            ) from error
        return record

    def _send(self, record: Record) -> None:
        """Write the one byte; where that fails, the record ends as refused."""
        assert record.pipe is not None
        try:
            if not proc.alive(record.coredump.process_id):
                raise NotFound(f"Process {record.pipe.pid} has ended.")
            write(record.pipe, TRIGGER, only_if_empty=True)
        except ConsoleError as error:
            self._note(_refusal_of(record.model_copy(update={"written_bytes": 0}), error))
            raise _Noted(record.coredump.id, error) from error
        self._note(record)

    def _refused(self, process_id: str, error: ConsoleError) -> Coredump:
        if isinstance(error, _Noted):
            return self.get(error.coredump_id)
        now = datetime.now(UTC)
        coredump = Coredump(
            id=secrets.token_hex(16),
            process_id=process_id,
            state="refused",
            says="",
            started_at=now,
            changed_at=now,
        )
        record = _refusal_of(Record(coredump=coredump), error)
        self._note(record)
        return record.coredump

    def _resume(self, record: Record) -> None:
        uses, pipe, baseline = record.uses, record.pipe, record.baseline
        if uses is None or pipe is None or baseline is None:
            return  # refused ones are final, so this is a file that somebody changed
        if not baseline.ours and not proc.alive(record.coredump.process_id):
            baseline = baseline.model_copy(update={"folders": []})  # they ended with the process
        note = "The agent was restarted: it goes on watching, and sends nothing again."
        notes = [*record.coredump.notes, note]
        coredump = record.coredump.changed(notes=notes)
        record = record.model_copy(update={"coredump": coredump})
        with ExitStack() as held:
            with suppress(ConsoleError):  # to watch is allowed in any case
                held.callback(gate.dump_turn(self._limits).release)
                held.enter_context(self._holds.hold(uses.pid, _TOOL))
            watch = DumpWatch(uses, pipe, baseline)
            held.callback(watch.close)
            self._note(record)
            self._watch(record, watch, held.pop_all(), may_retry=False)

    def _watch(self, record: Record, watch: DumpWatch, held: ExitStack, *, may_retry: bool) -> None:
        watcher = Watcher(record, watch, limits=self._limits, note=self._note)

        def run() -> None:
            with held:
                watcher.run(self._files, self._stop, may_retry=may_retry)

        name = f"coredump-{record.coredump.id[:8]}"
        thread = Thread(target=run, name=name, daemon=True)
        self._threads = [known for known in self._threads if known.is_alive()] + [thread]
        thread.start()

    def _note(self, record: Record) -> None:
        """Known from now on; a full disk of ours does not end the watching."""
        with self._lock:
            self._records[record.coredump.id] = record
            too_many = refused_too_many(self._records.values())
            for one in too_many:
                del self._records[one.coredump.id]
        with suppress(OSError):
            self._store.save(record)
        for one in too_many:
            with suppress(OSError):
                self._store.forget(one)


class _Noted(ConsoleError):
    """A refusal that is on the disk already."""

    def __init__(self, coredump_id: str, error: ConsoleError) -> None:
        super().__init__(error.what, why=error.why, fix=error.fix, command=error.command)
        self.coredump_id = coredump_id


def _refusal_of(record: Record, error: ConsoleError) -> Record:
    says = f"{error.what} {error.why}" if error.why else error.what
    changed = {"state": "refused", "says": says, "fix": error.fix, "command": error.command}
    return record.model_copy(update={"coredump": record.coredump.changed(**changed)})
