"""What the agent does on this host. Each request is written down before and after."""

from typing import Annotated

from fastapi import APIRouter, Query
from pydantic import BaseModel

from app.agent.evidence.dumps import fetch_dump
from app.agent.evidence.facts import host_facts
from app.agent.evidence.flight_recorder import read_flight_recorder
from app.agent.evidence.ras import read_ras
from app.agent.parts import ThisAgent, WhoAsked
from app.agent.routes import PREFIX, DumpFolders, ProcessIds
from app.agent.stacks.take import take_stacks
from app.protocol.messages import (
    ArtifactId,
    Coredump,
    CoredumpRequest,
    DumpFound,
    FileTaken,
    HostFacts,
    ProcessId,
    Profile,
    ProfileRequest,
    RasAnswer,
    StacksAnswer,
    StacksRequest,
)

router = APIRouter(prefix=PREFIX)


class FlightRecorderRequest(BaseModel):
    """``POST /agent/v1/flight-recorders``."""

    process_id: ProcessId


@router.post("/stacks")
def stacks(agent: ThisAgent, asked: WhoAsked, request: StacksRequest) -> StacksAnswer:
    with agent.acting(asked, "stacks", *request.process_ids) as act:
        answer = take_stacks(
            request,
            table=agent.table,
            holds=agent.holds,
            files=agent.files,
            cancel=agent.stopping,
        )
        act.files.extend(sample.file for sample in answer.done)
        act.result = f"{len(answer.done)} taken, {len(answer.refused)} refused"
    return answer


@router.post("/coredumps")
def trigger_coredump(agent: ThisAgent, asked: WhoAsked, request: CoredumpRequest) -> Coredump:
    with agent.acting(asked, "coredump", request.process_id) as act:
        coredump = agent.coredumps.trigger(request)
        act.result = f"{coredump.state}: {coredump.says}"
    return coredump


@router.post("/profiles")
def start_profile(agent: ThisAgent, asked: WhoAsked, request: ProfileRequest) -> Profile:
    with agent.acting(asked, "cpu profile", request.process_id) as act:
        profile = agent.profiles.start(request)
        act.result = f"{profile.state}: {profile.says}"
    return profile


@router.post("/flight-recorders")
def flight_recorder(agent: ThisAgent, asked: WhoAsked, request: FlightRecorderRequest) -> FileTaken:
    with agent.acting(asked, "flight recorder", request.process_id) as act:
        taken = read_flight_recorder(
            request.process_id, table=agent.table, holds=agent.holds, files=agent.files
        )
        act.files.append(taken)
    return taken


@router.post("/dumps/{dump_id}")
def take_dump(
    agent: ThisAgent, asked: WhoAsked, dump_id: ArtifactId, folder: DumpFolders = ()
) -> DumpFound:
    with agent.acting(asked, "dump") as act:
        found = fetch_dump(dump_id, table=agent.table, files=agent.files, folders=folder)
        act.files.extend([found.file] if found.file else [])
    return found


@router.get("/facts")
def facts(agent: ThisAgent, asked: WhoAsked, process_id: ProcessIds = None) -> HostFacts:
    with agent.acting(asked, "host facts", *(process_id or ())) as act:
        answer = host_facts(table=agent.table, files=agent.files, process_ids=process_id)
        act.files.extend(answer.files)
    return answer


@router.get("/ras")
def ras(
    agent: ThisAgent,
    asked: WhoAsked,
    process_id: ProcessId | None = None,
    interval_seconds: Annotated[float, Query(ge=0.5, le=30)] = 10.0,
) -> RasAnswer:
    with agent.acting(asked, "nccl ras", *([process_id] if process_id else [])) as act:
        answer = read_ras(
            table=agent.table,
            files=agent.files,
            holds=agent.holds,
            process_id=process_id,
            interval_seconds=interval_seconds,
        )
        act.files.extend(answer.readings)
        act.result = answer.says
    return answer
