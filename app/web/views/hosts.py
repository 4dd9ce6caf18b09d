"""What the pages about hosts are given."""

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import ClassVar, Self

from app.protocol.messages import Info, Server
from app.store.hosts import preflight_of, processes_of
from app.store.tables import Host, Target
from app.web.views.base import Page
from app.web.views.readiness import CapabilityTold, RestartTold, Tally

SILENT_AFTER = timedelta(minutes=2)  # an agent is asked every 30 s
CLOCK_AGREES_SECONDS = 0.1
CLOCK_MATTERS_SECONDS = 1.0  # stacks of several hosts are taken in the same second


@dataclass(frozen=True)
class HostTold:
    """A host as lists and pages tell of it. ``tally`` None: it was never asked what is ready."""

    id: int
    name: str
    url: str
    embedded: bool
    level: str
    says: str  # "heard", "not heard", "never heard", "removed"
    problem: str | None
    heard_at: datetime | None
    version: str | None
    clock_offset_seconds: float | None
    tally: Tally | None
    servers: Sequence[Server] | None  # None: it never told
    left_out: int  # servers that run there as well

    @classmethod
    def of(cls, host: Host, now: datetime) -> Self:
        """What is known of *host*; nothing here is newer than ``heard_at``."""
        assert host.id is not None
        level, says = _heard(host, now)
        preflight, processes = preflight_of(host), processes_of(host)
        return cls(
            id=host.id,
            name=host.name,
            url=host.agent_url,
            embedded=host.embedded,
            level=level,
            says=says,
            problem=host.problem,
            heard_at=host.heard_at,
            version=host.version,
            clock_offset_seconds=host.clock_offset_seconds,
            tally=Tally.of(preflight) if preflight else None,
            servers=processes.servers if processes else None,
            left_out=processes.servers_left_out if processes else 0,
        )

    @property
    def clock(self) -> str | None:
        """``2.4 s ahead``; None where it is not known."""
        offset = self.clock_offset_seconds
        if offset is None:
            return None
        if abs(offset) < CLOCK_AGREES_SECONDS:
            return "within 0.1 s"
        return f"{abs(offset):.1f} s {'ahead' if offset > 0 else 'behind'}"

    @property
    def clock_is_off(self) -> bool:
        return abs(self.clock_offset_seconds or 0.0) >= CLOCK_MATTERS_SECONDS


def _heard(host: Host, now: datetime) -> tuple[str, str]:
    """The mark and the word for how the agent was last heard."""
    if host.removed_at:
        return "quiet", "removed"
    if host.heard_at is None:
        return ("bad", "does not answer") if host.problem else ("unknown", "never heard")
    if host.problem or now - host.heard_at > SILENT_AFTER:
        return "bad", "does not answer"
    return "good", "heard"


@dataclass(frozen=True)
class ServerTold:
    """A server on the host's page, with the targets that a person linked to it."""

    server: Server
    targets: Sequence[Target]
    restart: RestartTold | None

    @property
    def ranks(self) -> int:
        return sum(process.rank is not None for process in self.server.processes)


@dataclass(frozen=True)
class HostsPage(Page):
    template: ClassVar[str] = "hosts/list.html"
    rows: Sequence[HostTold]
    finding: str
    now: datetime


@dataclass(frozen=True)
class NewHostPage(Page):
    template: ClassVar[str] = "hosts/new.html"


@dataclass(frozen=True)
class HostPage(Page):
    template: ClassVar[str] = "hosts/page.html"
    host: HostTold
    finding: str
    info: Info | None
    gpus: str | None  # None: it never told
    servers: Sequence[ServerTold]
    cut: str | None  # that not every server is told
    servers_at: datetime | None
    capabilities: Sequence[CapabilityTold]
    ready_at: datetime | None
    registered_by: str
    registered_at: datetime
    agent_id: str | None
    fingerprint: str | None
    now: datetime
