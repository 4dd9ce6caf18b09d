"""Pages: one artifact and its custody; attaching, downloading, comparing and purging it."""

from typing import Annotated

from fastapi import APIRouter, Form, Header, Request, Response

from app.errors import Conflict, Damaged, Forbidden
from app.store import audit, database
from app.store.audit import Actor
from app.store.bundles import bundle_of_artifact
from app.store.dumps import dump_of_artifact
from app.store.evidence import get_artifact, purge, verify
from app.store.stores import Stores
from app.store.tables import Artifact
from app.web.answers import done
from app.web.dependencies import (
    RANKS,
    Admin,
    AppShell,
    AppStores,
    Now,
    Operator,
    Reader,
    Reading,
)
from app.web.downloads import download
from app.web.intake import Attached, page_of
from app.web.render import render
from app.web.views.artifacts import ArtifactPage, Custody

router = APIRouter(include_in_schema=False)

RAW = "T2"


def may_read(actor: Actor, artifact: Artifact) -> bool:
    """Raw evidence is for operators; shapes and redacted text are for everyone signed in."""
    return artifact.tier != RAW or RANKS[actor.role] >= RANKS["operator"]


def opened(
    stores: Stores, artifact_id: int, *, actor: Actor, now: Now, span: str | None, fresh: str | None
) -> Response:
    """The artifact as a download; reading raw evidence leaves a line in the audit log."""
    with database.reading(stores.engine) as session:
        artifact = get_artifact(session, artifact_id)
    if not may_read(actor, artifact):
        raise Forbidden(
            "This artifact is raw evidence.",
            why="It may hold prompts, keys and names.",
            fix="An operator may read it.",
        )
    if artifact.purged_at:
        raise Conflict(
            f"The bytes of {artifact.name} are purged.", why=artifact.purge_reason, fix=None
        )
    if artifact.tier == RAW:
        with database.writing(stores.engine) as session:
            subject = f"artifact:{artifact_id}"
            audit.note(session, actor, "artifact.read", subject, at=now, range=span)
    name = artifact.name
    try:
        return download(stores.artifacts, artifact.sha256, name=name, span=span, if_range=fresh)
    except Damaged:
        verify(stores, artifact_id, at=now)  # notes what was found
        raise


@router.get("/artifacts/{artifact_id}", name="artifact")
def artifact_page(
    request: Request, artifact_id: int, session: Reading, actor: Reader, shell: AppShell
) -> Response:
    artifact = get_artifact(session, artifact_id)
    dump = dump_of_artifact(session, artifact_id)
    custody = Custody.of(
        artifact,
        bundle_id=bundle_of_artifact(session, artifact_id),
        dump_id=dump.id if dump else None,
    )
    return render(request, ArtifactPage(shell, custody, may_read(actor, artifact)))


@router.get("/artifacts/{artifact_id}/content", name="artifact_content")
def artifact_content(
    artifact_id: int,
    stores: AppStores,
    actor: Reader,
    now: Now,
    span: Annotated[str | None, Header(alias="Range")] = None,
    if_range: Annotated[str | None, Header()] = None,
) -> Response:
    return opened(stores, artifact_id, actor=actor, now=now, span=span, fresh=if_range)


@router.post("/incidents/{incident_id}/artifacts", name="attach_artifact")
def attach_artifact(request: Request, attached: Attached) -> Response:
    """Keep the file of the form; a bundle or dump that is recognised is opened at once."""
    return done(request, to=page_of(request, attached))


@router.post("/artifacts/{artifact_id}/verify", name="verify_artifact")
def verify_artifact(
    request: Request, artifact_id: int, stores: AppStores, actor: Operator, now: Now
) -> Response:
    verify(stores, artifact_id, at=now)
    return done(request, to=request.url_for("artifact", artifact_id=artifact_id).path)


@router.post("/artifacts/{artifact_id}/purge", name="purge_artifact")
def purge_artifact(
    request: Request,
    artifact_id: int,
    stores: AppStores,
    actor: Admin,
    now: Now,
    reason: Annotated[str, Form(min_length=3, max_length=300)],
) -> Response:
    """Remove the bytes; the record stays as a tombstone with the reason."""
    purge(stores, artifact_id, actor=actor, reason=reason, at=now)
    return done(request, to=request.url_for("artifact", artifact_id=artifact_id).path)
