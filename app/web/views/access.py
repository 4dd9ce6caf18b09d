"""Signing in and setting up."""

from dataclasses import dataclass

from app.web.views.base import Page
from app.web.views.errors import Trouble


@dataclass(frozen=True)
class LoginPage(Page):
    template = "access/login.html"

    next: str  # where to go afterwards, a path of ours
    name: str  # as typed, when the first try failed
    trouble: Trouble | None
    no_user_yet: bool


@dataclass(frozen=True)
class SetupPage(Page):
    template = "access/setup.html"

    token: str
    name: str
    trouble: Trouble | None
    min_length: int
