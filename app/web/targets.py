"""Pages: targets. An admin registers and edits; everybody signed in looks."""

from typing import Annotated

from fastapi import APIRouter, Depends, Form, Request, Response

from app.domain.counting import counted
from app.store import database
from app.store.incidents import incidents_of_target
from app.store.tables import Target
from app.store.target_servers import proposals, servers_of
from app.store.targets import (
    bundles_of_target,
    get_target,
    headers_of,
    list_targets,
    register_target,
)
from app.web import linking
from app.web.answers import done
from app.web.connection_check import check_and_note
from app.web.dependencies import Admin, AppShell, AppStores, Now, Operator, Reader, Reading
from app.web.recordings import recording_told
from app.web.registering import AtTargets
from app.web.render import render
from app.web.target_form import TypedTarget, labels_told
from app.web.views.targets import Seen, TargetForm, TargetPage, TargetRow, TargetsPage

RECENT = 10

router = APIRouter(include_in_schema=False)
router.include_router(linking.router)


def _for_reading(target_id: int, session: Reading) -> Target:
    return get_target(session, target_id)


CurrentTarget = Annotated[Target, Depends(_for_reading)]
Typed = Annotated[TypedTarget, Form()]


def _registered(stores: AppStores, actor: Admin, now: Now, typed: Typed) -> int:
    """Committed before the check begins: no lock is held while a target is asked."""
    with database.writing(stores.engine) as session:
        new = typed.as_new()
        target = register_target(session, new, vault=stores.vault, actor=actor, at=now)
    assert target.id is not None
    return target.id


Registered = Annotated[int, Depends(_registered)]


@router.get("/targets", name="targets")
def targets_page(request: Request, shell: AppShell, actor: Reader, session: Reading) -> Response:
    rows = [TargetRow(one, Seen.of(one, shell.now)) for one in list_targets(session)]
    rows.sort(key=lambda row: ("bad", "unknown", "warn", "good").index(row.seen.level))
    page = TargetsPage(shell=shell, rows=rows, finding=_finding(rows), now=shell.now)
    return render(request, page)


@router.get("/targets/new", name="new_target")
def new_target_page(request: Request, shell: AppShell, actor: Admin) -> Response:
    return render(request, TargetForm(shell=shell, target=None, header_names=(), labels=""))


@router.post("/targets/new", name="register_target")
async def register(
    request: Request, target_id: Registered, stores: AppStores, typed: Typed, now: Now
) -> Response:
    """The target is kept whether or not the check that was asked for finds it."""
    if typed.check:
        await check_and_note(stores, target_id, now)
    return done(request, _page(request, target_id))


@router.get("/targets/{target_id:int}", name="target")
def target_page(
    request: Request,
    shell: AppShell,
    actor: Reader,
    target: CurrentTarget,
    session: Reading,
    stores: AppStores,
) -> Response:
    assert target.id is not None
    linked, proposed = servers_of(session, target), proposals(session, target)
    page = TargetPage(
        shell=shell,
        target=target,
        seen=Seen.of(target, shell.now),
        header_names=sorted(headers_of(target, stores.vault)),
        bundles=bundles_of_target(session, target.id, limit=RECENT),
        incidents=incidents_of_target(session, target.id, limit=RECENT),
        linked=linked,
        proposed=proposed,
        others=linking.others(session, linked, proposed),
        recording=recording_told(session, target),
        now=shell.now,
    )
    return render(request, page)


@router.get("/targets/{target_id:int}/edit", name="edit_target")
def edit_target_page(
    request: Request, shell: AppShell, actor: Admin, target: CurrentTarget, stores: AppStores
) -> Response:
    page = TargetForm(
        shell=shell,
        target=target,
        header_names=sorted(headers_of(target, stores.vault)),
        labels=labels_told(target.labels),
    )
    return render(request, page)


@router.post("/targets/{target_id:int}/edit", name="change_target")
def change(request: Request, target_id: int, admin: AtTargets, typed: Typed) -> Response:
    admin.change(target_id, typed.as_changes())
    return done(request, _page(request, target_id))


@router.post("/targets/{target_id:int}/delete", name="delete_target")
def delete(request: Request, target_id: int, admin: AtTargets) -> Response:
    admin.delete(target_id)
    return done(request, request.url_for("targets").path)


@router.post("/targets/{target_id:int}/check", name="check_target")
async def check(
    request: Request, target_id: int, actor: Operator, stores: AppStores, now: Now
) -> Response:
    await check_and_note(stores, target_id, now)
    return done(request, _page(request, target_id))


def _finding(rows: list[TargetRow]) -> str:
    if not rows:
        return "No target is registered"
    bad = sum(row.seen.level == "bad" for row in rows)
    good = sum(row.seen.level == "good" for row in rows)
    if bad:
        return f"{bad} of {counted(len(rows), 'target')} did not serve when last asked"
    if not good:
        return f"None of {counted(len(rows), 'target')} was ever found to serve"
    return f"{good} of {counted(len(rows), 'target')} served when last asked"


def _page(request: Request, target_id: int | None) -> str:
    return request.url_for("target", target_id=target_id).path
