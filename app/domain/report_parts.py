"""What a report rests on: the incident, its bundles, and its other files."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any


@dataclass(frozen=True, slots=True)
class Subject:
    """The incident as its report heads it."""

    number: int
    title: str
    severity: str | None
    state: str
    opened_at: datetime
    started_at: datetime | None = None
    resolved_at: datetime | None = None
    targets: tuple[str, ...] = ()
    problem_class: str | None = None  # as a person chose it
    problem_class_by: str | None = None  # that person; None while the evidence decides
    problem_class_why: str | None = None  # as that person said

    def as_json(self) -> dict[str, Any]:
        return {
            "number": self.number,
            "title": self.title,
            "severity": self.severity,
            "state": self.state,
            "opened_at": rfc3339(self.opened_at),
            "started_at": rfc3339(self.started_at),
            "resolved_at": rfc3339(self.resolved_at),
            "targets": list(self.targets),
        }


@dataclass(frozen=True, slots=True)
class Source:
    """A bundle that the report rests on."""

    bundle_id: int
    target: str
    path: str  # where a program finds it
    collected_at: datetime
    summary: Mapping[str, Any]  # interface §2, bundle summarize

    @property
    def artifact(self) -> str:
        return f"bundle {self.bundle_id}"

    @property
    def placed(self) -> dict[str, Any]:
        """The summary, its evidence named with the bundle as well: ``bundle 7/metrics_1``."""
        signals = [
            {**claim, "evidence": placed(claim.get("evidence") or (), self.artifact)}
            for claim in self.summary.get("signals") or ()
        ]
        return {**self.summary, "artifact": self.artifact, "signals": signals}

    def as_json(self) -> dict[str, Any]:
        return {
            "artifact": self.artifact,
            "kind": "bundle",
            "path": self.path,
            "target": self.target,
            "collected_at": rfc3339(self.collected_at),
        }


@dataclass(frozen=True, slots=True)
class Input:
    """A file of the incident that is not a bundle."""

    artifact_id: int
    kind: str
    name: str
    taken_at: datetime
    recognised: bool

    def as_json(self) -> dict[str, Any]:
        return {
            "artifact": f"artifact {self.artifact_id}",
            "kind": self.kind,
            "path": self.name,
            "collected_at": rfc3339(self.taken_at),
        }


def placed(evidence: Iterable[Mapping[str, Any]], artifact: str) -> list[dict[str, Any]]:
    """*evidence* whose artifacts are captures of the bundle *artifact*, named with it."""
    return [{**one, "artifact": f"{artifact}/{one['artifact']}"} for one in evidence]


def rfc3339(moment: datetime | None) -> str | None:
    """UTC to the second, with ``Z``."""
    if moment is None:
        return None
    # Not strftime, which writes the year 1 as "1".
    return moment.astimezone(UTC).isoformat(timespec="seconds").replace("+00:00", "Z")
