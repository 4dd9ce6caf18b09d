"""The reader's own account, and for admins users and tokens."""

from collections.abc import Sequence
from dataclasses import dataclass

from app.domain.counting import counted
from app.store.tables import ApiToken, User
from app.web.views.base import Page


@dataclass(frozen=True)
class People:
    """What an admin sees of who has access."""

    users: Sequence[User]
    tokens: Sequence[ApiToken]
    roles: tuple[str, ...]

    @property
    def told(self) -> str:
        """``2 users can sign in, 1 token works``: the page's finding."""
        able = sum(user.disabled_at is None for user in self.users)
        users = counted(able, "user can", "users can")
        tokens = counted(len(self.tokens), "token works", "tokens work")
        return f"{users} sign in, {tokens}"


@dataclass(frozen=True)
class FreshToken:
    """A token's secret, shown this once."""

    name: str
    token: str


@dataclass(frozen=True)
class SettingsPage(Page):
    template = "settings/page.html"

    people: People | None  # None for those who are not admin
    fresh: FreshToken | None
    min_length: int
