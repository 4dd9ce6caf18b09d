"""What the agent tells without doing anything: who it is, what runs, what it holds."""

from collections.abc import Sequence
from datetime import datetime
from typing import Annotated

from fastapi import APIRouter, Header, Query, Response

from app.agent.door import guard
from app.agent.evidence.dumps import find_dumps
from app.agent.info import info
from app.agent.kept.pieces import piece, starts_at
from app.agent.parts import DOWNLOAD, ThisAgent, WhoAsked
from app.agent.readiness.preflight import preflight
from app.protocol.messages import (
    MAX_DUMP_FOLDERS,
    MAX_PROCESSES,
    ArtifactId,
    Coredump,
    DumpFolder,
    Dumps,
    FileTaken,
    Info,
    Preflight,
    Processes,
    ProcessId,
    Profile,
)

PREFIX = "/agent/v1"
DumpFolders = Annotated[Sequence[DumpFolder], Query(max_length=MAX_DUMP_FOLDERS)]
ProcessIds = Annotated[list[ProcessId] | None, Query(max_length=MAX_PROCESSES)]
router = APIRouter()


@router.get(guard.ALIVE)
async def alive(agent: ThisAgent) -> dict[str, bool | str]:
    """Unsigned: the name to sign requests with, which is no secret, and nothing else."""
    return {"alive": True, "agent_id": agent.agent_id}


@router.get(guard.METRICS)
def metrics(agent: ThisAgent) -> Response:
    return Response(agent.metrics.text(), media_type="text/plain; version=0.0.4; charset=utf-8")


@router.get(f"{PREFIX}/info")
def get_info(agent: ThisAgent) -> Info:
    return info(agent.state, embedded=agent.embedded)


@router.get(f"{PREFIX}/processes")
def get_processes(agent: ThisAgent) -> Processes:
    return agent.table.processes()


@router.get(f"{PREFIX}/preflight")
def get_preflight(agent: ThisAgent, process_id: ProcessIds = None) -> Preflight:
    return preflight(table=agent.table, files=agent.files, process_ids=process_id)


@router.get(f"{PREFIX}/coredumps")
def list_coredumps(agent: ThisAgent) -> list[Coredump]:
    return agent.coredumps.all()


@router.get(f"{PREFIX}/coredumps/{{coredump_id}}")
def get_coredump(agent: ThisAgent, coredump_id: ArtifactId) -> Coredump:
    return agent.coredumps.get(coredump_id)


@router.get(f"{PREFIX}/profiles/{{profile_id}}")
def get_profile(agent: ThisAgent, profile_id: ArtifactId) -> Profile:
    return agent.profiles.get(profile_id)


@router.get(f"{PREFIX}/dumps")
def list_dumps(agent: ThisAgent, process_id: ProcessIds = None, folder: DumpFolders = ()) -> Dumps:
    return find_dumps(table=agent.table, process_ids=process_id, folders=folder)


@router.get(f"{PREFIX}/artifacts")
def list_artifacts(
    agent: ThisAgent, after: Annotated[datetime | None, Query()] = None
) -> list[FileTaken]:
    return agent.files.listing(after)


@router.get(f"{PREFIX}/artifacts/{{file_id}}")
def get_artifact(
    agent: ThisAgent,
    asked: WhoAsked,
    file_id: ArtifactId,
    byte_range: Annotated[str | None, Header(alias="range")] = None,
) -> Response:
    """A piece of at most 8 MiB; the first one of a download is written down."""
    if starts_at(byte_range) > 0:
        return piece(agent.files, file_id, byte_range)
    with agent.acting(asked, DOWNLOAD) as act:
        act.files.append(agent.files.find(file_id))
        return piece(agent.files, file_id, byte_range)
