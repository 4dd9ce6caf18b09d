"""Pages: asking for a replay. What would be sent is looked at first; nothing is sent by asking."""

from dataclasses import replace
from typing import Annotated

from fastapi import APIRouter, Depends, Form, Query, Request, Response
from pydantic import Field, ValidationInfo, field_validator

from app.domain.replay.options import Options, Window
from app.errors import Rejected
from app.store.replays import request_replay
from app.web.acting import ActingOn
from app.web.answers import done
from app.web.dependencies import AppShell, AppStores, Operator, Reading
from app.web.render import render
from app.web.replay_asked import AskedReplay
from app.web.replay_choices import new_replay_page

LONGEST_SELECT = 4000  # of a link; the API takes more

router = APIRouter(include_in_schema=False)


class TypedReplay(AskedReplay):
    """The form, in a link or sent. What is empty is as usual."""

    dump: int | None = None
    artifact: int | None = None
    select: Annotated[str, Field(max_length=LONGEST_SELECT)] = ""
    target: int | None = None
    other: int | None = None
    from_seconds: float = 0.0
    until_seconds: float | None = None
    cut_gaps: float | None = None

    @field_validator("*", mode="before")
    @classmethod
    def _empty_is_usual(cls, value: object, info: ValidationInfo) -> object:
        field = cls.model_fields[info.field_name or ""]
        return field.get_default(call_default_factory=True) if value == "" else value

    @property
    def options(self) -> Options:
        window = Window(self.from_seconds, self.until_seconds)
        return self.options_in(window, cut_gaps_to_seconds=self.cut_gaps)


async def _asked(actor: Operator, asked: Annotated[TypedReplay, Query()]) -> TypedReplay:
    return asked


@router.get("/incidents/{incident_id:int}/replays/new", name="new_replay")
def new_replay(
    request: Request,
    incident_id: int,
    asked: Annotated[TypedReplay, Depends(_asked)],
    session: Reading,
    shell: AppShell,
) -> Response:
    return render(request, new_replay_page(session, shell, incident_id, asked))


@router.post("/incidents/{incident_id:int}/replays", name="ask_replay")
def ask_replay(
    acting: ActingOn, stores: AppStores, typed: Annotated[TypedReplay, Form()]
) -> Response:
    """Look at what would be sent; the page of the replay then asks for the consent."""
    if typed.target is None:
        raise Rejected("No target was chosen.", fix="Choose where the requests are to go.")
    new = replace(
        typed.new_replay(acting.incident_id, typed.target, typed.options),
        dump_id=typed.dump,
        artifact_id=None if typed.dump else typed.artifact,
        other_target_id=typed.other,
        select=typed.select.strip(),
        send=False,
    )
    _, replay = request_replay(acting.session, stores, new, actor=acting.actor, at=acting.at)
    return done(acting.request, acting.request.url_for("replay", replay_id=replay.id).path)
