"""Puts the page of a dump together: finding, suspects, pictures, facts, and a page of its rows."""

from collections.abc import Iterator, Mapping
from typing import Any, cast

from sqlmodel import Session

from app.domain.dump_words import states_of
from app.domain.dumps.headline import headline
from app.domain.dumps.spread import Spread
from app.store import dump_rows
from app.store.dump_tables import Dump
from app.store.dumps import foremost_dumps, get_dump
from app.store.jobs import get_job
from app.store.targets import topology_told
from app.web import paging
from app.web.dump_pictures import pictures
from app.web.dump_query import PAGE_ROWS, TypedQuery, place_of
from app.web.formats import cut, number, span, visible
from app.web.incident_replays import dump_replays
from app.web.jobs import told
from app.web.views import Shell
from app.web.views.dump_requests import Fact, RequestTold, exactly, moment_of
from app.web.views.dumps import (
    Asked,
    DumpPage,
    DumpTold,
    Inside,
    Sibling,
    SuspectTold,
    Table,
)

MOST_SUSPECTS = 12
MOST_SIBLINGS = 20
MOST_COUNTED = 20_000  # requests of a dump in which a filter is counted at each look
LONGEST_COMMAND_BYTES = 6_000
_MOST_NAMES = 60  # of classes that were kept inert, and of places that were redacted
_WORDS = {"sessions": "session"}  # as the document names a feature, and as a row does
_PENDING = {
    "waiting": "{} waits to be read",
    "reading": "{} is being read",
    "failed": "Reading {} failed",
    "cancelled": "Reading {} was cancelled",
    "purged": "The bytes of {} are purged; this record stays",
}
_COPY_AGAIN = "Copy it from its host once nobody writes to it any more, and attach the new copy."
_LOOK_AT_IT = "Compare its size and SHA-256 with the file on its host, and attach that one."

Document = Mapping[str, Any]


def dump_page(session: Session, shell: Shell, dump_id: int, asked: TypedQuery) -> DumpPage:
    """The page of a dump; raises NotFound, and Malformed for a cursor that is not ours."""
    dump = get_dump(session, dump_id)
    document = dump.document or {}
    shown = DumpTold.of(dump)
    job = get_job(session, dump.job_id) if dump.job_id and shown.at_work else None
    job_told = told(session, job, shell.now) if job else None
    return DumpPage(
        shell=shell,
        dump=shown,
        finding=finding(dump),
        again=asked.again,
        may_act=shell.may_act,
        job=job_told,
        following="events" if job_told and job_told.unfinished else "",
        names_tab=False,
        inside=_inside(dump, document),
        suspects=_suspects(session, dump_id, document),
        suspects_total=len(document.get("suspects") or ()),
        pictures=pictures(_spread(dump), document),
        table=_table(session, dump, document, asked) if shown.is_read and document else None,
        siblings=siblings(session, dump),
        replays=dump_replays(session, dump_id),
    )


def finding(dump: Dump) -> str:
    """The title of a dump's page."""
    pending = _PENDING.get(dump.state)
    told_as = pending.format(dump.name) if pending else headline(dump.document or {}, dump.name)
    return visible(told_as)


def siblings(session: Session, dump: Dump) -> list[Sibling]:
    """The other dumps of its incident that were read, crash dumps first."""
    return [
        Sibling(one.id or 0, visible(one.name), visible(one.says))
        for one in foremost_dumps(session, dump.incident_id, limit=MOST_SIBLINGS)
        if one.id != dump.id and one.state == "ready"
    ]


def _spread(dump: Dump) -> Spread | None:
    """As it was kept; None for a dump that was not read."""
    return cast("Spread", dump.spread) if dump.spread else None


def _suspects(session: Session, dump_id: int, document: Document) -> list[SuspectTold]:
    rows = {row.position: row for row in dump_rows.suspects_of(session, dump_id)}
    found = [one for one in document.get("suspects") or () if one.get("index") in rows]
    return [SuspectTold.of(one, rows[one["index"]]) for one in found[:MOST_SUSPECTS]]


def _table(session: Session, dump: Dump, document: Document, asked: TypedQuery) -> Table:
    assert dump.id is not None
    page = dump_rows.requests_of(
        session,
        dump.id,
        asked.wanted,
        sort=asked.figure,
        descending=asked.descending,
        after=place_of(asked.after),
        limit=PAGE_ROWS,
    )
    following = asked.link(after=paging.encode(page.after)) if page.after else None
    return Table(
        rows=[RequestTold.of(row) for row in page.rows],
        columns=asked.columns(),
        asked=Asked(
            state=asked.state,
            feature=asked.feature,
            suspect=asked.suspect,
            rid=asked.rid,
            sort=asked.sort,
            restricts=asked.restricts,
        ),
        features=_features(document),
        matching=_matching(session, dump, document, asked),
        first=asked.link() if asked.after else None,
        following=following,
    )


def _features(document: Document) -> list[tuple[str, int]]:
    counted = document.get("features") or {}
    return [(_WORDS.get(word, word), count) for word, count in counted.items() if count]


def _matching(session: Session, dump: Dump, document: Document, asked: TypedQuery) -> int | None:
    """How many rows the filter leaves, out of what was counted when the dump was read."""
    wanted, total = asked.wanted, dump.requests_total or 0
    if not asked.restricts:
        return total
    if wanted == dump_rows.Wanted(state=wanted.state):
        return getattr(dump, str(wanted.state)) or 0
    if wanted == dump_rows.Wanted(feature=wanted.feature):
        return dict(_features(document)).get(str(wanted.feature), 0)
    if total > MOST_COUNTED or dump.id is None:
        return None
    return dump_rows.count_of(session, dump.id, wanted)


def _inside(dump: Dump, document: Document) -> Inside:
    command = document.get("launch_command")
    truncated = bool(document.get("truncated"))
    fix = _COPY_AGAIN if truncated else _LOOK_AT_IT
    return Inside(
        facts=list(dump_facts(dump)),
        launch_command=cut(visible(str(command)), LONGEST_COMMAND_BYTES) if command else None,
        blocked=_names(document, "blocked"),
        problems=_names(document, "problems"),
        redacted=_names(document, "redacted"),
        truncated=truncated,
        fix=fix if dump.state == "unreadable" else None,
    )


def _names(document: Document, key: str) -> list[str]:
    return [visible(cut(str(one), 1000)) for one in (document.get(key) or ())[:_MOST_NAMES]]


def dump_facts(dump: Dump) -> Iterator[Fact]:
    """What reading told of the file as a whole; its name alone before that."""
    document = dump.document or {}
    yield Fact("File", f"{visible(dump.name)}, SHA-256 {dump.sha256[:8]}")
    if not document:
        return
    yield Fact("Layout", visible(str(document.get("format") or "not known")))
    topology = document.get("topology") or {}
    alone = "one rank" if topology.get("tp_size") == 1 else None
    for name, value in (
        ("SGLang", document.get("sglang_version")),
        ("Model", document.get("model_path")),
        ("Topology", topology_told(topology) or alone),
    ):
        yield Fact(name, visible(str(value)) if value else "not known")
    yield Fact("Requests", _states(document))
    yield Fact("Came", _came(document))
    if (streaming := document.get("streaming")) is not None:
        yield Fact("Streamed", f"{number(streaming)} of {number(dump.requests_total)}")
    features = [f"{word} {number(count)}" for word, count in _features(document)]
    yield Fact("Features", " · ".join(features) or "none")


def _states(document: Document) -> str:
    names = {"not_recorded": "of unknown state"}
    counts = states_of(document).items()
    parts = [f"{number(count)} {names.get(state, state)}" for state, count in counts]
    return f"{number(document.get('requests_total') or 0)}: {', '.join(parts)}" if parts else "none"


def _came(document: Document) -> str:
    first, last = (moment_of(document.get(f"{one}_started_at")) for one in ("first", "last"))
    if first is None or last is None:
        return "not known"
    rate = document.get("arrival_rate_per_second")
    told_rate = f", {number(rate)} a second" if rate else ""
    length = span(document.get("span_seconds"))
    return f"{first:%-d %b %Y} {exactly(first)} to {exactly(last)} UTC: {length}{told_rate}"
