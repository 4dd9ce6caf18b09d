"""What an agent begins at our word and then does by itself: CUDA coredumps and CPU profiles."""

from dataclasses import dataclass
from typing import Any, Protocol

from app.clients.agent import AgentClient
from app.protocol.messages import Coredump, CoredumpRequest, FileTaken, Profile, ProfileRequest

PROFILE_SECONDS = 10
COREDUMPS_OVER = frozenset(("complete", "truncated", "no-file", "timed-out", "refused"))
WITH_FILE = frozenset(("complete", "truncated", "done"))


@dataclass(frozen=True, slots=True)
class Progress:
    """How far it is. *over*: it will not change any more."""

    remote_id: str
    state: str
    says: str
    fix: str | None
    command: str | None
    over: bool
    file: FileTaken | None
    detail: dict[str, Any]


class Begun(Protocol):
    """How one kind is begun and followed."""

    kind: str

    def begin(self, client: AgentClient, process_id: str, host_name: str) -> Progress:
        """Once for each process, never again."""

    def look(self, client: AgentClient, remote_id: str) -> Progress:
        """How far it is now."""

    def find(self, client: AgentClient, process_id: str) -> Progress | None:
        """The newest that the agent knows of this process; None: none, or it cannot be told."""


class OfCoredumps:
    """Confirmed with the host's name, which the console had from the person who asked."""

    kind = "coredump"

    def begin(self, client: AgentClient, process_id: str, host_name: str) -> Progress:
        request = CoredumpRequest(process_id=process_id, confirm=host_name)
        return _of_coredump(client.trigger_coredump(request))

    def look(self, client: AgentClient, remote_id: str) -> Progress:
        return _of_coredump(client.coredump(remote_id))

    def find(self, client: AgentClient, process_id: str) -> Progress | None:
        known = [one for one in client.coredumps() if one.process_id == process_id]
        newest = max(known, key=lambda one: one.started_at, default=None)
        return _of_coredump(newest) if newest else None


class OfProfiles:
    """py-spy record: ten samples a second for ten seconds."""

    kind = "cpu profile"

    def begin(self, client: AgentClient, process_id: str, host_name: str) -> Progress:
        request = ProfileRequest(process_id=process_id, seconds=PROFILE_SECONDS)
        return _of_profile(client.start_profile(request))

    def look(self, client: AgentClient, remote_id: str) -> Progress:
        return _of_profile(client.profile(remote_id))

    def find(self, client: AgentClient, process_id: str) -> Progress | None:
        return None


WAYS: dict[str, Begun] = {"coredump": OfCoredumps(), "cpu profile": OfProfiles()}


def _of_coredump(told: Coredump) -> Progress:
    return Progress(
        remote_id=told.id,
        state=told.state,
        says=told.says,
        fix=told.fix,
        command=told.command,
        # A whole one without a file could not be registered there: its notes say why.
        over=told.state in COREDUMPS_OVER,
        file=told.file,
        detail={
            "path": told.path,
            "size_bytes": told.size_bytes,
            "sha256": told.file.sha256 if told.file else None,
            "found_by": told.found_by,
            "notes": told.notes,
            "started_at": told.started_at.isoformat(),
            "changed_at": told.changed_at.isoformat(),
        },
    )


def _of_profile(told: Profile) -> Progress:
    return Progress(
        remote_id=told.id,
        state="done" if told.state == "complete" else told.state,
        says=told.says,
        fix=told.fix,
        command=None,
        over=told.state != "running",
        file=told.file,
        detail={"started_at": told.started_at.isoformat()},
    )
