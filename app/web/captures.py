"""Pages: one captured body as text around a place in it, and as a download."""

from typing import Annotated

from fastapi import APIRouter, Query, Request, Response
from sqlmodel import Session

from app.errors import NotFound
from app.store.bundles import MAX_BODY_BYTES, get_bundle
from app.store.tables import CaptureRow
from app.web.bundle_page import told_of
from app.web.dependencies import AppShell, AppStores, Reader, Reading
from app.web.downloads import download
from app.web.places import shown
from app.web.render import render
from app.web.views.answers import so
from app.web.views.bundles import CapturePage

router = APIRouter(include_in_schema=False)

LONGEST_PLACE = 500


def _capture(session: Session, bundle_id: int, name: str) -> CaptureRow:
    capture = session.get(CaptureRow, (bundle_id, name))
    if capture is None:
        raise NotFound(f"Bundle {bundle_id} has no capture of that name.")
    return capture


@router.get("/bundles/{bundle_id}/captures/{name}", name="capture")
def capture_page(  # noqa: PLR0913  (what it needs is asked for by name)
    request: Request,
    *,
    bundle_id: int,
    name: str,
    session: Reading,
    stores: AppStores,
    actor: Reader,
    shell: AppShell,
    at: Annotated[str, Query(max_length=LONGEST_PLACE)] = "",
) -> Response:
    """The captured body as text around the place *at*; the whole of it is a download."""
    row, capture = get_bundle(session, bundle_id), _capture(session, bundle_id, name)
    body = stores.artifacts.read(capture.sha256, MAX_BODY_BYTES) if capture.sha256 else b""
    view = CapturePage(
        shell=shell,
        bundle=told_of(session, row),
        name=capture.name,
        path=capture.path,
        outcome=capture.outcome,
        status=capture.status,
        seconds=capture.seconds,
        so=so(capture),
        size_bytes=capture.size_bytes,
        at=at,
        part=shown(body, at),
        redacted=len(capture.redacted),
    )
    return render(request, view)


@router.get("/bundles/{bundle_id}/captures/{name}/content", name="capture_content")
def capture_content(
    bundle_id: int, name: str, session: Reading, stores: AppStores, actor: Reader
) -> Response:
    """The captured body as it came, secrets masked, as an attachment."""
    capture = _capture(session, bundle_id, name)
    if capture.sha256 is None:
        raise NotFound(f"{capture.path} sent nothing.")
    called = f"bundle-{bundle_id}-{name}"
    return download(stores.artifacts, capture.sha256, name=called, span=None, if_range=None)
