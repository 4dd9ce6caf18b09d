"""Pages: saying which servers a target is. Proposed by port, confirmed by a person."""

from collections.abc import Sequence
from typing import Annotated

from fastapi import APIRouter, Form, Request, Response
from sqlmodel import Session

from app.errors import Malformed
from app.store.hosts import list_hosts, processes_of
from app.store.target_servers import LinkedServer, Proposal, confirm, unlink
from app.store.targets import get_target
from app.web.answers import done
from app.web.dependencies import Now, Operator, Writing

router = APIRouter(include_in_schema=False)


def others(
    session: Session, linked: Sequence[LinkedServer], proposed: Sequence[Proposal]
) -> list[Proposal]:
    """Servers seen on known hosts that are neither linked to the target nor proposed for it."""
    known = {(one.host.id, one.server.id) for one in linked if one.server}
    known |= {(one.host.id, one.server.id) for one in proposed}
    told = [(host, processes_of(host)) for host in list_hosts(session)]
    return [
        Proposal(host, server, "")
        for host, processes in told
        if processes
        for server in processes.servers
        if (host.id, server.id) not in known
    ]


@router.post("/targets/{target_id:int}/servers", name="link_servers")
def link_servers(
    request: Request,
    target_id: int,
    session: Writing,
    actor: Operator,
    now: Now,
    server: Annotated[list[str] | None, Form(max_length=100)] = None,
) -> Response:
    """Link what was ticked, each told as ``<host id>/<server id>``."""
    target = get_target(session, target_id)
    if not server:
        raise Malformed("No server was chosen.", fix="Tick the servers that this target is.")
    for one in server:
        confirm(session, target, *_chosen(one), actor, now)
    return done(request, request.url_for("target", target_id=target_id).path)


@router.post("/targets/{target_id:int}/servers/unlink", name="unlink_server")
def unlink_server(  # noqa: PLR0913  (one for each field of the form)
    request: Request,
    *,
    target_id: int,
    session: Writing,
    actor: Operator,
    now: Now,
    host_id: Annotated[int, Form(ge=1, lt=2**63)],
    port: Annotated[int, Form(ge=0, lt=2**16)],
) -> Response:
    unlink(session, get_target(session, target_id), host_id, port, actor, now)
    return done(request, request.url_for("target", target_id=target_id).path)


def _chosen(text: str) -> tuple[int, str]:
    host_id, slash, server_id = text.partition("/")
    if not slash or not host_id.isascii() or not host_id.isdecimal() or len(host_id) > 18:
        raise Malformed("This does not name a server.", fix="Choose one from the target's page.")
    return int(host_id), server_id
