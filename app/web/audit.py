"""Pages: the audit log."""

from typing import Annotated

from fastapi import APIRouter, Query, Request
from fastapi.responses import Response

from app.store.audit import newest
from app.web.dependencies import Admin, AppShell, Reading
from app.web.render import render
from app.web.views.audit import AuditPage

router = APIRouter(include_in_schema=False)
ON_A_PAGE = 100


@router.get("/audit", name="audit")
def audit_page(
    request: Request,
    _admin: Admin,
    shell: AppShell,
    session: Reading,
    before: Annotated[int | None, Query(ge=1)] = None,
) -> Response:
    events = newest(session, limit=ON_A_PAGE + 1, before=before)
    shown = events[:ON_A_PAGE]
    older_than = shown[-1].id if len(events) > ON_A_PAGE else None
    return render(request, AuditPage(shell, shown, older_than, is_newest=before is None))
