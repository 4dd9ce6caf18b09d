"""What an admin types about a target. Secrets go in and never come out again."""

from collections.abc import Mapping
from typing import Annotated

from pydantic import BaseModel, Field

from app.errors import Malformed
from app.store.targets import Changes, NewTarget

MOST_LINES = 50
Secret = Annotated[str, Field(max_length=4096)]


class TypedTarget(BaseModel):
    """The fields of the form; a checkbox that is not ticked is not sent."""

    name: Annotated[str, Field(max_length=120)]
    base_url: Annotated[str, Field(max_length=2048)]
    token: Secret = ""
    admin_token: Secret = ""
    headers: Annotated[str, Field(max_length=20_000)] = ""  # "X-Route: blue", one a line
    ca_pem: Annotated[str, Field(max_length=200_000)] = ""
    labels: Annotated[str, Field(max_length=10_000)] = ""  # "team=search", one a line
    clean: bool = False
    check: bool = False
    remove_token: bool = False
    remove_admin_token: bool = False
    remove_headers: bool = False
    remove_ca_pem: bool = False

    def as_new(self) -> NewTarget:
        """The target to register; raises Malformed for lines that cannot be read."""
        return NewTarget(
            name=self.name,
            base_url=self.base_url.strip(),
            token=self.token or None,
            admin_token=self.admin_token or None,
            headers=pairs(self.headers, ":"),
            ca_pem=self.ca_pem or None,
            clean=self.clean,
            labels=pairs(self.labels, "="),
        )

    def as_changes(self) -> Changes:
        """What to set; a secret left blank stays, one marked for removal goes."""
        changes = Changes(
            name=self.name,
            base_url=self.base_url.strip(),
            clean=self.clean,
            labels=pairs(self.labels, "="),
        )
        if self.token or self.remove_token:
            changes["token"] = None if self.remove_token else self.token
        if self.admin_token or self.remove_admin_token:
            changes["admin_token"] = None if self.remove_admin_token else self.admin_token
        if self.headers.strip() or self.remove_headers:
            changes["headers"] = {} if self.remove_headers else pairs(self.headers, ":")
        if self.ca_pem.strip() or self.remove_ca_pem:
            changes["ca_pem"] = None if self.remove_ca_pem else self.ca_pem
        return changes


def pairs(text: str, sign: str) -> dict[str, str]:
    """The lines of *text*, each a name and a value around *sign*; raises Malformed."""
    lines = [line.strip() for line in text.splitlines() if line.strip()]
    if len(lines) > MOST_LINES:
        raise Malformed(f"At most {MOST_LINES} lines.")
    found: dict[str, str] = {}
    for number, line in enumerate(lines, start=1):
        name, separator, value = line.partition(sign)
        if not (name.strip() and separator):
            raise Malformed(f"Line {number} is not “name{sign} value”.")
        found[name.strip()] = value.strip()
    return found


def labels_told(labels: Mapping[str, object]) -> str:
    """Labels as they are typed: one a line."""
    return "\n".join(f"{name}={value}" for name, value in labels.items())
