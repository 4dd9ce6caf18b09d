"""One answer, or silence, of one endpoint of a target: what a bundle is made of.

A failure is data here, not an exception: it is often the finding.
"""

from dataclasses import dataclass, field
from datetime import datetime
from enum import StrEnum


class Outcome(StrEnum):
    """How asking one endpoint ended. Different things, never all "failed"."""

    ANSWERED = "answered"  # a whole HTTP answer of any status but those below, 503 included
    REFUSED = "refused"  # the connection was refused: nothing listens there
    TIMEOUT = "timeout"  # silence, or not finished in time
    NOT_OFFERED = "not offered"  # 404
    NO_ACCESS = "no access"  # 401, 403, or a 400 that asks for an admin key
    NOT_ASKED = "not asked"  # on purpose; the detail says why
    ERROR = "error"  # reset, broken framing, name not resolved, TLS refused
    REJECTED = "rejected"  # over a cap, a redirect, or not what the endpoint should send


@dataclass(frozen=True, slots=True)
class Capture:
    """What one endpoint said, once. ``body`` is redacted before anything else sees it."""

    name: str  # unique in a bundle, safe as a file name: "ready", "metrics_1", "loads_all_2"
    path: str  # as asked, with its query
    outcome: Outcome
    status: int | None = None  # HTTP status; None when no answer came
    started_at: datetime | None = None  # UTC; None when not asked
    seconds: float | None = None  # until the last byte or giving up; None when not asked
    body: bytes = b""
    headers: dict[str, str] = field(default_factory=dict)  # lower-case; only those kept on purpose
    detail: str = ""  # why, in words, where the outcome alone does not say it
    redacted: tuple[str, ...] = ()  # places in the body where a secret stood, as JSON pointers

    @property
    def ok(self) -> bool:
        """Whether the body is what the endpoint is meant to send."""
        return self.outcome is Outcome.ANSWERED and self.status == 200


@dataclass(frozen=True, slots=True)
class Bundle:
    """The answers of one target in one window, in the order in which they were asked."""

    base_url: str  # without userinfo
    collected_at: datetime  # UTC, when the first endpoint was asked
    captures: tuple[Capture, ...]
    finished_at: datetime | None = None
    interval_seconds: float | None = None  # between the two scrapes, as planned
    probe: str = "auto"  # auto, never, always
    made_by: str = ""  # "incident-console 0.1.0", "incident_artifact_tool"
    problems: tuple[str, ...] = ()  # what could not be read back from a folder or archive

    def capture(self, name: str) -> Capture | None:
        """The capture of that name, if it was made."""
        return next((one for one in self.captures if one.name == name), None)
