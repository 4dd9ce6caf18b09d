"""The servers that somebody asked about, by the ids of their processes."""

from collections.abc import Sequence

from app.agent.processes.table import ProcessTable
from app.errors import ConsoleError
from app.protocol.messages import Refusal, Server


def servers_asked_for(
    table: ProcessTable, process_ids: Sequence[str] | None
) -> tuple[list[Server], list[Refusal]]:
    """Each server of *process_ids* once, of None every server that is told.

    Who is gone is refused, and so are those that are not told.
    """
    if process_ids is None:
        told = table.processes()
        return told.servers, [Refusal(kind="too many", reason=told.cut)] if told.cut else []
    servers: dict[str, Server] = {}
    refused = []
    for process_id in process_ids:
        try:
            server = table.server_of(process_id)
        except ConsoleError as error:
            refused.append(Refusal(process_id=process_id, kind="gone", reason=error.what))
        else:
            servers[server.id] = server
    return list(servers.values()), refused
