"""Pages: one bundle while it lands and when it is whole, and what changed in it."""

from typing import Annotated

from fastapi import APIRouter, Form, Request, Response

from app.domain.playbook import Probe
from app.store.bundles import captures_of, get_bundle
from app.web import captures
from app.web.answers import done
from app.web.bundle_page import COLLECTING, bundle_page, changes, in_order, told_of
from app.web.collecting import LONGEST_SECONDS, SHORTEST_SECONDS, collect
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
from app.web.render import render
from app.web.views.bundle_told import DiffTold
from app.web.views.bundles import BundleAnswers, DiffPage, answers_of

router = APIRouter(include_in_schema=False)
router.include_router(captures.router)


@router.get("/bundles/{bundle_id}", name="bundle")
def show_bundle(
    request: Request,
    bundle_id: int,
    session: Reading,
    stores: AppStores,
    actor: Reader,
    shell: AppShell,
) -> Response:
    row = get_bundle(session, bundle_id)
    return render(request, bundle_page(session, stores.artifacts, row, shell))


@router.get("/bundles/{bundle_id}/answers", name="bundle_answers")
def bundle_answers(request: Request, bundle_id: int, session: Reading, actor: Reader) -> Response:
    """What answered so far; when there is nothing more to come, the page is loaded anew."""
    row = get_bundle(session, bundle_id)
    live = row.state == COLLECTING
    view = BundleAnswers(
        bundle=told_of(session, row),
        answers=answers_of(row, captures_of(session, bundle_id)),
        live=live,
        may_act=RANKS[actor.role] >= RANKS["operator"],
    )
    answer = render(request, view)
    if not live:
        answer.headers["HX-Refresh"] = "true"
    return answer


@router.get("/bundles/{bundle_id}/diff/{other_id}", name="bundle_diff")
def bundle_diff(  # noqa: PLR0913  (what it needs is asked for by name)
    request: Request,
    *,
    bundle_id: int,
    other_id: int,
    session: Reading,
    stores: AppStores,
    actor: Reader,
    shell: AppShell,
) -> Response:
    before, after = in_order(get_bundle(session, bundle_id), get_bundle(session, other_id))
    document = changes(session, stores.artifacts, before, after)
    view = DiffPage(
        shell=shell,
        before=told_of(session, before),
        after=told_of(session, after),
        diff=DiffTold.of(before, after, document, heading="Configuration"),
    )
    return render(request, view)


@router.post("/incidents/{incident_id}/bundles", name="collect_bundle")
def collect_bundle(  # noqa: PLR0913  (one for each field of the form)
    request: Request,
    *,
    incident_id: int,
    session: Writing,
    stores: AppStores,
    actor: Operator,
    now: Now,
    target_id: Annotated[int | None, Form()] = None,
    probe: Annotated[Probe, Form()] = "auto",
    interval_seconds: Annotated[float, Form(ge=SHORTEST_SECONDS, le=LONGEST_SECONDS)] = 10.0,
) -> Response:
    """Ask for a bundle, and show it while its answers land."""
    _, row = collect(
        session,
        stores,
        incident_id,
        target_id=target_id,
        probe=probe,
        interval_seconds=interval_seconds,
        actor=actor,
        at=now,
    )
    return done(request, to=request.url_for("bundle", bundle_id=row.id).path)
