"""Dumps that servers wrote: copied as they are, before a restart or the end of a pod takes them."""

import shlex
from dataclasses import dataclass, field
from datetime import UTC, datetime
from pathlib import PurePosixPath
from threading import Lock
from typing import Any

from app.clients.agent import AgentClient
from app.domain.counting import counted
from app.errors import Conflict, ConsoleError, NotFound, Rejected, TooLarge, Unreachable
from app.jobs.looking import Look
from app.protocol.messages import DumpFound, Dumps, FileTaken
from app.store import dumps, findings
from app.store.database import reading, writing
from app.store.diagnostics import items_of
from app.store.evidence import equal_bytes
from app.store.findings import Found
from app.store.recordings import folders_of
from app.store.tables import Artifact, DiagnosticItem

GIB = 1024**3
OF_REQUESTS = (
    "crash dump",
    "request dump",
)  # read as soon as they are here
MAX_FILES = 16
MAX_TOTAL_BYTES = 4 * GIB
MAX_FILE_BYTES = GIB  # an agent copies no larger one
_AT_MOST = f"at most {MAX_FILES} files and {MAX_TOTAL_BYTES // GIB} GiB are copied at once"


def copy_dumps(look: Look) -> bool:
    """Ask every host that has not answered yet; dumps are kept one by one. False: it is over."""
    over = {one["host_id"] for one in (look.diagnostic.answer or {}).get("hosts", [])}
    over |= {one.host_id for one in look.items if "path" not in one.detail}
    hosts = [host for host in look.hosts if host["host_id"] not in over]
    look.say(f"Asking {len(hosts)} of {counted(len(look.hosts), 'host')} for dumps.")
    room, folders = _Room.left_by(look.items), _folders(look)
    look.ask_each(
        hosts,
        lambda host: _Copying(look, look.client(host), host, room, folders).all(),
        lambda host, result: _came(look, host, result),
    )
    _have_read(look)
    return False


def _have_read(look: Look) -> None:
    """Ask for every dump of requests that is here to be read, unless it is read already."""
    stores, job, now = look.work.stores, look.work.job, datetime.now(UTC)
    assert look.diagnostic.id is not None
    with writing(stores.engine) as session:
        for item in items_of(session, look.diagnostic.id):
            known = item.artifact_id if item.kind in OF_REQUESTS else None
            artifact = session.get(Artifact, known) if known else None
            if artifact is not None and not artifact.purged_at:
                actor = findings.actor_of(job)
                dumps.request_ingest(session, stores.outbox, artifact, actor=actor, at=now)


@dataclass
class _Room:
    """What may still be copied by this press, from all hosts."""

    files: int
    size_bytes: int
    _lock: Lock = field(default_factory=Lock)

    @classmethod
    def left_by(cls, items: list[DiagnosticItem]) -> "_Room":
        sizes = [int(one.detail["size_bytes"]) for one in items if one.state == "done"]
        return cls(MAX_FILES - len(sizes), MAX_TOTAL_BYTES - sum(sizes))

    def take(self, size_bytes: int) -> bool:
        """Whether a file of that size still fits; then it counts."""
        with self._lock:
            if self.files < 1 or self.size_bytes < size_bytes:
                return False
            self.files, self.size_bytes = self.files - 1, self.size_bytes - size_bytes
            return True

    def give_back(self, size_bytes: int) -> None:
        with self._lock:
            self.files, self.size_bytes = self.files + 1, self.size_bytes + size_bytes


@dataclass(frozen=True)
class _Rest:
    """What is said of a host once its dumps are kept; no words where no folder could be read."""

    refused: list[Found]
    says: str = ""
    at: str = ""


@dataclass(frozen=True)
class _Copying:
    """The dumps of one host, on their way here."""

    look: Look
    client: AgentClient
    host: dict[str, Any]
    room: _Room
    folders: list[str]  # where the server was told to write requests while it ran

    def all(self) -> _Rest:
        """Keep each dump as it comes, the newest first; what is left to be said of the host.

        Raises NotFound where no server is known there, and Unreachable.
        """
        if not self.host["process_ids"]:
            raise NotFound(
                "No such server is known on this host now, so its folders are not known either.",
                fix="Look for crash_dump_*.pkl on the host, in the folder it was started with.",
            )
        told = self.client.dumps(self.host["process_ids"], self.folders)
        dumps = [one for one in told.dumps if self._is_asked_for(one, told)]
        dumps.sort(key=lambda one: one.changed_at, reverse=True)
        left = self._keep(dumps)
        refused = [
            findings.refused(self.host, one)
            for one in told.refused
            if one.process_id in (None, *self.host["process_ids"])
        ]
        if left:
            refused.append(self._refused_rest(left))
        if not told.looked_in and refused:
            return _Rest(refused)
        return _Rest(refused, _lying(dumps, told), told.at.isoformat())

    def _is_asked_for(self, dump: DumpFound, told: Dumps) -> bool:
        if dump.server_id is not None:
            return dump.server_id in self.host["process_ids"]
        path = PurePosixPath(dump.path)
        return any(path.is_relative_to(folder) for folder in told.looked_in)

    def _keep(self, dumps: list[DumpFound]) -> int:
        """Keep all that may be copied; how many there is no room for."""
        kept = {
            one.detail.get("path") for one in self.look.items if one.host_id == self.host["host_id"]
        }
        left = 0
        for dump in dumps:
            if dump.path in kept:
                continue
            if refusal := _why_not(self.host, dump):
                self.look.keep([self._refused(dump, refusal)])
            elif left or not self.room.take(dump.size_bytes):
                left += 1
            else:
                self.look.keep([self._copied(dump)])
        return left

    def _copied(self, dump: DumpFound) -> Found:
        try:
            found = self._brought(dump)
        except Unreachable:
            raise  # nor would it answer for the next
        except ConsoleError as error:
            found = self._refused(dump, error, f"{dump.path}: ")
        if found.item.state != "done":
            self.room.give_back(dump.size_bytes)
        return found

    def _brought(self, dump: DumpFound) -> Found:
        file = self.client.dump(dump.id, self.folders).file
        if file is None:
            raise Rejected("The agent made no copy of it.")
        file = file.model_copy(update={"tier": "T2"})
        item = self._item(dump, file)
        with reading(self.look.work.stores.engine) as session:
            same = equal_bytes(session, self.look.diagnostic.incident_id, file.sha256)
        if same is not None and same.purged_at:
            raise Rejected(
                f"Its bytes were here as artifact {same.id} and were purged by {same.purged_by}.",
                fix="Attach it by hand if it is needed after all.",
            )
        if same is not None:
            findings.here_already(item, same)
            return Found(item)
        stored = self.look.fetch(self.client, file)
        return Found(item, file, stored, written_at=dump.changed_at, once=True)

    def _item(self, dump: DumpFound, file: FileTaken) -> DiagnosticItem:
        return DiagnosticItem(
            diagnostic_id=self.host["diagnostic_id"],
            host_id=self.host["host_id"],
            host_name=self.host["name"],
            process_id=dump.server_id,
            pid=int(dump.server_id.partition(".")[0]) if dump.server_id else None,
            taken_at=file.taken_at,
            state="done",
            kind=file.kind,
            says=f"{dump.path}, written {dump.changed_at:%Y-%m-%d %H:%M:%S} UTC."[:1000],
            detail=_detail(dump),
        )

    def _refused(self, dump: DumpFound, error: ConsoleError, of: str = "") -> Found:
        found = findings.failed(self.host, error, process_id=dump.server_id)
        found.item.says = f"{of}{found.item.says}"[: findings.MAX_WORDS]
        found.item.detail = _detail(dump)
        return found

    def _refused_rest(self, left: int) -> Found:
        what = f"{left} older dumps were" if left > 1 else "1 older dump was"
        again = "Copy again: what is here already does not count."
        return findings.failed(self.host, TooLarge(f"{what} not asked for: {_AT_MOST}.", fix=again))


def _folders(look: Look) -> list[str]:
    target_id = look.diagnostic.target_id
    with reading(look.work.stores.engine) as session:
        return folders_of(session, target_id) if target_id else []


def _came(look: Look, host: dict[str, Any], result: _Rest | ConsoleError) -> None:
    if isinstance(result, ConsoleError):
        result = _Rest([findings.failed(host, result)])
    look.keep(result.refused)
    if result.says:
        part = {"host_id": host["host_id"], "name": host["name"]}
        with writing(look.work.stores.engine) as session:
            told = {**part, "at": result.at, "says": result.says}
            findings.answer(session, look.work.attempt, told)


def _why_not(host: dict[str, Any], dump: DumpFound) -> ConsoleError | None:
    if dump.growing:
        return Conflict(
            f"{dump.path} is still being written: half a dump is none.",
            fix="Copy again once it has stopped growing.",
        )
    if dump.size_bytes <= MAX_FILE_BYTES:
        return None
    # The path is as hostile as the server: quoted for both shells.
    there = shlex.quote(f"cat -- {shlex.quote(dump.path)}")
    here = shlex.quote(PurePosixPath(dump.path).name)
    return TooLarge(
        f"{dump.path} has {dump.size_bytes / GIB:.1f} GiB; {MAX_FILE_BYTES // GIB} GiB is copied "
        "at most.",
        fix="Copy it from the host by hand.",
        command=f"ssh -- {shlex.quote(host['name'])} {there} > {here}",
    )


def _detail(dump: DumpFound) -> dict[str, Any]:
    return {
        "path": dump.path,
        "size_bytes": dump.size_bytes,
        "changed_at": dump.changed_at.isoformat(),
    }


def _lying(dumps: list[DumpFound], told: Dumps) -> str:
    """``3 dumps lie in /var/dumps.``"""
    if not told.looked_in:
        return "The server names no folder for dumps, so nothing was looked for."
    folders = ", ".join(told.looked_in)
    count = "No dump lies" if not dumps else "1 dump lies" if len(dumps) == 1 else None
    return f"{count or f'{len(dumps)} dumps lie'} in {folders}."[: findings.MAX_WORDS]
