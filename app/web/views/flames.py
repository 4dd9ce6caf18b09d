"""What the pages of a CPU profile are given: the frame around speedscope, and speedscope itself."""

from dataclasses import dataclass
from typing import ClassVar

from app.domain.endpoints import MIB
from app.store.tables import Artifact, DiagnosticItem
from app.web.formats import cut, size, visible
from app.web.views.artifacts import Custody
from app.web.views.base import Page, View
from app.web.views.found import who

MOST_PROFILE_BYTES = 64 * MIB  # as much as an agent keeps
SLOW_BYTES = 8 * MIB  # 55 MB took Chromium 21 s
LONGEST_FINDING = 240  # characters


def why_not_shown(artifact: Artifact, *, may_read: bool) -> str | None:
    """Why its flame graph cannot be shown to a reader; None where it can."""
    if artifact.purged_at:
        return "Its bytes are purged."
    if not may_read:
        return "It is raw evidence: an operator may read it."
    if artifact.size_bytes > MOST_PROFILE_BYTES:
        return (
            f"It has {size(artifact.size_bytes)}, and a browser shows {size(MOST_PROFILE_BYTES)} "
            "at most. Download it and open it in a speedscope of your own."
        )
    return None


def flame_finding(artifact: Artifact, item: DiagnosticItem | None) -> str:
    """The page's title: of whom, and what py-spy said of it."""
    if item is None:
        return visible(f"{artifact.name} as a flame graph")
    said = item.says.rstrip(".") or "a flame graph"
    return visible(cut(f"{who(item)}: {said}", LONGEST_FINDING))


@dataclass(frozen=True)
class FlamePage(Page):
    """A CPU profile in speedscope, which stands in a frame of the page."""

    template: ClassVar[str] = "artifacts/flame.html"
    artifact: Custody
    finding: str
    diagnostic_id: int | None  # what it was recorded for
    may_download: bool
    slow: bool  # the browser needs so long that it is said before
    why_not: str | None  # why no graph is shown


@dataclass(frozen=True)
class FlameView(View):
    """Speedscope alone, and the profile that it is to load."""

    template: ClassVar[str] = "artifacts/speedscope.html"
    artifact_id: int
    nonce: str
