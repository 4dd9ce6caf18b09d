"""Hosts with doubles of agents, and asking for diagnostics there."""

from datetime import timedelta
from typing import Any
from uuid import uuid4

from app.protocol.messages import Coredump, Info, Process, Processes, Rank, Server
from app.store import hearing, hosts
from app.store.database import reading, writing
from app.store.diagnostics import NewDiagnostic, get_diagnostic, items_of, request_diagnostic
from app.store.hosts import NewHost
from app.store.stores import Stores
from app.store.tables import Diagnostic, DiagnosticItem, Host, Job, Target
from tests import make as rows
from tests.integration import make
from tests.integration.agent_double import Asked, Double
from tests.waiting import until

ROOT, TP0, TP1 = "100.1", "101.1", "102.1"


def new_name() -> str:
    """A name that no other host has: all tests share one database."""
    return f"gpu-{uuid4().hex[:12]}"


def server(port: int = 30000, **given: Any) -> Server:
    """A server of two ranks."""
    ranks = [
        Process(
            id=process_id,
            pid=int(process_id.partition(".")[0]),
            title=f"sglang::scheduler_TP{number}",
            role="scheduler",
            rank=Rank(label=f"TP{number}", tp=number),
        )
        for number, process_id in enumerate((TP0, TP1))
    ]
    root = Process(id=ROOT, pid=100, title="python -m sglang.launch_server", role="server")
    told = {"id": ROOT, "engine": "sglang", "name": f"sglang on port {port}", "ports": [port]}
    return Server(**{**told, "processes": [root, *ranks], **given})


def processes(*servers: Server) -> Processes:
    return Processes(at=make.now(), servers=list(servers), gpus="absent")


def host(stores: Stores, double: Double, name: str, *servers: Server) -> Host:
    """A registered host whose agent is *double*, on which these servers were seen."""
    new = NewHost(name, double.url, double.key.hex())
    with writing(stores.engine) as session:
        row = hosts.register_host(session, new, vault=stores.vault, actor=rows.ADA, at=make.now())
        hosts.note_heard(
            session,
            row.id or 0,
            info=_info(double, name),
            processes=processes(*servers),
            at=make.now(),
        )
    return row


def _info(double: Double, name: str) -> Info:
    now = make.now()
    return Info(
        agent_id=double.agent_id, version="1", host=name, at=now, started_at=now, system="Linux"
    )


def incident(stores: Stores, *targets: Target) -> int:
    row = rows.incident(stores, "It hangs", *targets)
    assert row.id is not None
    return row.id


def press(stores: Stores, incident_id: int, kind: str = "stacks", **given: Any) -> int:
    """The number of a diagnostic that mira asks for."""
    told = {"incident_id": incident_id, "target_id": None, "host_ids": (), "kind": kind}
    new = NewDiagnostic(**{**told, **given})
    with writing(stores.engine) as session:
        _, row = request_diagnostic(session, stores, new, actor=make.MIRA, at=make.now())
    assert row.id is not None
    return row.id


def diagnostic(stores: Stores, diagnostic_id: int) -> Diagnostic:
    with reading(stores.engine) as session:
        return get_diagnostic(session, diagnostic_id)


def items(stores: Stores, diagnostic_id: int) -> list[DiagnosticItem]:
    with reading(stores.engine) as session:
        return items_of(session, diagnostic_id)


def job(stores: Stores, diagnostic_id: int) -> Job:
    with reading(stores.engine) as session:
        return session.get_one(Job, get_diagnostic(session, diagnostic_id).job_id)


def ended(stores: Stores, diagnostic_id: int, *, seconds: float = 60) -> Diagnostic:
    """The diagnostic as soon as it is over."""

    def over() -> Diagnostic | None:
        row = diagnostic(stores, diagnostic_id)
        return row if row.finished_at else None

    row = until(over, seconds=seconds)
    assert row is not None
    return row


def heard(stores: Stores, row: Host) -> Host:
    """The host, asked just now."""
    hearing.hear(stores, row)
    with reading(stores.engine) as session:
        return hosts.get_host(session, row.id or 0)


class Dumping:
    """How a coredump goes on: each look is answered with the next of *states*."""

    def __init__(self, double: Double, *states: str, data: bytes = b"") -> None:
        self.double, self.states = double, list(states)
        self.begun: dict[str, Coredump] = {}
        self.file = double.file(data, "core.nvcudmp", "coredump") if data else None
        double.says["POST /coredumps"] = self.begin
        double.says["GET /coredumps"] = lambda _: _listed(self.begun.values())
        double.says["GET /coredumps/" + "c" * 32] = self.look

    def begin(self, asked: Asked) -> Coredump:
        self.begun[asked.body["process_id"]] = told = self._told(asked.body["process_id"], "sent")
        return told

    def look(self, _: Asked) -> Coredump:
        state = self.states.pop(0) if len(self.states) > 1 else self.states[0]
        return self._told(next(iter(self.begun)), state)

    def _told(self, process_id: str, state: str) -> Coredump:
        whole = state in ("complete", "truncated")
        return Coredump(
            id="c" * 32,
            process_id=process_id,
            state=state,
            says=f"It is {state}.",
            path="/dumps/core.nvcudmp",
            started_at=make.now() - timedelta(seconds=1),
            changed_at=make.now(),
            file=self.file if whole else None,
        )


def _listed(dumps: Any) -> bytes:
    return b"[" + b",".join(one.model_dump_json().encode() for one in dumps) + b"]"
