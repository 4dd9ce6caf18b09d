"""API: dumps: what is in them, their requests, and the text of one request for a reason."""

from datetime import datetime
from typing import Annotated, Any, Literal

from fastapi import APIRouter, Query
from pydantic import BaseModel, ConfigDict, Field

from app.store import dump_rows
from app.store.dump_rows import Sort, Wanted, row_of
from app.store.dump_tables import Dump, DumpRequest
from app.store.dumps import dumps_of, get_dump, read_dump
from app.store.incidents import get_incident
from app.store.unsealing import Tier, unseal
from app.web import paging
from app.web.dependencies import AppStores, Now, Operator, Reader, Reading
from app.web.dump_query import place_of

# No IdempotentRoute: it would keep the text of a request that was unsealed.
router = APIRouter(prefix="/api/v1", tags=["dumps"])

State = Literal["finished", "unfinished", "aborted"]
Sorting = Literal[
    "index", "prompt_tokens", "completion_tokens", "started_at", "elapsed_seconds",
    "-index", "-prompt_tokens", "-completion_tokens", "-started_at", "-elapsed_seconds",
]  # fmt: skip


class DumpOut(BaseModel):
    """A dump. Counts are null until it is read, and where the file does not tell."""

    model_config = ConfigDict(from_attributes=True)

    id: int
    incident_id: int
    artifact_id: int
    job_id: int | None
    name: str
    sha256: str
    state: str
    kind: str | None
    says: str
    added_by: str
    added_at: datetime
    read_at: datetime | None
    requests_total: int | None
    finished: int | None
    unfinished: int | None
    aborted: int | None
    sglang_version: str | None
    model_path: str | None


class DumpsOut(BaseModel):
    """The dumps of one incident, newest first."""

    items: list[DumpOut]
    next_cursor: None = None


class SuspectOut(BaseModel):
    """A request to look at first. ``trigger``: how sure it is that it was one; null: not said."""

    model_config = ConfigDict(extra="allow")

    index: int
    rid: str | None
    why: str
    trigger: str | None = None


class DumpDocument(DumpOut):
    """With what ``dump summarize --json`` tells, once it is read; requests are listed apart."""

    model_config = ConfigDict(from_attributes=True, extra="allow")

    file: str | None = None
    format: str | None = None
    topology: Any = None
    launch_command: str | None = None
    span_seconds: float | None = None
    arrival_rate_per_second: float | None = None
    prompt_tokens: dict[str, Any] | None = None
    completion_tokens: dict[str, Any] | None = None
    streaming: Any = None
    features: dict[str, Any] | None = None
    suspects: list[SuspectOut] = []
    blocked: list[str] = []
    problems: list[str] = []
    truncated: bool | None = None
    redacted: list[Any] = []


class RequestOut(BaseModel):
    """A request by its shape (T0). Times are seconds since 1970, as recorded."""

    index: int
    rid: str | None
    state: str | None
    endpoint: str
    prompt_tokens: int | None
    completion_tokens: int | None
    cached_tokens: int | None
    prompt_characters: int | None
    stream: bool | None
    started_at: float | None
    finished_at: float | None
    elapsed_seconds: float | None
    finish_reason: str | None
    sampling: dict[str, Any]
    features: list[str]
    problems: list[str]
    suspect_rank: int | None  # from 0, the most telling; null: it is no suspect

    @classmethod
    def of(cls, row: DumpRequest) -> "RequestOut":
        return cls.model_validate({**row_of(row), "suspect_rank": row.suspect_rank})


class RequestsOut(BaseModel):
    """A page of requests. Those that do not know the figure sorted by come last."""

    items: list[RequestOut]
    next_cursor: str | None


class RequestsAsked(BaseModel):
    """Which requests, in which order. ``-`` before a figure: the largest first."""

    model_config = ConfigDict(extra="forbid")

    state: State | None = None
    feature: str | None = Field(default=None, max_length=60, pattern="^[a-z0-9-]+$")
    rid: str | None = Field(default=None, max_length=200)
    suspect: bool = Field(default=False, description="Suspects only.")
    sort: Sorting = "index"
    limit: int = Field(default=50, ge=1, le=paging.MAX_LIMIT, description="At most so many items.")
    cursor: str | None = Field(
        default=None, max_length=400, description="next_cursor of the page before."
    )


class UnsealIn(BaseModel):
    """Which text, and why it is needed: kept in the audit log."""

    model_config = ConfigDict(extra="forbid")

    tier: Tier
    reason: str = Field(min_length=3, max_length=300)


class UnsealedOut(BaseModel):
    """The line of ``dump export`` for one request, at the tier asked for."""

    tier: Tier
    request: dict[str, Any]


@router.get("/incidents/{incident_id}/dumps")
def list_dumps(incident_id: int, session: Reading, actor: Reader) -> DumpsOut:
    get_incident(session, incident_id)
    found = dumps_of(session, incident_id)
    return DumpsOut(items=[DumpOut.model_validate(dump) for dump in found])


@router.get("/dumps/{dump_id}")
def read_document(dump_id: int, session: Reading, actor: Reader) -> DumpDocument:
    """State and counts, and the document of ``dump summarize --json`` once it is read."""
    dump = get_dump(session, dump_id)
    return DumpDocument.model_validate({**(dump.document or {}), **_told(dump)})


@router.get("/dumps/{dump_id}/requests")
def list_requests(
    dump_id: int, asked: Annotated[RequestsAsked, Query()], session: Reading, actor: Reader
) -> RequestsOut:
    """The requests of a dump that was read, by their shape; a conflict before that."""
    read_dump(session, dump_id)
    page = dump_rows.requests_of(
        session,
        dump_id,
        Wanted(asked.state, asked.feature, asked.rid, asked.suspect),
        sort=_figure(asked.sort),
        descending=asked.sort.startswith("-"),
        after=place_of(asked.cursor or ""),
        limit=asked.limit,
    )
    return RequestsOut(
        items=[RequestOut.of(row) for row in page.rows],
        next_cursor=paging.encode(page.after) if page.after else None,
    )


@router.get("/dumps/{dump_id}/requests/{index}")
def read_request(dump_id: int, index: int, session: Reading, actor: Reader) -> RequestOut:
    """One request by its shape."""
    read_dump(session, dump_id)
    return RequestOut.of(dump_rows.request_at(session, dump_id, index))


@router.post("/dumps/{dump_id}/requests/{index}/unseal")
def unseal_request(
    dump_id: int, index: int, asked: UnsealIn, stores: AppStores, actor: Operator, now: Now
) -> UnsealedOut:
    """Payload and answer: redacted at T1, as recorded at T2. Who asked and why is noted first."""
    request = unseal(
        stores, dump_id, index, tier=asked.tier, reason=asked.reason, actor=actor, at=now
    )
    return UnsealedOut(tier=asked.tier, request=dict(request))


def _told(dump: Dump) -> dict[str, Any]:
    return DumpOut.model_validate(dump).model_dump()


def _figure(sort: Sorting) -> Sort:
    figure = sort.removeprefix("-")
    return next(one for one in dump_rows.SORTS if one == figure)
