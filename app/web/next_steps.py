"""Next steps as the incident's page shows them: with the button that takes what they ask for."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from sqlmodel import Session

from app.domain.advice import still_open, takes
from app.store.diagnostics import diagnostics_of, items_of
from app.store.tables import BundleRow, Diagnostic
from app.web.step_places import place_of
from app.web.views.diagnostic_finding import UNFINISHED, finding
from app.web.views.incidents import Elsewhere, StepTold
from app.web.views.ladder import LadderTold, LastRun

MOST_STEPS = 3
_COUNTS = ("done", *UNFINISHED)  # what was refused is still to be taken


@dataclass(frozen=True, slots=True)
class Standing:
    """What the steps are told against: the *bundle* that calls for them, and the ladder.

    Without a bundle it is a dump, a diagnostic or a replay that does.
    """

    incident_id: int
    bundle: BundleRow | None
    ladder: LadderTold
    server: str | None  # the key that was asked for in the URL
    role: str  # of who looks
    has_target: bool  # whether a registered target could be asked

    @property
    def numbers(self) -> Mapping[str, int | None]:
        """What a step may be about, as routes name it."""
        target_id = self.bundle.target_id if self.bundle and self.has_target else None
        return {"incident_id": self.incident_id, "target_id": target_id}


def steps_told(
    session: Session, steps: Sequence[Mapping[str, Any]], standing: Standing
) -> list[StepTold]:
    """The most urgent of *steps*."""
    since = _since(session, standing)
    left = still_open(steps, [row.kind for row in since if row.state == "done"])
    return [_told(session, step, standing, since) for step in left[:MOST_STEPS]]


def _since(session: Session, standing: Standing) -> list[Diagnostic]:
    """The diagnostics since the bundle that may be of its server, newest first."""
    bundle = standing.bundle
    return [
        row
        for row in diagnostics_of(session, standing.incident_id)
        if row.state in _COUNTS
        and (
            bundle is None
            or (row.asked_at >= bundle.collected_at and row.target_id in (None, bundle.target_id))
        )
    ]


def _told(
    session: Session, step: Mapping[str, Any], standing: Standing, since: Sequence[Diagnostic]
) -> StepTold:
    """A summary that an older version stored has no commands and no rungs."""
    kind = step.get("rung")
    ladder = standing.ladder
    rung = next((one for one in ladder.rungs if one.rung.kind == kind), None)
    row = next((one for one in since if kind and takes(kind, one.kind)), None)
    return StepTold(
        text=step["text"],
        why=step["why"],
        risk=step["risk"],
        command=step.get("command"),
        rung=rung,
        elsewhere=_elsewhere(standing) if rung else None,
        place=place_of(step, standing.numbers, standing.role, has_target=standing.has_target),
        taken=_last(session, row) if row else None,
    )


def _last(session: Session, row: Diagnostic) -> LastRun:
    assert row.id is not None
    return LastRun(row.id, row.asked_at, finding(row, items_of(session, row.id)))


def _elsewhere(standing: Standing) -> Elsewhere | None:
    """None where the chosen server is the one that the bundle is about, beyond doubt."""
    chosen = standing.ladder.chosen
    if chosen is None:
        return Elsewhere("Link a server", None)
    if standing.server == chosen.key:
        return None
    choices = standing.ladder.choices
    bundle = standing.bundle
    of_bundle = [one for one in choices if bundle is None or one.target_id == bundle.target_id]
    if not of_bundle:
        return Elsewhere("Choose the server", chosen.key)
    if len(of_bundle) == 1 and of_bundle[0] == chosen:
        return None
    return Elsewhere("Choose the server", of_bundle[0].key)
