"""A bundle as its pages tell of it: identity, verdict, load, signals, window, changes."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any, Self

from app.domain.counting import counted
from app.domain.urgency import DEAD, SERVING, finding, verdict_of
from app.store.tables import Artifact, BundleRow, CaptureRow, Target
from app.store.targets import topology_told
from app.web.formats import number, visible
from app.web.views.answers import outcomes_told
from app.web.views.load import LatencyRow, MoveRow, RankRow, latency_rows, move_rows, rank_rows
from app.web.views.signals import RuleTold, SignalRow, rules_told, signal_rows, told

Summary = Mapping[str, Any]

_STATES = {
    "collecting": "A bundle of {} is being collected",
    "cancelled": "The bundle of {} was cancelled before it was whole",
    "failed": "The bundle of {} could not be made whole",
}


@dataclass(frozen=True)
class BundleTold:
    """A bundle's identity and custody, as its pages tell of it. None is not known."""

    id: int
    state: str
    target: str
    target_id: int | None
    incident_id: int | None
    title: str
    model: str | None
    topology: str
    version: str | None
    frontend: str
    collected_at: datetime
    took_seconds: float | None
    made_by: str
    probe: str
    tier: str | None
    size_bytes: int | None
    sha256: str | None
    verified: bool | None  # False: the archive no longer matches its hash
    artifact_id: int | None

    @property
    def can_be_collected_again(self) -> bool:
        """Whether there is a target to ask and an incident to ask for, and nobody asks now."""
        return bool(self.incident_id and self.target_id and self.state != "collecting")

    @classmethod
    def of(cls, row: BundleRow, target: Target | None, archive: Artifact | None) -> Self:
        """What is told of a bundle; texts of the target with their control characters shown."""
        assert row.id is not None
        summary = row.summary or {}
        name = visible(target.name if target else row.base_url)
        model = summary.get("model") or {}
        return cls(
            id=row.id,
            state=row.state,
            target=name,
            target_id=row.target_id,
            incident_id=row.incident_id,
            title=_title(row, name),
            model=_told(model.get("served_model_name") or model.get("model_path")),
            topology=topology_told(summary.get("topology")),
            version=_told(summary.get("version")),
            frontend=str(summary.get("frontend") or "unknown"),
            collected_at=row.collected_at,
            took_seconds=(row.finished_at - row.collected_at).total_seconds()
            if row.finished_at
            else None,
            made_by=told(row.made_by),
            probe=row.probe,
            tier=archive.tier if archive else None,
            size_bytes=archive.size_bytes if archive else None,
            sha256=archive.sha256 if archive else None,
            verified=_verified(archive),
            artifact_id=archive.id if archive and not archive.purged_at else None,
        )


def _told(text: Any) -> str | None:  # noqa: ANN401  (out of a summary's JSON)
    return told(text) if text else None


def _title(row: BundleRow, target: str) -> str:
    if row.state != "complete":
        return _STATES.get(row.state, "The bundle of {} is not whole").format(target)
    return told(finding(row.summary or {}, target))


def _verified(archive: Artifact | None) -> bool | None:
    if archive is None or (archive.verified_at is None and archive.damaged_at is None):
        return None
    return archive.damaged_at is None


@dataclass(frozen=True)
class VerdictTold:
    """The verdict in one sentence, and what it rests on."""

    level: str  # of its mark
    look: str  # bad, unknown, or "" for a quiet panel
    says: str
    answered: str
    idle: str

    @classmethod
    def of(cls, summary: Summary, captures: Sequence[CaptureRow]) -> Self:
        verdict = verdict_of(summary)
        level, look = _looks(verdict)
        says = told((summary.get("health") or {}).get("says") or "Not known whether it serves.")
        return cls(level, look, says, outcomes_told(captures), _idle(summary))


def _looks(verdict: str) -> tuple[str, str]:
    if verdict in DEAD:
        return "bad", "bad"
    if verdict in SERVING:
        return "good", ""
    return ("unknown", "unknown") if verdict == "unknown" else ("warn", "")


def _idle(summary: Summary) -> str:
    idle = summary.get("idle")
    if idle is None:
        return "Whether requests ran is not known, so figures of load say little."
    if idle:
        return (
            "Nothing ran while it was taken: it says nothing of latency or load. "
            "Collect again under traffic, or save a dump and replay it."
        )
    running = ((summary.get("load") or {}).get("totals") or {}).get("running")
    base = f"{number(running)} running" if running is not None else "how many ran is not known"
    if (summary.get("progress") or {}).get("moved") is False:
        return f"Requests were in it ({base}), and no counter moved between the two scrapes."
    return f"Taken under load ({base}), so rates mean something."


@dataclass(frozen=True)
class LoadTold:
    """Load of each rank. ``running`` None: the total is not known unless every rank is."""

    ranks: Sequence[RankRow]
    running: int | None
    waiting: int | None
    capture: str | None
    expected: int | None  # how many ranks the server says it has

    @classmethod
    def of(cls, summary: Summary) -> Self:
        load = summary.get("load") or {}
        totals = load.get("totals") or {}
        return cls(
            ranks=rank_rows(summary),
            running=totals.get("running"),
            waiting=totals.get("waiting"),
            capture=load.get("artifact"),
            expected=load.get("ranks_expected"),
        )

    @property
    def stale(self) -> list[RankRow]:
        return [rank for rank in self.ranks if rank.stale]


@dataclass(frozen=True)
class SignalsTold:
    """What the rules found, what they looked at and found quiet, and what they could not check."""

    rows: Sequence[SignalRow]
    quiet: Sequence[RuleTold]
    not_checked: Sequence[RuleTold]
    rules: int

    @classmethod
    def of(cls, summary: Summary) -> Self:
        rows, quiet = summary.get("signals") or [], summary.get("quiet") or []
        unchecked = summary.get("not_checked") or []
        count = len(rows) + len(quiet) + len(unchecked)
        return cls(signal_rows(rows), rules_told(quiet), rules_told(unchecked), count)


@dataclass(frozen=True)
class WindowTold:
    """Counters at both scrapes and latency of the window, beside a healthy bundle's."""

    seconds: float | None
    moves: Sequence[MoveRow]
    crowd: Sequence[MoveRow]  # counters of single ranks that moved as they should
    latencies: Sequence[LatencyRow]

    @classmethod
    def of(cls, summary: Summary, healthy: Summary) -> Self:
        rows = move_rows(summary, healthy)
        return cls(
            seconds=(summary.get("latency") or {}).get("window_seconds"),
            moves=[row for row in rows if not row.of_the_crowd],
            crowd=[row for row in rows if row.of_the_crowd],
            latencies=latency_rows(summary, healthy),
        )


@dataclass(frozen=True)
class Change:
    """One setting that differs between two bundles."""

    name: str
    before: str
    after: str
    why: str


@dataclass(frozen=True)
class DiffTold:
    """What changed from one bundle to a later one, most suspect first."""

    heading: str
    before_id: int
    after_id: int
    alike: int
    changes: Sequence[Change]
    low_suspicion: Sequence[Change]
    volatile: Sequence[Change]
    not_compared: Sequence[str]  # sections that one of the bundles does not tell

    @property
    def finding(self) -> str:
        """The title of the page of a diff."""
        between = f"between bundle {self.before_id} and bundle {self.after_id}"
        if not self.changes:
            return f"Nothing suspect changed {between}"
        first, count = self.changes[0], len(self.changes)
        return f"{counted(count, 'setting')} changed {between}, {first.name} first"

    @classmethod
    def of(
        cls, before: BundleRow, after: BundleRow, diff: Mapping[str, Any], *, heading: str
    ) -> Self:
        """The document of ``domain.bundle_diff`` on both bundles, ready to be shown."""
        assert before.id is not None
        assert after.id is not None
        return cls(
            heading=heading,
            before_id=before.id,
            after_id=after.id,
            alike=diff["alike"],
            changes=changes_told(diff["changes"]),
            low_suspicion=changes_told(diff["low_suspicion"]),
            volatile=changes_told(diff["volatile"]),
            not_compared=diff["not_compared"],
        )


def changes_told(entries: Sequence[Mapping[str, Any]]) -> list[Change]:
    """Entries of ``domain.bundle_diff`` in the words of a page."""
    return [
        Change(
            name=told(one["name"]),
            before=_setting(one.get("before")),
            after=_setting(one.get("after")),
            why=told(one.get("why") or ""),
        )
        for one in entries
    ]


def _setting(value: Any) -> str:  # noqa: ANN401  (a setting of any type)
    if value is None:
        return "not set"
    return ("true" if value else "false") if isinstance(value, bool) else told(value)
