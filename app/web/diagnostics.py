"""Pages: asking for a look into a server's processes, and what it brought."""

from typing import Annotated

from fastapi import APIRouter, Depends, Form, Query, Request, Response
from pydantic import BaseModel, Field

from app.domain.ladder import Kind
from app.store.diagnostics import NewDiagnostic, get_diagnostic, request_diagnostic
from app.store.incidents import targets_of
from app.store.jobs import get_job
from app.web.answers import done
from app.web.candidates import candidate
from app.web.dependencies import (
    RANKS,
    AppShell,
    AppStores,
    Now,
    Operator,
    Reader,
    Reading,
    Writing,
)
from app.web.diagnostic_page import Asked, found_in, is_live, items_in_order, told_of
from app.web.jobs import told
from app.web.render import render
from app.web.views.diagnostics import DiagnosticFound, DiagnosticPage
from app.web.views.ranks import Shape

SAMPLES = {"stacks": 3}  # of the others one is enough
INTERVAL_SECONDS = 5.0
OF_HOSTS = ("nccl ras", "host facts")

router = APIRouter(include_in_schema=False)


def _asked(
    actor: Reader,
    sample: Annotated[int | None, Query(ge=1, le=999)] = None,
    ranks: Annotated[int, Query(ge=1, le=999)] = 1,
    fold: str = "",
    by: str = "",
) -> Asked:
    shape = Shape(folded=fold != "none", by_line=by == "line")
    return Asked(sample, ranks, shape, raw=RANKS[actor.role] >= RANKS["operator"])


AskedPart = Annotated[Asked, Depends(_asked)]


class TypedDiagnostic(BaseModel):
    """A rung of the ladder; *process_id* empty: all ranks of the *server*."""

    kind: Kind
    server: Annotated[str, Field(max_length=80)]
    process_id: Annotated[str, Field(max_length=40)] = ""
    confirm: Annotated[str, Field(max_length=2000)] = ""


@router.get("/diagnostics/{diagnostic_id:int}", name="diagnostic")
def show_diagnostic(  # noqa: PLR0913  (what it needs is asked for by name)
    request: Request,
    *,
    diagnostic_id: int,
    session: Reading,
    stores: AppStores,
    actor: Reader,
    shell: AppShell,
    asked: AskedPart,
) -> Response:
    row = get_diagnostic(session, diagnostic_id)
    items, job = items_in_order(session, diagnostic_id), get_job(session, row.job_id)
    page = DiagnosticPage(
        shell=shell,
        diagnostic=told_of(session, row, items),
        found=found_in(session, stores.artifacts, row, items, asked),
        live=is_live(row),
        job=told(session, job, shell.now) if job.state != "succeeded" else None,
        following="events",
        may_act=shell.may_act,
        names_tab=False,
        now=shell.now,
    )
    return render(request, page)


@router.get("/diagnostics/{diagnostic_id:int}/found", name="diagnostic_found")
def diagnostic_found(  # noqa: PLR0913
    request: Request,
    *,
    diagnostic_id: int,
    session: Reading,
    stores: AppStores,
    actor: Reader,
    now: Now,
    asked: AskedPart,
) -> Response:
    """What it brought so far; when nothing more can come, the page is loaded anew."""
    row = get_diagnostic(session, diagnostic_id)
    items = items_in_order(session, diagnostic_id)
    live = is_live(row)
    found = found_in(session, stores.artifacts, row, items, asked)
    answer = render(request, DiagnosticFound(told_of(session, row, items), found, live, now))
    if not live:
        answer.headers["HX-Refresh"] = "true"
    return answer


@router.post("/incidents/{incident_id:int}/diagnostics", name="diagnose")
def diagnose(  # noqa: PLR0913
    request: Request,
    *,
    incident_id: int,
    session: Writing,
    stores: AppStores,
    actor: Operator,
    now: Now,
    typed: Annotated[TypedDiagnostic, Form()],
) -> Response:
    """Ask for it, and show it while it comes in."""
    server = candidate(session, targets_of(session, incident_id), typed.server)
    host_ids, process_ids = server.whom(typed.process_id, whole=typed.kind in OF_HOSTS)
    new = NewDiagnostic(
        incident_id=incident_id,
        target_id=server.target.id,
        host_ids=host_ids,
        kind=typed.kind,
        process_ids=process_ids,
        samples=SAMPLES.get(typed.kind, 1),
        interval_seconds=INTERVAL_SECONDS,
        confirm=typed.confirm.strip() or None,
    )
    _, row = request_diagnostic(session, stores, new, actor=actor, at=now)
    return done(request, to=request.url_for("diagnostic", diagnostic_id=row.id).path)
