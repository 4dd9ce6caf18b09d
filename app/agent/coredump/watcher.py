"""Watches one coredump from its trigger to its end; sends the one retry, and registers the file."""

import time
from collections.abc import Callable
from contextlib import suppress
from datetime import UTC, datetime
from threading import Event
from typing import Any

from app.agent.coredump import endings
from app.agent.coredump.dump_watch import DumpWatch
from app.agent.coredump.endings import Limits, Look, Moment, Verdict
from app.agent.coredump.pipes import RETRY, write
from app.agent.coredump.records import Record
from app.agent.kept.files import AgentFiles
from app.agent.processes import proc
from app.errors import ConsoleError
from app.protocol.messages import FileTaken

_TELL_SECONDS = 1.0  # a growing size is noted this often
_HASHING = "Closed by its writer; its hash is being computed."


class Watcher:
    """The look at one dump, again and again; *note* gets each new record.

    With *may_retry* False nothing is ever written to the pipe: after a restart of the agent
    nobody knows how far the driver is.
    """

    def __init__(
        self, record: Record, watch: DumpWatch, *, limits: Limits, note: Callable[[Record], None]
    ) -> None:
        self._record, self._watch, self._limits, self._note = record, watch, limits, note
        age = datetime.now(UTC) - record.coredump.started_at
        self._sent_at = time.monotonic() - max(age.total_seconds(), 0.0)
        self._grown_at, self._told_at = time.monotonic(), 0.0
        self._end_at = time.monotonic() + limits.watched_seconds
        self._last: Look | None = None
        self._first_size: tuple[float, int] | None = None

    def run(self, files: AgentFiles, stop: Event, *, may_retry: bool) -> None:
        """Until the dump is final, or *stop* is set and a later agent goes on."""
        while not stop.wait(self._limits.poll_seconds):
            before = self._last
            moment = self._moment()
            if may_retry and self._is_time_for_retry(moment):
                may_retry = False
                self._retry()
            verdict = endings.judge(moment, self._limits)
            # Seen twice: a file that is whole may yet be renamed.
            over = verdict.final and moment.look == before
            if not over and time.monotonic() >= self._end_at:  # one that always changes has no end
                verdict, over = endings.given_up(moment.look, self._limits), True
            if over:
                self._end(verdict, files)
                return
            if not verdict.final:
                self._tell(verdict)

    def _moment(self) -> Moment:
        alive = proc.alive(self._record.coredump.process_id)  # before the look: it stays true
        look = self._last
        with suppress(OSError):  # a disk that does not answer is no news
            look = self._watch.look(alive=alive)
        now = time.monotonic()
        if look is not None and (self._last is None or look.size_bytes != self._last.size_bytes):
            self._grown_at = now
            self._first_size = self._first_size or (now, look.size_bytes)
        self._last = look
        return Moment(
            look,
            alive=alive,
            since_sent_seconds=now - self._sent_at,
            since_growth_seconds=now - self._grown_at,
            bytes_per_second=self._pace(look, now),
            free_bytes=self._watch.free_bytes(),
        )

    def _pace(self, look: Look | None, now: float) -> float | None:
        if look is None or self._first_size is None or now - self._first_size[0] < 1.0:
            return None
        return (look.size_bytes - self._first_size[1]) / (now - self._first_size[0])

    def _is_time_for_retry(self, moment: Moment) -> bool:
        waited = moment.since_sent_seconds >= self._limits.retry_seconds
        return moment.alive and moment.look is None and waited

    def _retry(self) -> None:
        pipe = self._record.pipe
        assert pipe is not None
        after = f"Nothing had appeared after {self._limits.retry_seconds:g} s"
        self._change(written_bytes=self._record.written_bytes + len(RETRY))
        try:
            write(pipe, RETRY)
        except ConsoleError as error:
            self._add_note(f"{after}, and nothing more could be sent: {error.what}")
        else:
            self._add_note(f"{after}: {len(RETRY)} bytes were sent, once. No more will be.")

    def _tell(self, verdict: Verdict) -> None:
        known, now = self._record.coredump, time.monotonic()
        if verdict.state == known.state and now - self._told_at < _TELL_SECONDS:
            return
        self._told_at = now
        if verdict.says != known.says or verdict.state != known.state:
            self._say(verdict)

    def _end(self, verdict: Verdict, files: AgentFiles) -> None:
        if verdict.state not in ("complete", "truncated"):
            self._say(verdict)
            return
        self._say(Verdict("growing", _HASHING))
        self._say(verdict, file=self._registered(verdict, files))

    def _registered(self, verdict: Verdict, files: AgentFiles) -> FileTaken | None:
        path = self._watch.readable_path()
        if path is None:
            return None
        kind = "coredump" if verdict.state == "complete" else "truncated coredump"
        try:
            file = files.adopt(
                path, name=path.name, kind=kind, process_id=self._record.coredump.process_id
            )
        except ConsoleError as error:
            self._add_note(f"It could not be registered: {error.detail}")
        except OSError as error:
            self._add_note(f"It could not be read: {error.strerror}.")
        else:
            self._watch.keep()
            return file
        return None

    def _say(self, verdict: Verdict, **changed: Any) -> None:  # noqa: ANN401  (fields of Coredump)
        look = self._last
        seen = {"path": look.path, "size_bytes": look.size_bytes} if look else {}
        self._change_coredump(
            state=verdict.state,
            says=verdict.says,
            fix=verdict.fix,
            command=verdict.command,
            **seen,
            **changed,
        )

    def _add_note(self, text: str) -> None:
        self._change_coredump(notes=[*self._record.coredump.notes, text])

    def _change_coredump(self, **changed: Any) -> None:  # noqa: ANN401
        changed["changed_at"] = datetime.now(UTC)
        self._change(coredump=self._record.coredump.changed(**changed))

    def _change(self, **changed: Any) -> None:  # noqa: ANN401
        self._record = self._record.model_copy(update=changed)
        self._note(self._record)
