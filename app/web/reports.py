"""Pages: the report of an incident, editing it, and its twins as Markdown, JSON and text."""

from functools import partial
from typing import Annotated

from fastapi import APIRouter, Form, Request, Response
from fastapi.responses import JSONResponse, PlainTextResponse
from pydantic import BaseModel
from sqlmodel import Session

from app.domain.report_edits import Change, ChooseClass, Strike, Write
from app.domain.report_entries import FIELDS
from app.domain.report_text import Line, as_markdown, as_text
from app.errors import NotFound
from app.store import timeline
from app.store.incidents import get_incident
from app.store.reports import edit, report_of, revision_of
from app.store.same_faults import same_faults
from app.web.answers import done, from_htmx
from app.web.chips import chip_of
from app.web.dependencies import AppShell, Now, Operator, Reader, Reading, Writing
from app.web.formats import iso
from app.web.render import render
from app.web.views.reports import Clash, ClashPage, Drafted, ReportPage, ReportTold
from app.web.views.same_faults import SameFaultsTold

router = APIRouter(include_in_schema=False)

MOST_LINES = 2_000  # of a timeline in a twin


class FieldForm(BaseModel):
    """What the form of a field sends."""

    revision: int
    says: str = ""
    status: str = "hypothesis"
    evidence: str = ""  # one place a line
    problem_class: str = ""

    def change(self, field: str) -> Change:
        if field == "problem_class":
            chosen = None if self.problem_class == "not decided" else self.problem_class
            return ChooseClass(chosen, self.says)
        places = tuple(line.strip() for line in self.evidence.splitlines() if line.strip())
        return Write(field, self.says, self.status, places)

    def drafted(self, field: str) -> Drafted:
        return Drafted(field, self.says, self.status, self.evidence, self.problem_class)


class StrikeForm(BaseModel):
    """What the form that strikes a claim sends."""

    key: str
    reason: str


@router.get("/reports/{incident_id:int}", name="report")
def report_page(
    request: Request,
    incident_id: int,
    session: Reading,
    actor: Reader,
    shell: AppShell,
    edit: str = "",
) -> Response:
    document = report_of(session, get_incident(session, incident_id), at=shell.now)
    told = ReportTold.of(document, partial(chip_of, request))
    chosen = document["problem_class"] or "not decided"
    drafted = Drafted(edit, problem_class=chosen) if edit in FIELDS and shell.may_act else None
    elsewhere = SameFaultsTold(same_faults(session, incident_id))
    return render(request, ReportPage(shell, told, drafted, elsewhere))


@router.post("/reports/{incident_id:int}/fields/{field}", name="edit_report")
def edit_report(  # noqa: PLR0913  (what it needs is asked for by name)
    request: Request,
    incident_id: int,
    field: str,
    *,
    form: Annotated[FieldForm, Form()],
    session: Writing,
    actor: Operator,
    shell: AppShell,
) -> Response:
    """Write a claim into a field; on a clash both versions are shown and nothing is applied."""
    if field not in FIELDS:
        raise NotFound(f"The report has no field {field}.")
    incident = get_incident(session, incident_id)
    if form.revision != revision_of(session, incident):
        told = ReportTold.of(report_of(session, incident, at=shell.now), partial(chip_of, request))
        return _clash(request, shell, told, form.drafted(field))
    edit(session, incident, [form.change(field)], revision=None, actor=actor, at=shell.now)
    return done(request, to=f"{_page(request, incident_id)}#{field}")


@router.post("/reports/{incident_id:int}/strike", name="strike_claim")
def strike_claim(
    request: Request,
    incident_id: int,
    form: Annotated[StrikeForm, Form()],
    session: Writing,
    actor: Operator,
    now: Now,
) -> Response:
    """Take a claim back with a reason. It stays in sight, so an older revision does no harm."""
    change = Strike(form.key, form.reason)
    incident = get_incident(session, incident_id)
    edit(session, incident, [change], revision=None, actor=actor, at=now)
    return done(request, to=_page(request, incident_id))


@router.get("/incidents/{incident_id:int}.md", name="incident_markdown")
def incident_markdown(incident_id: int, session: Reading, actor: Reader, now: Now) -> Response:
    document = report_of(session, get_incident(session, incident_id), at=now)
    text = as_markdown(document, _lines(session, incident_id))
    return PlainTextResponse(text, media_type="text/markdown")


@router.get("/incidents/{incident_id:int}.txt", name="incident_text")
def incident_text(incident_id: int, session: Reading, actor: Reader, now: Now) -> Response:
    document = report_of(session, get_incident(session, incident_id), at=now)
    return PlainTextResponse(as_text(document, _lines(session, incident_id)))


@router.get("/incidents/{incident_id:int}.json", name="incident_json")
def incident_json(incident_id: int, session: Reading, actor: Reader, now: Now) -> Response:
    document = report_of(session, get_incident(session, incident_id), at=now)
    moments = [
        {"occurred_at": iso(line.occurred_at), "actor": line.actor, "says": line.says}
        for line in _lines(session, incident_id)
    ]
    return JSONResponse({**document, "timeline": moments})


def _clash(request: Request, shell: AppShell, told: ReportTold, drafted: Drafted) -> Response:
    if not from_htmx(request):
        return render(request, ClashPage(shell, told, drafted), status=409)
    answer = render(request, Clash(told, drafted), status=409)
    answer.headers.update({"HX-Retarget": "#edit", "HX-Reswap": "outerHTML"})
    return answer


def _page(request: Request, incident_id: int) -> str:
    return request.url_for("report", incident_id=incident_id).path


def _lines(session: Session, incident_id: int) -> list[Line]:
    moments = timeline.timeline(session, incident_id, limit=MOST_LINES)
    return [Line(one.occurred_at, one.actor, one.says) for one in moments]
