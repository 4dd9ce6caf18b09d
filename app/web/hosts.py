"""Pages: hosts and what can be captured there. An admin registers; everybody signed in looks."""

from typing import Annotated

from fastapi import APIRouter, Form, Request, Response

from app.domain.counting import counted
from app.store import live
from app.store.hosts import get_host, list_hosts, register_host, remove_host
from app.web.answers import done
from app.web.dependencies import Admin, AppShell, AppStores, Now, Operator, Reader, Reading, Writing
from app.web.host_form import TypedHost
from app.web.host_page import host_page
from app.web.render import render
from app.web.views.hosts import HostsPage, HostTold, NewHostPage

router = APIRouter(include_in_schema=False)


@router.get("/hosts", name="hosts")
def hosts_page(request: Request, shell: AppShell, actor: Reader, session: Reading) -> Response:
    rows = [HostTold.of(host, shell.now) for host in list_hosts(session)]
    rows.sort(key=lambda row: ("bad", "unknown", "good", "quiet").index(row.level))
    page = HostsPage(shell=shell, rows=rows, finding=_finding(rows), now=shell.now)
    return render(request, page)


@router.get("/hosts/new", name="new_host")
def new_host_page(request: Request, shell: AppShell, actor: Admin) -> Response:
    return render(request, NewHostPage(shell=shell))


@router.post("/hosts/new", name="register_host")
def register(
    request: Request,
    actor: Admin,
    session: Writing,
    stores: AppStores,
    now: Now,
    typed: Annotated[TypedHost, Form()],
) -> Response:
    """The agent is asked for the first time by the next beat, a few seconds later."""
    host = register_host(session, typed.as_new(), vault=stores.vault, actor=actor, at=now)
    return done(request, request.url_for("host", host_id=host.id).path)


@router.get("/hosts/{host_id:int}", name="host")
def show_host(
    request: Request, host_id: int, shell: AppShell, actor: Reader, session: Reading
) -> Response:
    return render(request, host_page(session, shell, get_host(session, host_id)))


@router.post("/hosts/{host_id:int}/ask", name="ask_host")
def ask_again(request: Request, host_id: int, stores: AppStores, actor: Operator) -> Response:
    """Have its agent look anew; the page then tells what it found, or why it is silent."""
    live.ask(stores, host_id, actor)
    return done(request, request.url_for("host", host_id=host_id).path)


@router.post("/hosts/{host_id:int}/remove", name="remove_host")
def remove(request: Request, host_id: int, actor: Admin, session: Writing, now: Now) -> Response:
    remove_host(session, get_host(session, host_id), actor, now)
    return done(request, request.url_for("hosts").path)


def _finding(rows: list[HostTold]) -> str:
    if not rows:
        return "No host is registered"
    silent = [row.name for row in rows if row.level == "bad"]
    if silent:
        hosts = counted(len(rows), "host does", "hosts do")
        return f"{len(silent)} of {hosts} not answer: {', '.join(silent[:3])}"
    heard = sum(row.level == "good" for row in rows)
    return f"{heard} of {counted(len(rows), 'host answers', 'hosts answer')}"
