"""What artifact pages are given: a stored file and its custody."""

from dataclasses import dataclass
from datetime import datetime
from typing import ClassVar, Self

from app.store.tables import Artifact
from app.web.formats import visible
from app.web.views.base import Page

TIERS = {
    "T0": "shape only: lengths, parameters, keyed hashes",
    "T1": "redacted text",
    "T2": "raw: may hold prompts, keys, names; operators may read it, and that is noted",
}

PROFILE = "cpu profile"
PROFILE_ENDING = ".speedscope.json"


def is_profile(artifact: Artifact) -> bool:
    """Whether it is said to be a profile that speedscope shows; its bytes may be anything."""
    return artifact.kind == PROFILE or artifact.name.endswith(PROFILE_ENDING)


@dataclass(frozen=True)
class Custody:
    """A stored file as its page tells of it. ``verified_at`` None: never compared since."""

    id: int
    name: str
    kind: str
    sha256: str
    size_bytes: int
    media_type: str
    tier: str
    tier_says: str
    taken_by: str
    taken_at: datetime
    taken_from: str
    covers_from: datetime | None
    covers_to: datetime | None
    verified_at: datetime | None
    damaged_at: datetime | None
    purged_at: datetime | None
    purged_by: str | None
    purge_reason: str | None
    incident_id: int | None
    bundle_id: int | None
    dump_id: int | None
    is_profile: bool

    @classmethod
    def of(cls, artifact: Artifact, *, bundle_id: int | None, dump_id: int | None) -> Self:
        """What is told of *artifact*; texts from outside with their control characters shown."""
        assert artifact.id is not None
        return cls(
            id=artifact.id,
            name=visible(artifact.name),
            kind=visible(artifact.kind),
            sha256=artifact.sha256,
            size_bytes=artifact.size_bytes,
            media_type=visible(artifact.media_type),
            tier=artifact.tier,
            tier_says=TIERS.get(artifact.tier, "not known"),
            taken_by=visible(artifact.taken_by),
            taken_at=artifact.taken_at,
            taken_from=visible(artifact.taken_from),
            covers_from=artifact.covers_from,
            covers_to=artifact.covers_to,
            verified_at=artifact.verified_at,
            damaged_at=artifact.damaged_at,
            purged_at=artifact.purged_at,
            purged_by=artifact.purged_by,
            purge_reason=visible(artifact.purge_reason) if artifact.purge_reason else None,
            incident_id=artifact.incident_id,
            bundle_id=bundle_id,
            dump_id=dump_id,
            is_profile=is_profile(artifact),
        )

    @property
    def finding(self) -> str:
        """The page's title: what can be said of the file."""
        if self.purged_at:
            return f"The bytes of {self.name} are purged; this record stays"
        if self.damaged_at:
            return f"{self.name} no longer matches its hash"
        return f"{self.name}: {self.kind}"


@dataclass(frozen=True)
class ArtifactPage(Page):
    """One artifact: custody, verification, download, purge."""

    template: ClassVar[str] = "artifacts/page.html"
    artifact: Custody
    may_read: bool  # raw evidence is for operators
