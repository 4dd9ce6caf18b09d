"""Whether a rung of the ladder can be taken now, from the last preflight of the server's hosts."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Self

from app.protocol.messages import Check, Preflight, Process, RestartCard, Server
from app.store.hosts import preflight_of
from app.store.tables import Host
from app.web.candidates import ranks_of
from app.web.host_page import called
from app.web.views.ladder import ReadyTold
from app.web.views.readiness import AnswerTold, answers_told

NOT_LINKED = ReadyTold("unknown", "not known", "no server is linked")
NOT_LOOKED = ReadyTold("unknown", "not known", "preflight has not looked at this server yet")

# Whatever preflight says of a crash dump that is still to be written.
OLD_DUMPS = ReadyTold("unknown", "not known", "old dumps may lie in its folders; asking tells")


@dataclass(frozen=True, slots=True)
class Looked:
    """One part of a server, and what preflight said on its host; None: nothing yet."""

    host: Host
    server: Server
    preflight: Preflight | None

    @classmethod
    def at(cls, host: Host, server: Server) -> Self:
        return cls(host, server, preflight_of(host))

    def checks(self, capability: str) -> list[tuple[str, Check]]:
        """Those of its ranks; where there are none, of its other processes, then of the host."""
        if self.preflight is None:
            return []
        of_host = [
            (self.host.name, check)
            for check in self.preflight.host
            if check.capability == capability
        ]
        of_ranks = self._of(ranks_of(self.server), capability)
        return of_ranks or self._of(self.server.processes, capability) or of_host

    def restarts(self) -> Iterator[RestartCard]:
        """What ending this server would save and lose."""
        for card in self.preflight.restarts if self.preflight else ():
            if card.server_id == self.server.id:
                yield card

    def _of(self, processes: Sequence[Process], capability: str) -> list[tuple[str, Check]]:
        assert self.preflight is not None
        names = {process.id: called(process) for process in processes}
        return [
            (names[told.process_id], check)
            for told in self.preflight.processes
            if told.process_id in names
            for check in told.checks
            if check.capability == capability
        ]


def ready_told(capability: str, looked: Sequence[Looked]) -> ReadyTold:
    """What is known of *capability* for a server on all its hosts."""
    if capability == "server dumps":
        return OLD_DUMPS
    checks = [pair for one in looked for pair in one.checks(capability)]
    if not checks:
        return NOT_LOOKED
    told = answers_told(checks)
    ready = sum(check.ready is True for _, check in checks)
    if 0 < ready < len(checks):
        worst = told[0]
        says = f"{ready} of {len(checks)}; {worst.who}: {worst.says}"
        return ReadyTold("warn", "ready in part", says, worst.fix, worst.command)
    return _alone(told[0], others=len(told) - 1)


def _alone(told: AnswerTold, *, others: int) -> ReadyTold:
    """*told* for all; *others* say the same in other words."""
    says = f"{told.who}: {told.says}" if others else told.says
    return ReadyTold(told.level, told.word, says, told.fix, told.command)
