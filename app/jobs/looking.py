"""One look at the agents of a diagnostic: whom to ask, at once, and how to stop."""

import time
from collections.abc import Callable, Mapping
from concurrent.futures import FIRST_COMPLETED, Future, wait
from dataclasses import dataclass
from datetime import UTC, datetime
from functools import partial
from typing import Any, TypeVar

from app.clients.agent import AgentClient
from app.domain.endpoints import MIB
from app.errors import ConsoleError, TooLarge
from app.jobs.work import LOOK_SECONDS, Work
from app.protocol.messages import FileTaken
from app.store import findings
from app.store.artifacts import StoredFile
from app.store.aside import aside
from app.store.database import reading, writing
from app.store.diagnostics import items_of, of_job
from app.store.findings import Found
from app.store.hosts import get_host, info_of
from app.store.tables import Diagnostic, DiagnosticItem, Host

MAX_FILE_BYTES = 256 * MIB  # an agent takes none that is larger, but for coredumps
Result = TypeVar("Result")
Asked = Mapping[str, Any]  # {"host_id", "name", "process_ids", "ranks", "diagnostic_id"}


@dataclass(frozen=True)
class Look:
    """A diagnostic as it stands at the start of a slice."""

    work: Work
    diagnostic: Diagnostic
    items: list[DiagnosticItem]
    hosts: list[dict[str, Any]]  # of ``Asked``
    rows: dict[int, Host]

    @classmethod
    def open(cls, work: Work) -> "Look":
        with reading(work.stores.engine) as session:
            diagnostic = of_job(session, work.attempt.job_id)
        return cls.at(work, diagnostic)

    @classmethod
    def at(cls, work: Work, diagnostic: Diagnostic) -> "Look":
        """*diagnostic*, which may be another one than *work* fills."""
        assert diagnostic.id is not None
        with reading(work.stores.engine) as session:
            items = items_of(session, diagnostic.id)
            rows = {one["host_id"]: get_host(session, one["host_id"]) for one in diagnostic.hosts}
        hosts = [{**one, "diagnostic_id": diagnostic.id} for one in diagnostic.hosts]
        return cls(work, diagnostic, items, hosts, rows)

    @property
    def total(self) -> int:
        """How many items there will be, at most."""
        processes = sum(max(1, len(one["process_ids"])) for one in self.hosts)
        return processes * int(self.work.job.arguments["samples"])

    def client(self, host: Asked) -> AgentClient:
        """A line to a host on behalf of whoever asked; raises Unreachable."""
        row = self.rows[host["host_id"]]
        return self.work.stores.agents.open(row, actor=self.work.job.requested_by)

    def own_name(self, host: Asked) -> str:
        """What the host calls itself: a person confirmed the name that it has here.

        Raises Unreachable where that is not known, and is not told now.
        """
        info = info_of(self.rows[host["host_id"]])
        return info.host if info else self.client(host).info().host

    def say(self, says: str) -> None:
        """For the live pages."""
        with writing(self.work.stores.engine) as session:
            findings.running(session, self.work.attempt, says)

    def keep(self, found: list[Found]) -> None:
        """Write what came; raises Superseded where it is no longer ours to write."""
        at = datetime.now(UTC)
        with writing(self.work.stores.engine) as session:
            findings.keep(session, self.work.attempt, found, total=self.total, at=at)

    def ask_each(
        self,
        hosts: list[dict[str, Any]],
        ask: Callable[[dict[str, Any]], Result],
        came: Callable[[dict[str, Any], Result | ConsoleError], None],
    ) -> None:
        """*ask* all *hosts* at once and hand each answer to *came* as soon as it is there.

        Raises what ``Work.check`` raises; answers that are still out are dropped then.
        """
        asking: dict[Future[Result], dict[str, Any]] = {
            aside(partial(ask, host), name=f"ask {host['name']}"): host for host in hosts
        }
        while asking:
            for future in wait(asking, LOOK_SECONDS, return_when=FIRST_COMPLETED).done:
                outcome: Result | ConsoleError = _outcome(future)
                came(asking.pop(future), outcome)
            self.work.check()

    def fetch(
        self, client: AgentClient, file: FileTaken, *, max_bytes: int = MAX_FILE_BYTES
    ) -> StoredFile:
        """Bring the bytes of *file* over and keep them; raises Damaged, NoSpace, TooLarge."""
        if file.size_bytes > max_bytes:
            raise TooLarge(
                f"{file.name} has {file.size_bytes} bytes; at most {max_bytes} are brought over.",
                fix="It stays on the host, where the agent keeps it.",
            )
        artifacts = self.work.stores.artifacts
        with artifacts.spool() as spooled:
            client.download(file, spooled.write)
            return artifacts.keep(spooled)


def pause(seconds: float) -> bool:
    """Wait within a slice, briefly: the next slice looks whether to stop. Always True."""
    time.sleep(max(0.0, min(seconds, 0.5)))
    return True


def _outcome(future: "Future[Result]") -> Result | ConsoleError:
    error = future.exception()
    return error if isinstance(error, ConsoleError) else future.result()
