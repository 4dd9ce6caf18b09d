"""Pages: a CPU profile as a flame graph, in the speedscope that comes with the console.

Speedscope runs in a page of its own that has a policy of its own: its two scripts and nothing
else may run, and nothing is loaded from elsewhere. What a profile holds is drawn as text.
"""

import secrets
from typing import Annotated

from fastapi import APIRouter, Header, Request, Response

from app.errors import NotFound, TooLarge
from app.store import database
from app.store.diagnostics import item_of_artifact
from app.store.evidence import get_artifact
from app.store.tables import Artifact
from app.web.artifacts import may_read, opened
from app.web.dependencies import AppShell, AppStores, Now, Reader, Reading
from app.web.render import render
from app.web.views.artifacts import Custody, is_profile
from app.web.views.flames import (
    MOST_PROFILE_BYTES,
    SLOW_BYTES,
    FlamePage,
    FlameView,
    flame_finding,
    why_not_shown,
)

# Speedscope makes one style element, empty, and fills it by script: the hash is that of "".
# WebAssembly takes C++ names apart; it is compiled from bytes within the script.
_POLICY = (
    "default-src 'none'; script-src 'nonce-{nonce}' 'wasm-unsafe-eval'; "
    "style-src 'nonce-{nonce}' 'sha256-47DEQpj8HBSa+/TImW+5JCeuQeRkm5NMpJWZG3hSuFU='; "
    "font-src 'self'; img-src data:; connect-src 'self'; "
    "base-uri 'none'; form-action 'none'; frame-ancestors 'self'"
)

router = APIRouter(include_in_schema=False)


@router.get("/artifacts/{artifact_id:int}/flame", name="flame")
def flame_page(
    request: Request, artifact_id: int, session: Reading, actor: Reader, shell: AppShell
) -> Response:
    artifact = _profile(get_artifact(session, artifact_id))
    item = item_of_artifact(session, artifact_id)
    readable = may_read(actor, artifact)
    page = FlamePage(
        shell,
        artifact=Custody.of(artifact, bundle_id=None, dump_id=None),
        finding=flame_finding(artifact, item),
        diagnostic_id=item.diagnostic_id if item else None,
        may_download=readable and not artifact.purged_at,
        slow=artifact.size_bytes > SLOW_BYTES,
        why_not=why_not_shown(artifact, may_read=readable),
    )
    return render(request, page)


@router.get("/artifacts/{artifact_id:int}/flame/speedscope", name="speedscope")
def speedscope(request: Request, artifact_id: int, session: Reading, actor: Reader) -> Response:
    """Speedscope alone; it asks for the profile of this artifact by itself."""
    _profile(get_artifact(session, artifact_id))
    nonce = secrets.token_urlsafe(16)
    answer = render(request, FlameView(artifact_id, nonce))
    answer.headers["Content-Security-Policy"] = _POLICY.format(nonce=nonce)
    return answer


@router.get("/artifacts/{artifact_id:int}/flame/profile.speedscope.json", name="flame_profile")
def flame_profile(
    artifact_id: int,
    stores: AppStores,
    actor: Reader,
    now: Now,
    span: Annotated[str | None, Header(alias="Range")] = None,
    if_range: Annotated[str | None, Header()] = None,
) -> Response:
    """The profile as the download has it. By this name speedscope reads its own format only."""
    with database.reading(stores.engine) as session:
        artifact = _profile(get_artifact(session, artifact_id))
    if artifact.size_bytes > MOST_PROFILE_BYTES:
        raise TooLarge(
            f"{artifact.name} is too large to be shown.", fix="Download it from its own page."
        )
    return opened(stores, artifact_id, actor=actor, now=now, span=span, fresh=if_range)


def _profile(artifact: Artifact) -> Artifact:
    """Raises NotFound for what is no profile."""
    if not is_profile(artifact):
        raise NotFound(
            f"Artifact {artifact.id} is no CPU profile.", fix="Open its own page instead."
        )
    return artifact
