"""API: uploads in pieces: begin, add, ask how far it is, finish.

``POST`` begins one, ``PATCH`` adds bytes at ``Upload-Offset``, ``HEAD`` tells how many are here,
``POST …/finish`` seals it. After a broken connection or a restart one goes on where HEAD says.
"""

from datetime import datetime
from typing import Annotated

from fastapi import APIRouter, Depends, Header, Request, Response
from fastapi.concurrency import contextmanager_in_threadpool
from pydantic import BaseModel, ConfigDict, Field
from starlette.concurrency import run_in_threadpool

from app.store import database, uploads
from app.store.dump_tables import Upload
from app.store.evidence import get_artifact
from app.store.stores import Stores
from app.store.uploads import Appending, NewUpload
from app.web.api.artifacts import ArtifactOut
from app.web.dependencies import AppStores, Now, Operator, Writing
from app.web.idempotency import IdempotentRoute
from app.web.intake import KnownIncident, page_of
from app.web.uploads import PIECE_BYTES, plain_name

router = APIRouter(prefix="/api/v1", tags=["uploads"], route_class=IdempotentRoute)

OFFSET, LENGTH = "Upload-Offset", "Upload-Length"
_BINARY = {"schema": {"type": "string", "format": "binary"}}
_BYTES = {"requestBody": {"content": {"application/octet-stream": _BINARY}}}


class UploadIn(BaseModel):
    """A file before its first byte. With ``sha256`` what comes is compared with it at the end."""

    model_config = ConfigDict(extra="forbid")

    name: str = Field(min_length=1, max_length=1000)
    size_bytes: int = Field(ge=1, lt=2**63)
    sha256: str | None = Field(default=None, pattern="^[0-9a-f]{64}$")
    media_type: str = Field(default="application/octet-stream", max_length=100)
    tier: str = Field(default="T2", max_length=2)


class UploadOut(BaseModel):
    """An upload under way. ``offset_bytes`` are here; the next piece begins there."""

    id: int
    incident_id: int
    name: str
    size_bytes: int
    offset_bytes: int
    artifact_id: int | None
    begun_by: str
    begun_at: datetime

    @classmethod
    def of(cls, stores: Stores, upload: Upload) -> "UploadOut":
        offset_bytes = uploads.length(stores, upload)
        return cls.model_validate({**upload.model_dump(), "offset_bytes": offset_bytes})


class AttachedOut(ArtifactOut):
    """What became of an upload. ``here_already``: the same bytes had been attached before."""

    here_already: bool
    page: str  # where a person reads on


def _upload(upload_id: int, actor: Operator, stores: AppStores) -> Upload:
    """An upload of whoever asks; the session ends before the first byte is read."""
    with database.reading(stores.engine) as session:
        return uploads.get_upload(session, upload_id, actor=actor)


OwnUpload = Annotated[Upload, Depends(_upload)]


@router.post("/incidents/{incident_id}/uploads", status_code=201)
def begin_upload(
    incident_id: KnownIncident,
    asked: UploadIn,
    stores: AppStores,
    actor: Operator,
    now: Now,
    response: Response,
) -> UploadOut:
    """Begin to send a file in pieces."""
    new = NewUpload(
        incident_id,
        plain_name(asked.name),
        asked.size_bytes,
        asked.sha256,
        asked.media_type,
        asked.tier,
    )
    with database.writing(stores.engine) as session:
        upload = uploads.open_upload(session, stores, new, actor=actor, at=now)
    response.headers["Location"] = f"/api/v1/uploads/{upload.id}"
    return UploadOut.of(stores, upload)


@router.get("/uploads/{upload_id}")
def read_upload(upload: OwnUpload, stores: AppStores) -> UploadOut:
    return UploadOut.of(stores, upload)


@router.head("/uploads/{upload_id}", response_class=Response)
def read_offset(upload: OwnUpload, stores: AppStores) -> Response:
    """How far it is, in the headers Upload-Offset and Upload-Length."""
    told = {OFFSET: str(uploads.length(stores, upload)), LENGTH: str(upload.size_bytes)}
    return Response(headers={**told, "Cache-Control": "no-store"})


@router.patch(
    "/uploads/{upload_id}", status_code=204, response_class=Response, openapi_extra=_BYTES
)
async def add_piece(
    request: Request,
    upload: OwnUpload,
    stores: AppStores,
    now: Now,
    offset: Annotated[int, Header(alias=OFFSET, ge=0)],
) -> Response:
    """Add the body at Upload-Offset. What came before a connection broke is kept."""
    appending = uploads.appending(stores, upload, offset=offset)
    async with contextmanager_in_threadpool(appending) as added:
        await _read(request, added)
    await run_in_threadpool(_touch, stores, upload, now)
    return Response(status_code=204, headers={OFFSET: str(added.length)})


@router.post("/uploads/{upload_id}/finish", status_code=201)
def finish_upload(
    request: Request, upload: OwnUpload, stores: AppStores, actor: Operator, now: Now
) -> AttachedOut:
    """Seal it and attach it to the incident as what it is; asked again, the same answer."""
    taken = uploads.finish(stores, upload, actor=actor, at=now)
    with database.reading(stores.engine) as session:
        artifact = ArtifactOut.of(session, get_artifact(session, taken.artifact_id))
    told = {"here_already": taken.here_already, "page": page_of(request, taken)}
    return AttachedOut.model_validate({**artifact.model_dump(), **told})


@router.delete("/uploads/{upload_id}", status_code=204)
def remove_upload(
    upload: OwnUpload, session: Writing, stores: AppStores, actor: Operator, now: Now
) -> None:
    """Give it up: its pieces are removed. What a finished one became stays."""
    uploads.remove(session, stores, session.merge(upload), actor=actor, at=now)


async def _read(request: Request, added: Appending) -> None:
    waiting = bytearray()
    try:
        async for data in request.stream():
            waiting += data
            if len(waiting) >= PIECE_BYTES:
                piece = bytes(waiting)
                waiting.clear()
                await run_in_threadpool(added.write, piece)
    finally:  # also where the connection broke: it came, so it need not come again
        if waiting:
            await run_in_threadpool(added.write, bytes(waiting))


def _touch(stores: Stores, upload: Upload, now: datetime) -> None:
    with database.writing(stores.engine) as session:
        uploads.touch(session, upload, at=now)
