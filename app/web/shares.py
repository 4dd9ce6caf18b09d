"""Pages: preview and make share links, list and revoke them, and what opens under one."""

from typing import Annotated

from fastapi import APIRouter, Depends, Form, Request, Response
from pydantic import BaseModel
from sqlmodel import Session

from app.errors import Rejected
from app.store import passwords, shares
from app.store.database import reading, writing
from app.store.incidents import get_incident
from app.store.shares import ShareTerms
from app.store.stores import Stores
from app.store.tables import Incident, Share
from app.web.access import address
from app.web.answers import done
from app.web.dependencies import AppShell, AppStores, Now, Operator, Reader, Reading, Writing
from app.web.render import render
from app.web.share_gate import ShareGate
from app.web.views import Shell
from app.web.views.shares import (
    LIVES,
    GonePage,
    LockedPage,
    SharedCopy,
    SharedPage,
    SharesPage,
    ShareTold,
)

router = APIRouter(include_in_schema=False)

STRICT = {
    "X-Robots-Tag": "noindex, nofollow, noarchive",
    "Cache-Control": "no-store",
    "Referrer-Policy": "no-referrer",
}


class TermsForm(BaseModel):
    """What the form that makes a link sends; *seal* is that of the copy on the page."""

    seal: str
    lives: str = "7 days"
    password: str = ""

    @property
    def terms(self) -> ShareTerms:
        if self.lives not in LIVES:
            raise Rejected("That is not one of the times a link can live.")
        return ShareTerms(LIVES[self.lives], password=self.password or None)


async def _gate(request: Request) -> ShareGate:
    """The one gate of this process; async, so that two first requests do not make two."""
    state = request.app.state
    if not hasattr(state, "share_gate"):
        state.share_gate = ShareGate()
    gate: ShareGate = state.share_gate
    return gate


Gate = Annotated[ShareGate, Depends(_gate)]


@router.get("/reports/{incident_id:int}/shares", name="shares")
def shares_page(
    request: Request,
    incident_id: int,
    session: Reading,
    stores: AppStores,
    actor: Reader,
    shell: AppShell,
) -> Response:
    view = _page(session, get_incident(session, incident_id), stores, shell)
    return render(request, view)


@router.post("/reports/{incident_id:int}/shares", name="make_share")
def make_share(  # noqa: PLR0913
    request: Request,
    incident_id: int,
    *,
    form: Annotated[TermsForm, Form()],
    session: Writing,
    stores: AppStores,
    actor: Operator,
    shell: AppShell,
) -> Response:
    """Make the link and show it, this once: a redirect could not carry it."""
    incident = get_incident(session, incident_id)
    _, token = shares.create(
        session,
        incident,
        form.terms,
        vault=stores.vault,
        actor=actor,
        at=shell.now,
        previewed=form.seal,
    )
    made = link_to(request, stores, token)
    return render(request, _page(session, incident, stores, shell, made=made), status=201)


@router.post("/shares/{share_id:int}/revoke", name="revoke_share")
def revoke_share(
    request: Request, share_id: int, session: Writing, actor: Operator, now: Now
) -> Response:
    share = shares.get_share(session, share_id)
    shares.revoke(session, share, actor=actor, at=now)
    return done(request, to=request.url_for("shares", incident_id=share.incident_id).path)


@router.get("/s/{token:path}", name="share")
def open_share(request: Request, token: str, stores: AppStores, gate: Gate, now: Now) -> Response:
    gate.check(address(request), at=now)
    with reading(stores.engine) as session:
        share = shares.opened_by(session, token, at=now)
    if share is None:
        gate.failed(address(request), at=now)
        return _strict(render(request, GonePage(), status=404))
    if share.password_hash:
        return _strict(render(request, LockedPage(token, refused=False)))
    return _shown(request, stores, share, now)


@router.post("/s/{token:path}")
def unlock_share(
    request: Request,
    token: str,
    stores: AppStores,
    gate: Gate,
    now: Now,
    password: Annotated[str, Form()] = "",
) -> Response:
    """The copy, for whoever knows the password; nothing is remembered in the browser."""
    gate.check(address(request), at=now)
    with reading(stores.engine) as session:
        share = shares.opened_by(session, token, at=now)
    if share is None:
        gate.failed(address(request), at=now)
        return _strict(render(request, GonePage(), status=404))
    if share.password_hash and not passwords.fits(password, share.password_hash):
        gate.failed(address(request), at=now)
        return _strict(render(request, LockedPage(token, refused=True), status=403))
    return _shown(request, stores, share, now)


def link_to(request: Request, stores: Stores, token: str) -> str:
    """The whole URL of a share, on the name that people outside know the console by."""
    path = request.url_for("share", token=token).path
    public = stores.settings.public_url
    return f"{public.rstrip('/')}{path}" if public else str(request.url_for("share", token=token))


def _page(
    session: Session, incident: Incident, stores: Stores, shell: Shell, *, made: str | None = None
) -> SharesPage:
    copy = shares.copy_of(session, incident, stores.vault, at=shell.now)
    listed = [ShareTold.of(one, shell.now) for one in shares.shares_of(session, incident.id or 0)]
    return SharesPage(shell, SharedCopy.of(copy), shares.seal_of(copy), listed, made)


def _shown(request: Request, stores: Stores, share: Share, now: Now) -> Response:
    assert share.id is not None
    with writing(stores.engine) as session:
        shares.count_opening(session, share.id, at=now)
    return _strict(render(request, SharedPage(SharedCopy.of(share.snapshot, share.expires_at))))


def _strict(answer: Response) -> Response:
    answer.headers.update(STRICT)
    return answer
