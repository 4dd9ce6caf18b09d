"""Lines to the agents of hosts: over the network, or to the one inside this process."""

from dataclasses import dataclass, field

import httpx

from app.clients.agent import AgentAddress, AgentClient
from app.clients.agent_address import INSIDE
from app.errors import Rejected, Unreachable
from app.store.tables import Host
from app.store.vault import Vault


@dataclass(frozen=True)
class Agents:
    """Opens a line to the agent of a host."""

    vault: Vault
    _inside: dict[str, httpx.AsyncBaseTransport] = field(default_factory=dict)  # by agent id

    def embed(self, agent_id: str, transport: httpx.AsyncBaseTransport) -> None:
        """Ask the agent of that id through *transport*; it has no other way in."""
        self._inside[agent_id] = transport

    def reaches(self, host: Host) -> bool:
        """False for the agent inside another process of this console, which only that can ask."""
        return not host.embedded or host.agent_id in self._inside

    def open(self, host: Host, *, actor: str = "") -> AgentClient:
        """A line on behalf of *actor*; raises Unreachable for an agent in another process."""
        if host.removed_at is not None:
            raise Rejected(f"{host.name} is removed.", fix="Register it again.")
        if not self.reaches(host):
            raise Unreachable(
                f"The agent of {host.name} runs inside another process of this console.",
                fix="It answers while `incident-console serve` runs there with a worker.",
            )
        return AgentClient(self._address(host), actor=actor)

    def _address(self, host: Host) -> AgentAddress:
        transport = self._inside.get(host.agent_id or "") if host.embedded else None
        return AgentAddress(
            url=INSIDE if host.embedded else host.agent_url,
            agent_id=host.agent_id,
            key=bytes.fromhex(self.vault.unseal(host.key_sealed)),
            tls_fingerprint=host.tls_fingerprint,
            transport=transport,
        )
