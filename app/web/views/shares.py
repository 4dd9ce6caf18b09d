"""What the pages of shares are given: the preview, the list, and what strangers see."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any, ClassVar, Self

from app.domain.report_entries import FIELDS
from app.store.tables import Share
from app.web.views.base import Page, View
from app.web.views.reports import ReportField, moment

LIVES = {"1 hour": 3600, "1 day": 86_400, "7 days": 604_800, "30 days": 2_592_000}


@dataclass(frozen=True)
class SharedEntry:
    what: str | None
    says: str
    telling: bool
    why: str | None
    status: str
    by: str | None
    struck: str | None
    evidence: Sequence[str]


@dataclass(frozen=True)
class SharedCopy:
    """A frozen copy, as the preview and the link show it alike."""

    number: int
    title: str
    severity: str | None
    state: str | None
    started_at: datetime | None
    opened_at: datetime | None
    resolved_at: datetime | None
    targets: str
    servers: Sequence[str]  # "Qwen3-8B · TP8 · decode · sglang 0.5.23"
    tier: str
    revision: int
    frozen_at: datetime | None
    expires_at: datetime | None  # None in a preview: nobody has chosen yet
    fields: Sequence[ReportField[SharedEntry]]
    timeline: Sequence[tuple[datetime | None, str]]

    @classmethod
    def of(cls, copy: Mapping[str, Any], expires_at: datetime | None = None) -> Self:
        incident = copy["incident"]
        return cls(
            number=incident["number"],
            title=incident["title"],
            severity=incident["severity"],
            state=incident["state"],
            targets=", ".join(incident["targets"]),
            servers=list(dict.fromkeys(filter(None, map(_server, copy["servers"])))),
            tier=copy["tier"],
            revision=copy["revision"],
            frozen_at=moment(copy["frozen_at"]),
            expires_at=expires_at,
            fields=[
                ReportField(name, title, [SharedEntry(**one) for one in copy["fields"][name]])
                for name, title in FIELDS.items()
            ],
            timeline=[(moment(one["at"]), one["says"]) for one in copy["timeline"]],
            **{name: moment(incident[name]) for name in ("started_at", "opened_at", "resolved_at")},
        )


@dataclass(frozen=True)
class ShareTold:
    """A share in the list: whether it still opens, and who used it how often."""

    id: int
    created_by: str
    created_at: datetime
    expires_at: datetime
    revoked_at: datetime | None
    opened_count: int
    last_opened_at: datetime | None
    locked: bool
    alive: bool

    @classmethod
    def of(cls, share: Share, now: datetime) -> Self:
        assert share.id is not None
        return cls(
            id=share.id,
            created_by=share.created_by,
            created_at=share.created_at,
            expires_at=share.expires_at,
            revoked_at=share.revoked_at,
            opened_count=share.opened_count,
            last_opened_at=share.last_opened_at,
            locked=share.password_hash is not None,
            alive=share.revoked_at is None and share.expires_at > now,
        )


@dataclass(frozen=True)
class SharesPage(Page):
    """Preview, terms and list. ``made`` is the new link, shown this once."""

    template: ClassVar[str] = "shares/page.html"
    copy: SharedCopy
    seal: str
    shares: Sequence[ShareTold]
    made: str | None = None
    lives: Sequence[str] = tuple(LIVES)


@dataclass(frozen=True)
class SharedPage(View):
    """What opens under the link; no shell, no script, no sign-in."""

    template: ClassVar[str] = "shares/shared.html"
    copy: SharedCopy


@dataclass(frozen=True)
class LockedPage(View):
    """Asks for the password of a share."""

    template: ClassVar[str] = "shares/locked.html"
    token: str
    refused: bool


@dataclass(frozen=True)
class GonePage(View):
    """The one answer to a wrong, expired, revoked or malformed link."""

    template: ClassVar[str] = "shares/gone.html"


def _server(server: Mapping[str, Any]) -> str:
    sizes = [
        f"{name.upper()}{size}"
        for name in ("tp", "dp", "pp", "ep")
        if (size := server[f"{name}_size"]) and size > 1
    ]
    version = f"sglang {server['version']}" if server["version"] else None
    parts = (server["model"], *sizes, server["half"], version)
    return " · ".join(part for part in parts if part)
