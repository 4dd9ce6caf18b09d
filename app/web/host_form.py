"""What an admin types about a host. The key goes in and never comes out again."""

from typing import Annotated

from pydantic import BaseModel, Field

from app.store.hosts import NewHost

LONGEST = 4096


class TypedHost(BaseModel):
    """The fields of the form, as ``incident-console agent`` prints them."""

    name: Annotated[str, Field(max_length=120)]
    agent_url: Annotated[str, Field(max_length=2048)]
    key: Annotated[str, Field(max_length=LONGEST)]
    tls_fingerprint: Annotated[str, Field(max_length=200)] = ""

    def as_new(self) -> NewHost:
        """The host to register."""
        return NewHost(
            name=self.name,
            agent_url=self.agent_url.strip(),
            key=self.key.strip(),
            tls_fingerprint=self.tls_fingerprint.strip() or None,
        )
