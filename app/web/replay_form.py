"""Pages: asking for a replay. What would be sent is looked at first; nothing is sent by asking."""

from typing import Annotated

from fastapi import APIRouter, Depends, Form, Query, Request, Response
from pydantic import BaseModel, Field, ValidationInfo, field_validator

from app.domain.replay.agreed import (
    LONGEST_REQUEST_SECONDS,
    MOST_NEW_TOKENS,
    MOST_PARALLEL,
    MOST_TRIALS,
)
from app.domain.replay.options import (
    DEFAULT_MOST_NEW_TOKENS,
    DEFAULT_PARALLEL,
    Allowed,
    Mode,
    Options,
    Window,
)
from app.domain.replay.symptoms import Symptom
from app.errors import Rejected
from app.store.replays import NewReplay, Reference, request_replay
from app.web.acting import ActingOn
from app.web.answers import done
from app.web.dependencies import AppShell, AppStores, Operator, Reading
from app.web.render import render
from app.web.replay_choices import new_replay_page

LONGEST_SELECT = 4000  # of a link; the API takes more

router = APIRouter(include_in_schema=False)


class TypedReplay(BaseModel):
    """The form, in a link or sent. What is empty is as usual."""

    dump: int | None = None
    artifact: int | None = None
    select: Annotated[str, Field(max_length=LONGEST_SELECT)] = ""
    target: int | None = None
    other: int | None = None
    symptom: Symptom | None = None
    reference: Reference = "faulty"
    mode: Mode = "open"
    speed: Annotated[float, Field(gt=0, le=1000)] = 1.0
    parallel: Annotated[int, Field(ge=1, le=MOST_PARALLEL)] = DEFAULT_PARALLEL
    trials: Annotated[int, Field(ge=1, le=MOST_TRIALS)] = 1
    most_new_tokens: Annotated[int, Field(ge=1, le=MOST_NEW_TOKENS)] = DEFAULT_MOST_NEW_TOKENS
    request_seconds: Annotated[float, Field(ge=1, le=LONGEST_REQUEST_SECONDS)] = 600.0
    ignore_eos: bool = False
    from_seconds: Annotated[float, Field(ge=0)] = 0.0
    until_seconds: float | None = None
    sample: Annotated[float, Field(gt=0, le=1)] = 1.0
    cut_gaps: Annotated[float | None, Field(ge=0)] = None
    allow: list[Allowed] = []

    @field_validator("*", mode="before")
    @classmethod
    def _empty_is_usual(cls, value: object, info: ValidationInfo) -> object:
        field = cls.model_fields[info.field_name or ""]
        return field.get_default(call_default_factory=True) if value == "" else value

    @property
    def options(self) -> Options:
        return Options(
            mode=self.mode,
            speed=self.speed,
            parallel=self.parallel,
            window=Window(self.from_seconds, self.until_seconds),
            sample=self.sample,
            cut_gaps_to_seconds=self.cut_gaps,
            most_new_tokens=self.most_new_tokens,
            ignore_eos=self.ignore_eos,
            allow=frozenset(self.allow),
        )


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
    new = NewReplay(
        incident_id=acting.incident_id,
        target_id=typed.target,
        dump_id=typed.dump,
        artifact_id=None if typed.dump else typed.artifact,
        other_target_id=typed.other,
        select=typed.select.strip(),
        options=typed.options,
        trials=typed.trials,
        symptom=typed.symptom,
        request_seconds=typed.request_seconds,
        reference=typed.reference,
        send=False,
    )
    _, replay = request_replay(acting.session, stores, new, actor=acting.actor, at=acting.at)
    return done(acting.request, acting.request.url_for("replay", replay_id=replay.id).path)
