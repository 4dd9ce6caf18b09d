"""Pages: two dumps beside each other, and the requests that are in both."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Annotated

from fastapi import APIRouter, Depends, Query, Request, Response
from sqlmodel import Session

from app.domain.counting import counted
from app.errors import Rejected
from app.store.dump_rows import Shared, count_shared, shared_requests
from app.store.dump_tables import Dump
from app.store.dumps import read_dump
from app.web.dependencies import AppShell, Reader, Reading
from app.web.dump_page import MOST_COUNTED, dump_facts
from app.web.formats import visible
from app.web.render import render
from app.web.views.dump_choice import Beside, ComparisonPage, SharedTold
from app.web.views.dump_requests import RequestTold
from app.web.views.dumps import DumpTold

PAGE_ROWS = 50
_NOT_COMPARED = ("File", "Requests", "Came", "Streamed", "Features")  # of course they differ

router = APIRouter(include_in_schema=False)


@dataclass(frozen=True, slots=True)
class Pair:
    """Two dumps that were read."""

    one: Dump
    other: Dump

    @property
    def ids(self) -> tuple[int, int]:
        return self.one.id or 0, self.other.id or 0


def _pair(dump_id: int, other_id: int, actor: Reader, session: Reading) -> Pair:
    if dump_id == other_id:
        raise Rejected("A dump is not compared with itself.", fix="Choose another one.")
    return Pair(read_dump(session, dump_id), read_dump(session, other_id))


@router.get("/dumps/{dump_id:int}/compare/{other_id:int}", name="dump_comparison")
def compare_dumps(
    request: Request,
    pair: Annotated[Pair, Depends(_pair)],
    session: Reading,
    shell: AppShell,
    after: Annotated[int, Query(ge=-1, lt=2**63)] = -1,
) -> Response:
    """Requests are matched by their identifiers; the ones unfinished both times come first."""
    one, other = pair.one, pair.other
    most = PAGE_ROWS + 1
    first = [*map(_told, shared_requests(session, *pair.ids, state="unfinished", limit=most))]
    rows = [*map(_told, shared_requests(session, *pair.ids, after=after, limit=most))]
    shown = _whole(rows)
    page = ComparisonPage(
        shell=shell,
        one=DumpTold.of(one),
        other=DumpTold.of(other),
        finding=_finding(first, rows),
        facts=list(_beside(one, other)),
        both_unfinished=first[:PAGE_ROWS],
        more_unfinished=len(first) > PAGE_ROWS,
        shared=_count(session, pair),
        rows=shown,
        following=f"?after={shown[-1].one.index}" if len(rows) > PAGE_ROWS else None,
    )
    return render(request, page)


def _whole(rows: Sequence[SharedTold]) -> Sequence[SharedTold]:
    """A page that does not end among the pairs of one request: the next begins behind it."""
    if len(rows) <= PAGE_ROWS:
        return rows
    cut = rows[PAGE_ROWS].one.index
    return [row for row in rows if row.one.index != cut] or rows[:PAGE_ROWS]


def _told(pair: Shared) -> SharedTold:
    return SharedTold(visible(pair.rid), RequestTold.of(pair.one), RequestTold.of(pair.other))


def _count(session: Session, pair: Pair) -> int | None:
    """None where one is too large for that at each look."""
    if max(one.requests_total or 0 for one in (pair.one, pair.other)) > MOST_COUNTED:
        return None
    return count_shared(session, *pair.ids)


def _finding(unfinished: Sequence[SharedTold], rows: Sequence[SharedTold]) -> str:
    if not rows:
        return "No request is in both dumps, by its identifier"
    if not unfinished:
        return "No request was unfinished in both dumps"
    some = f"more than {PAGE_ROWS} requests" if len(unfinished) > PAGE_ROWS else ""
    were = "was" if len(unfinished) == 1 else "were"
    told = some or counted(len(unfinished), "request")
    return f"{told[0].upper()}{told[1:]} {were} unfinished in both dumps"


def _beside(one: Dump, other: Dump) -> Iterator[Beside]:
    mine, theirs = ({fact.name: fact for fact in dump_facts(dump)} for dump in (one, other))
    for name, fact in mine.items():
        if name in theirs:
            known = "not known" not in (fact.value, theirs[name].value)
            differs = known and name not in _NOT_COMPARED and fact.value != theirs[name].value
            yield Beside(name, fact, theirs[name], differs=differs)
