"""Pages: a dump and what reading it told, and one request of it with its text for a reason."""

from typing import Annotated

from fastapi import APIRouter, Depends, Form, Request, Response
from pydantic import BaseModel, Field

from app.store.unsealing import Tier, unseal
from app.web.dependencies import AppShell, AppStores, Now, Operator, Reader, Reading
from app.web.dump_page import dump_page
from app.web.dump_query import AskedRequests
from app.web.dump_request_page import request_page
from app.web.render import render
from app.web.unsealed import parts_of
from app.web.views.dump_request import Unsealed

router = APIRouter(include_in_schema=False)


class TypedUnseal(BaseModel):
    """Which text, and why it is needed."""

    tier: Tier
    reason: Annotated[str, Field(min_length=3, max_length=300)]


def _unseal(
    dump_id: int,
    index: int,
    actor: Operator,
    stores: AppStores,
    now: Now,
    typed: Annotated[TypedUnseal, Form()],
) -> Unsealed:
    """The text of a request; who opened it and why is in the audit log before."""
    told = unseal(stores, dump_id, index, tier=typed.tier, reason=typed.reason, actor=actor, at=now)
    return Unsealed(typed.tier, typed.reason, parts_of(told))


@router.get("/dumps/{dump_id:int}", name="dump")
def show_dump(
    request: Request, dump_id: int, asked: AskedRequests, session: Reading, shell: AppShell
) -> Response:
    return render(request, dump_page(session, shell, dump_id, asked))


@router.get("/dumps/{dump_id:int}/requests/{index:int}", name="dump_request")
def show_request(
    request: Request, dump_id: int, index: int, session: Reading, actor: Reader, shell: AppShell
) -> Response:
    """One request by its shape."""
    return render(request, request_page(session, shell, dump_id, index))


@router.post("/dumps/{dump_id:int}/requests/{index:int}", name="unseal_request")
def unseal_request(
    request: Request,
    dump_id: int,
    index: int,
    unsealed: Annotated[Unsealed, Depends(_unseal)],
    session: Reading,
    shell: AppShell,
) -> Response:
    """The request with its text. That has no address of its own: nothing keeps it but this page."""
    return render(request, request_page(session, shell, dump_id, index, unsealed=unsealed))
