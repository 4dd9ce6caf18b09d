"""An admin at the list of targets, or an operator who links: in which transaction, when."""

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Annotated

from fastapi import Depends
from sqlmodel import Session

from app.store.audit import Actor
from app.store.tables import Target
from app.store.target_servers import link_exactly
from app.store.targets import (
    Changes,
    NewTarget,
    change_target,
    delete_target,
    get_target,
    register_target,
)
from app.store.vault import Vault
from app.web.dependencies import Admin, AppStores, Now, Operator, Writing


@dataclass(frozen=True, slots=True)
class Registering:
    """What may be done with targets; committed when the endpoint is done."""

    session: Session
    vault: Vault
    actor: Actor
    at: datetime

    def register(self, new: NewTarget) -> Target:
        return register_target(self.session, new, vault=self.vault, actor=self.actor, at=self.at)

    def change(self, target_id: int, changes: Changes) -> Target:
        target = get_target(self.session, target_id)
        change_target(self.session, target, changes, vault=self.vault, actor=self.actor, at=self.at)
        return target

    def link(self, target: Target, servers: Sequence[tuple[int, str]]) -> None:
        """Confirm that *target* is these (host id, server id) and no others."""
        link_exactly(self.session, target, servers, self.actor, self.at)

    def delete(self, target_id: int) -> None:
        target = get_target(self.session, target_id)
        delete_target(self.session, target, actor=self.actor, at=self.at)


def _registering(session: Writing, stores: AppStores, actor: Admin, now: Now) -> Registering:
    return Registering(session, stores.vault, actor, now)


def _linking(session: Writing, stores: AppStores, actor: Operator, now: Now) -> Registering:
    return Registering(session, stores.vault, actor, now)


AtTargets = Annotated[Registering, Depends(_registering)]
AtLinks = Annotated[Registering, Depends(_linking)]  # an operator, who may link and no more
