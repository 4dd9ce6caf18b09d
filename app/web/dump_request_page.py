"""Puts the page of one recorded request together."""

from collections.abc import Mapping
from typing import Any

from sqlmodel import Session

from app.store import dump_rows
from app.store.dump_rows import Wanted
from app.store.dump_tables import Dump, DumpRequest
from app.store.dumps import read_dump
from app.web.dump_page import siblings
from app.web.formats import visible
from app.web.views import Shell
from app.web.views.dump_request import Elsewhere, RequestPage, Unsealed
from app.web.views.dump_requests import RequestTold, facts_of, parameters_of, problems_of
from app.web.views.dumps import DumpTold

AROUND = 4  # requests before and after it


def request_page(
    session: Session, shell: Shell, dump_id: int, index: int, *, unsealed: Unsealed | None = None
) -> RequestPage:
    """The page of one request; raises NotFound, and Conflict for a dump that was not read."""
    dump = read_dump(session, dump_id)
    row = dump_rows.request_at(session, dump_id, index)
    request = RequestTold.of(row)
    return RequestPage(
        shell=shell,
        dump=DumpTold.of(dump),
        recorded=request,
        finding=_finding(request),
        why=_why(dump.document or {}, index),
        facts=facts_of(row),
        parameters=parameters_of(row),
        problems=problems_of(row),
        around=_around(session, row),
        elsewhere=_elsewhere(session, dump, row),
        unsealed=unsealed,
    )


def _finding(request: RequestTold) -> str:
    took = "" if request.took == "not known" else f" after {request.took.partition(',')[0]}"
    state = {
        "unfinished": f"was unfinished{took}",
        "finished": f"finished{took}",
        "aborted": f"was aborted{took}",
    }.get(request.state, "is of unknown state")
    size = "" if request.prompt == "not known" else f", a prompt of {request.prompt}"
    return f"Request {request.index} {state}{size}"


def _why(document: Mapping[str, Any], index: int) -> str | None:
    """Why it is a suspect; None where it is none."""
    suspects = document.get("suspects") or ()
    why = next((one.get("why") for one in suspects if one.get("index") == index), None)
    return visible(str(why)) if why else None


def _around(session: Session, row: DumpRequest) -> list[RequestTold]:
    """Those that came just before and just after; none where its time is not known."""
    if row.started_at is None:
        return []
    place = (row.started_at, row.position)
    before, after = (
        dump_rows.requests_of(
            session, row.dump_id, sort="started_at", descending=back, after=place, limit=AROUND
        ).rows
        for back in (True, False)
    )
    known = [one for one in (*reversed(before), row, *after) if one.started_at is not None]
    return [RequestTold.of(one) for one in known]


def _elsewhere(session: Session, dump: Dump, row: DumpRequest) -> list[Elsewhere]:
    if not row.rid:
        return []
    found = []
    for other in siblings(session, dump):
        page = dump_rows.requests_of(session, other.id, Wanted(rid=row.rid), limit=1)
        found += [Elsewhere(other.id, other.name, RequestTold.of(one)) for one in page.rows]
    return found
