"""Page: how each request of a replay went, filtered, a hundred at a time."""

from collections.abc import Sequence
from typing import Annotated
from urllib.parse import urlencode

from fastapi import APIRouter, Depends, Query, Request, Response
from pydantic import BaseModel, Field
from sqlmodel import Session

from app.domain.counting import counted
from app.domain.replay.outcomes import ERROR_CLASSES
from app.domain.replay.readings import name_of
from app.errors import Malformed
from app.store import replay_rows
from app.store.replay_rows import STATES, Place, Wanted
from app.store.replay_tables import ReplayTrial
from app.web import paging
from app.web.dependencies import AppShell, Reader, Reading
from app.web.render import render
from app.web.replay_standing import Standing, standing
from app.web.views import Shell
from app.web.views.replay_outcomes import OutcomeRow, OutcomesAsked, OutcomesPage

PAGE_ROWS = 100
_LARGEST = 2**63

router = APIRouter(include_in_schema=False)


class TypedOutcomes(BaseModel):
    """The form above the table. What is empty, or not known here, does not restrict."""

    trial: Annotated[str, Field(max_length=9)] = ""
    state: Annotated[str, Field(max_length=20)] = ""
    error: Annotated[str, Field(max_length=40)] = ""
    after: Annotated[str, Field(max_length=400)] = ""
    since: Annotated[int | None, Field(alias="from", ge=0, lt=_LARGEST)] = None

    @property
    def number(self) -> int | None:
        return int(self.trial) if self.trial.isascii() and self.trial.isdigit() else None

    @property
    def wanted(self) -> Wanted:
        return Wanted(
            trial=self.number,
            state=next((one for one in STATES if one == self.state), None),
            error=next((one for one in ERROR_CLASSES if one == self.error), None),
        )

    @property
    def place(self) -> Place | None:
        """Where the page begins; None: at the beginning. Raises Malformed."""
        match paging.decode(self.after) if self.after else None:
            case None if self.since is not None:
                return self.number or 1, self.since - 1
            case None:
                return None
            case (int() as trial, int() as index) if 0 <= trial < _LARGEST > index >= -1:
                return trial, index
        raise Malformed("The cursor is not one of ours.", fix="Start again without a cursor.")

    def link(self, after: str = "") -> str:
        """The query that asks the same from *after* on."""
        wanted = self.wanted
        asked = {"trial": wanted.trial, "state": wanted.state, "error": wanted.error}
        given = {name: value for name, value in {**asked, "after": after}.items() if value}
        return f"?{urlencode(given)}"


async def _typed(actor: Reader, typed: Annotated[TypedOutcomes, Query()]) -> TypedOutcomes:
    return typed


@router.get("/replays/{replay_id:int}/outcomes", name="replay_outcomes")
def show_outcomes(
    request: Request,
    replay_id: int,
    typed: Annotated[TypedOutcomes, Depends(_typed)],
    session: Reading,
    shell: AppShell,
) -> Response:
    return render(request, _page(session, shell, standing(session, replay_id), typed))


def _page(session: Session, shell: Shell, stands: Standing, typed: TypedOutcomes) -> OutcomesPage:
    wanted, place = typed.wanted, typed.place
    page = replay_rows.outcomes_of(session, stands.id, wanted, after=place, limit=PAGE_ROWS)
    return OutcomesPage(
        shell=shell,
        finding=_finding(stands, wanted),
        replay_id=stands.id,
        incident_id=stands.replay.incident_id,
        dump_id=stands.replay.dump_id,
        outcomes_artifact_id=stands.replay.outcomes_artifact_id,
        asked=OutcomesAsked(
            trial=wanted.trial,
            state=wanted.state or "",
            error=wanted.error or "",
            restricts=wanted != replay_rows.EVERY,
        ),
        trials=[(one.number, stands.label(one)) for one in stands.trials],
        errors=_errors(stands.trials),
        rows=[OutcomeRow.of(row) for row in page.rows],
        first=typed.link() if place else None,
        following=typed.link(paging.encode(page.after)) if page.after else None,
    )


def _errors(trials: Sequence[ReplayTrial]) -> list[tuple[str, str]]:
    there = {error for trial in trials for error, count in trial.errors.items() if count}
    return [(error, name_of(error)) for error in ERROR_CLASSES if error in there]


def _finding(stands: Standing, wanted: Wanted) -> str:
    """Counted from what the trials tell, not from the rows."""
    trials = [one for one in stands.trials if wanted.trial in (None, one.number)]
    answered = sum(one.completed for one in trials)
    failed = sum(one.failed for one in trials)
    if wanted.error:
        count = sum(int(one.errors.get(wanted.error) or 0) for one in trials)
        error = next(one for one in ERROR_CLASSES if one == wanted.error)
        return f"{count:,} of {answered + failed:,} outcomes: {name_of(error)}"
    of = counted(answered + failed, "request was", "requests were")
    return f"{answered:,} of {of} answered, {failed:,} failed"
