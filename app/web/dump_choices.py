"""Pages: requests of a dump that somebody chose, and their download as JSON lines."""

import shlex
from collections.abc import Iterator
from datetime import datetime
from typing import IO, Annotated

from fastapi import APIRouter, Depends, Form, Query, Request, Response
from fastapi.responses import StreamingResponse
from pydantic import BaseModel, Field
from sqlmodel import Session

from app.domain.counting import counted
from app.domain.dumps.choosing import LONGEST, Choice, read_choice
from app.domain.dumps.redacted import Tier
from app.errors import Malformed
from app.store.audit import Actor
from app.store.dump_choices import chosen_rows, count_chosen
from app.store.dump_export import MOST, export
from app.store.dump_tables import Dump
from app.store.dumps import read_dump
from app.store.stores import Stores
from app.web.dependencies import AppShell, AppStores, Now, Operator, Reader, Reading
from app.web.downloads import disposition
from app.web.formats import visible
from app.web.render import render
from app.web.views import Shell
from app.web.views.dump_choice import ChoicePage, ChosenTold, NoChoice
from app.web.views.dump_requests import RequestTold
from app.web.views.dumps import DumpTold

MOST_SHOWN = 50
MOST_TICKED = 200
PIECE_BYTES = 256 * 1024
SHORTEST_REASON = 3

router = APIRouter(include_in_schema=False)


class TypedExport(BaseModel):
    """What of the chosen requests is written out, and why."""

    select: Annotated[str, Field(max_length=LONGEST)]
    tier: Tier = "T0"
    reason: Annotated[str, Field(max_length=300)] = ""


def _typed(
    actor: Reader,
    select: Annotated[str, Query(max_length=LONGEST)] = "",
    pick: Annotated[list[int] | None, Query(max_length=MOST_TICKED)] = None,
) -> str:
    """The expression, with the requests that were ticked."""
    return ",".join([*map(str, pick or ()), *([select] if select.strip() else ())])


@router.get("/dumps/{dump_id:int}/choice", name="dump_choice")
def show_choice(
    request: Request,
    dump_id: int,
    typed: Annotated[str, Depends(_typed)],
    session: Reading,
    shell: AppShell,
) -> Response:
    """What was chosen; the expression on the page means all of it."""
    dump = read_dump(session, dump_id)
    try:
        choice = read_choice(typed)
    except Malformed as error:
        wrong = NoChoice(error.what, error.why, error.fix)
        return render(request, _page(shell, dump, typed, None, wrong), status=422)
    chosen = _chosen(session, dump, choice) if choice else None
    return render(request, _page(shell, dump, str(choice), chosen, None))


@router.get("/dumps/{dump_id:int}/choice/shapes", name="choice_shapes")
def export_shapes(
    dump_id: int,
    select: Annotated[str, Query(max_length=LONGEST)],
    stores: AppStores,
    actor: Reader,
    now: Now,
) -> Response:
    """The chosen requests as JSON lines without anybody's words, which everyone may have."""
    return _download(stores, dump_id, TypedExport(select=select), actor, now)


@router.post("/dumps/{dump_id:int}/choice", name="export_choice")
def export_choice(
    dump_id: int,
    stores: AppStores,
    actor: Operator,
    now: Now,
    typed: Annotated[TypedExport, Form()],
) -> Response:
    """The chosen requests as JSON lines: their text for a reason."""
    if typed.tier != "T0" and len(typed.reason.strip()) < SHORTEST_REASON:
        raise Malformed("Text is opened for a reason only.", fix="Say why you need it, or take T0.")
    return _download(stores, dump_id, typed, actor, now)


def _download(
    stores: Stores, dump_id: int, typed: TypedExport, actor: Actor, at: datetime
) -> Response:
    choice, tier = read_choice(typed.select), typed.tier
    reason = typed.reason.strip() or None
    file = export(stores, dump_id, choice, tier=tier, reason=reason, actor=actor, at=at)
    name = f"dump-{dump_id}-{tier}.jsonl"
    headers = {"Content-Disposition": disposition(name), "X-Content-Type-Options": "nosniff"}
    return StreamingResponse(_pieces(file), headers=headers, media_type="application/x-ndjson")


def _pieces(file: IO[bytes]) -> Iterator[bytes]:
    with file:
        while piece := file.read(PIECE_BYTES):
            yield piece


def _page(
    shell: Shell, dump: Dump, select: str, chosen: ChosenTold | None, wrong: NoChoice | None
) -> ChoicePage:
    file = shlex.quote(visible(dump.name))
    return ChoicePage(
        shell=shell,
        dump=DumpTold.of(dump),
        finding=_finding(chosen, dump),
        select=visible(select),
        wrong=wrong,
        chosen=chosen,
        command=f"incident-console dump export {file} --out requests.jsonl --tier T0",
    )


def _finding(chosen: ChosenTold | None, dump: Dump) -> str:
    if chosen is None:
        return f"Choose requests of dump {dump.id}"
    if not chosen.total:
        return f"No request of dump {dump.id} is like that"
    states = ", ".join(f"{count:,} {state}" for state, count in chosen.states.items())
    of = counted(dump.requests_total or 0, "request")
    verb = "is" if chosen.total == 1 else "are"
    return f"{chosen.total:,} of {of} {verb} chosen{f': {states}' if states else ''}"


def _chosen(session: Session, dump: Dump, choice: Choice) -> ChosenTold:
    assert dump.id is not None
    found = count_chosen(session, dump.id, choice)
    rows = chosen_rows(session, dump.id, choice, limit=MOST_SHOWN)
    return ChosenTold(
        total=found.total,
        states=found.states,
        prompt_tokens=found.prompt_tokens,
        prompts_told=found.prompts_told,
        rows=[RequestTold.of(row) for row in rows],
        may_download=found.total <= MOST or found.total == dump.requests_total,
    )
