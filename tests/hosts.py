"""Hosts, links and diagnostics with a default for everything; a test names what it is about."""

from collections.abc import Sequence
from datetime import datetime, timedelta
from pathlib import Path
from typing import Any

from sqlmodel import Session

from app.protocol.messages import (
    Check,
    GpuUse,
    Info,
    Loss,
    Preflight,
    Process,
    Processes,
    Rank,
    Readiness,
    RestartCard,
    Server,
)
from app.store import evidence
from app.store.database import reading, writing
from app.store.stores import Stores
from app.store.tables import Diagnostic, DiagnosticItem, Host, Incident, Job, Target, TargetServer
from tests.make import MIRA, NOON

PORT = 30000
ROOT = "41870.9000"
STACKS = Path(__file__).parent / "data" / "pyspy" / "scheduler-tp0.json"
PROFILE = STACKS.with_name("lock-wait.speedscope.json")  # py-spy record --idle, 0.4.3
GONE_QUIET = "another tracer holds it: py-spy, pid 43010"
RETRY = "py-spy dump --nonblocking --pid 41872"


def rank(number: int, **given: Any) -> Process:
    """The scheduler of one rank: pid 41871 for TP0, 41872 for TP1, …"""
    return Process(
        **{
            "id": f"{41871 + number}.{9001 + number}",
            "pid": 41871 + number,
            "parent_pid": 41870,
            "title": f"sglang::scheduler_TP{number}",
            "role": "scheduler",
            "rank": Rank(label=f"TP{number}", tp=number),
            "state": "R",
            "threads": 31,
            "wchan": "0",
            "rss_bytes": 9_400_000_000,
            "gpus": [GpuUse(index=number, name="H200", used_bytes=131_000_000_000)],
            **given,
        }
    )


def server(*ranks: Process, **given: Any) -> Server:
    """A server on port 30000: its root, then the ranks; TP0 and TP1 where none is named."""
    root = Process(
        id=ROOT, pid=41870, title="python -m sglang.launch_server", role="server", state="S",
        threads=44, wchan="ep_poll", rss_bytes=2_100_000_000, gpus=[],
    )  # fmt: skip
    return Server(
        **{
            "id": ROOT,
            "engine": "sglang",
            "name": f"sglang on port {PORT}",
            "ports": [PORT],
            "processes": [root, *(ranks or (rank(0), rank(1)))],
            "started_at": NOON,
            **given,
        }
    )


def checks(*ready: Check) -> list[Check]:
    """Of one rank: the recorder is off, all else can be taken. *ready* stands over that."""
    usual = (
        Check(capability="stacks", ready=True, says="py-spy 0.4.3, may trace it"),
        Check(capability="native stacks", ready=True, says="py-spy 0.4.3, may trace it"),
        Check(capability="cpu profile", ready=True, says="py-spy 0.4.3, may trace it"),
        Check(capability="coredump", ready=True, says="its pipe is open: descriptor 93"),
        Check(
            capability="flight recorder",
            ready=False,
            says="the ring buffer is off in this process",
            fix="Set it for the next start.",
            command="export TORCH_FR_BUFFER_SIZE=2000",
        ),
    )
    over = {one.capability for one in ready}
    return [*ready, *(one for one in usual if one.capability not in over)]


def preflight(at: datetime = NOON, *, ranks: int = 2, **given: Any) -> Preflight:
    """What could be captured of ``server()``."""
    return Preflight(
        **{
            "at": at,
            "host": [
                Check(capability="host facts", ready=True, says="readable"),
                Check(capability="free space", ready=True, says="14 GB free of 200 GB"),
                Check(capability="nccl ras", ready=None, says="nothing was asked on port 28028"),
            ],
            "processes": [
                Readiness(process_id=one.id, title=one.title, checks=checks())
                for one in map(rank, range(ranks))
            ],
            "restarts": [restart()],
            "score": 0.8,
            **given,
        }
    )


def restart() -> RestartCard:
    """The card of ``server()``."""
    return RestartCard(
        server_id=ROOT,
        name=f"sglang on port {PORT}",
        advice="End it with SIGTERM, and wait 65 s before anything harder.",
        losses=[
            Loss(
                how="SIGKILL",
                saves=[],
                loses=["the crash dump", "31 running requests"],
                command="kill -KILL 41870",
            ),
            Loss(
                how="SIGTERM",
                saves=["the crash dump in /var/dumps"],
                loses=["the state of the GPUs"],
                unknown=["whether the loop still turns"],
                command="kill -TERM 41870",
            ),
            Loss(
                how="SIGQUIT",
                saves=["the crash dump in /var/dumps"],
                loses=["running requests"],
                command="kill -QUIT 41870",
            ),
        ],
    )


def host(
    stores: Stores,
    name: str = "gpu-14",
    *servers: Server,
    heard_at: datetime | None = NOON,
    ready: Preflight | None = None,
    **given: Any,
) -> Host:
    """A registered host that was heard *heard_at*; None: never. ``server()`` runs there."""
    told = {
        "processes": Processes(at=heard_at, servers=servers or (server(),), gpus="8 × H200"),
        "preflight": ready or preflight(heard_at),
        "info": Info(
            agent_id="a" * 16, version="0.3.0", host=name, at=heard_at, started_at=heard_at,
            system="Linux 6.1 x86_64", free_bytes=14_000_000_000,
            tools={"py-spy": "0.4.3", "nsenter": None},
        ),
    } if heard_at else {}  # fmt: skip
    row = Host(
        **{
            "name": name,
            "agent_url": f"https://{name}.example:8400",
            "key_sealed": stores.vault.seal("00" * 32),
            "registered_by": "ada",
            "registered_at": NOON,
            "heard_at": heard_at,
            "asked_at": heard_at,
            "version": "0.3.0" if heard_at else None,
            "clock_offset_seconds": 0.021 if heard_at else None,
            "agent_id": "a" * 16 if heard_at else None,
            "processes_at": heard_at,
            "preflight_at": heard_at,
            **{key: message.model_dump(mode="json") for key, message in told.items()},
            **given,
        }
    )
    with writing(stores.engine) as session:
        session.add(row)
    return row


def link(stores: Stores, target: Target, host: Host, at: datetime = NOON) -> TargetServer:
    """That *target* is ``server()`` on *host*."""
    assert target.id is not None
    assert host.id is not None
    row = TargetServer(
        target_id=target.id, host_id=host.id, port=PORT, server_id=ROOT, engine="sglang",
        confirmed_by="mira", confirmed_at=at,
    )  # fmt: skip
    with writing(stores.engine) as session:
        session.add(row)
    return row


def item(number: int = 0, **given: Any) -> DiagnosticItem:
    """One sample of the stacks of rank TP*number*, read exactly."""
    return DiagnosticItem(
        **{
            "host_name": "gpu-14",
            "process_id": rank(number).id,
            "pid": 41871 + number,
            "rank": f"TP{number}",
            "sample": 1,
            "taken_at": NOON,
            "seconds": 0.09,
            "mode": "plain",
            "exact": True,
            "state": "done",
            "kind": "stacks",
            "detail": {"state_before": "R", "state_after": "R", "notes": []},
            **given,
        }
    )


def refused(number: int = 1, **given: Any) -> DiagnosticItem:
    """That rank TP*number* was not read, and the fix."""
    return item(
        number,
        **{
            "sample": None,
            "taken_at": None,
            "seconds": None,
            "mode": None,
            "exact": None,
            "state": "refused",
            "kind": "busy",
            "says": GONE_QUIET,
            "fix": "Retry in 5 s, or read it as it is.",
            "command": RETRY,
            "detail": {},
            **given,
        },
    )


def coredump(number: int = 0, **given: Any) -> DiagnosticItem:
    """A coredump of rank TP*number* that is complete and stays on its host."""
    return item(
        number,
        **{
            "sample": None,
            "mode": None,
            "exact": None,
            "seconds": 61.0,
            "state": "complete",
            "kind": "coredump",
            "says": "Its structure fits and no writer holds it.",
            "detail": {"path": "/var/dumps/core_gpu-14_41871", "size_bytes": 2_100_000_000},
            **given,
        },
    )


def diagnostic(
    stores: Stores,
    incident: Incident,
    host: Host,
    items: Sequence[DiagnosticItem] = (),
    *,
    kind: str = "stacks",
    state: str = "done",
    at: datetime = NOON,
    took: timedelta = timedelta(seconds=11),
    bodies: Sequence[bytes | None] = (),
    **given: Any,
) -> Diagnostic:
    """A diagnostic with its job and *items*; *bodies* are kept as the files of the items."""
    over = state not in ("queued", "running")
    with writing(stores.engine) as session:
        job = Job(
            key=f"diagnostic {kind} of {incident.id} at {at}",
            kind="diagnose",
            incident_id=incident.id,
            target_id=given.get("target_id"),
            partition=f"diagnose:{at}",
            arguments={"kind": kind},
            state="succeeded" if state == "done" else state,
            requested_by="mira",
            created_at=at,
            started_at=at,
            finished_at=at + took if over else None,
        )
        session.add(job)
        session.flush()
        row = Diagnostic(
            **{
                "incident_id": incident.id,
                "job_id": job.id,
                "kind": kind,
                "state": state,
                "asked_by": "mira",
                "asked_at": at,
                "finished_at": at + took if over else None,
                "hosts": [{"host_id": host.id, "name": host.name, "process_ids": []}],
                **given,
            }
        )
        session.add(row)
        session.flush()
        for number, one in enumerate(items):
            body = bodies[number] if number < len(bodies) else None
            if body is not None:
                one.artifact_id = _kept(stores, session, incident, one, body)
            one.diagnostic_id = row.id or 0
            session.add(one)
    with reading(stores.engine) as session:
        return session.get_one(Diagnostic, row.id)


def _kept(
    stores: Stores, session: Session, incident: Incident, one: DiagnosticItem, body: bytes
) -> int | None:
    kept = evidence.keep(
        session,
        stores.artifacts.put(body),
        incident_id=incident.id,
        name=f"{one.kind}-{one.rank}-{one.sample}.json",
        kind=one.kind,
        tier="T1",
        media_type="application/json",
        actor=MIRA,
        taken_from=f"host {one.host_name}",
        at=one.taken_at or NOON,
    )
    return kept.id
