"""A console full of incidents, for looking at its pages: python -m tests.seed DATA_DIR."""

import sys
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

from app.domain.playbook import DiagnosticTaken, NoteAdded, StepRequested
from app.domain.stacks.samples import Missing
from app.settings import Settings
from app.store import accounts, migrations, passwords, timeline
from app.store.audit import CLI, CONSOLE
from app.store.database import writing
from app.store.incidents import Changes, change_incident, get_incident
from app.store.stores import Stores
from app.store.tables import Diagnostic, DiagnosticItem, Host, Incident, Target
from tests import hosts, kept_replays, make, recorded, stacks
from tests.compared import BUSY, FAULT, comparison_of_bodies, inspected
from tests.situations import gone, healthy, quiet, slow, stuck


def fill(stores: Stores, now: datetime) -> None:  # noqa: PLR0915  (a list, one line for each)
    """Incidents in every state, each with the evidence that put it there."""
    names = ("decode-a", "rollout-3", "prefill-b", "chat-eu-2", "gateway-b", "agent-pool", "eval-1")
    targets = {
        name: make.target(stores, name, created_at=now - timedelta(days=9)) for name in names
    }

    def ago(minutes: float) -> datetime:
        return now - timedelta(minutes=minutes)

    def opened(title: str, name: str, minutes: float, severity: str | None = None) -> Incident:
        return make.incident(
            stores,
            title,
            targets[name],
            at=ago(minutes),
            severity=severity,
            started_at=ago(minutes + 2),
        )

    old = opened("Slow first tokens after the weekend", "decode-a", 2000, "sev3")
    make.bundle(stores, old, targets["decode-a"], healthy(), at=ago(1990))
    _change(stores, old, ago(1900), state="resolved", assignee="lin")
    hang = opened("decode-a answers but generates nothing", "decode-a", 15, "sev1")
    make.bundle(stores, hang, targets["decode-a"], stuck(), at=ago(5))
    _tell(stores, hang, ago(15), ago(4))
    _change(stores, hang, ago(10), state="acknowledged", assignee="mira")
    down = opened("rollout-3 refuses connections", "rollout-3", 38, "sev1")
    make.bundle(stores, down, targets["rollout-3"], gone(), at=ago(30))
    late = opened("TTFT is up", "prefill-b", 72, "sev2")
    make.bundle(stores, late, targets["prefill-b"], slow(), at=ago(60))
    _change(stores, late, ago(60), state="acknowledged", assignee="jonas")
    silence = opened("Users see time-outs", "chat-eu-2", 2, "sev2")
    make.bundle(stores, silence, targets["chat-eu-2"], quiet(), at=ago(1))
    opened("Router says 6 targets are down", "gateway-b", 3)
    _look_inside(stores, hang, targets["decode-a"], now)
    fine = opened("KV use climbs", "agent-pool", 300, "sev3")
    make.bundle(stores, fine, targets["agent-pool"], healthy(), at=ago(290))
    _change(stores, fine, ago(280), state="mitigated", assignee="mira", tags=["kv", "sessions"])
    _recorded(stores, down, ago(29))
    _replayed(stores, down, now)
    text = opened("Greedy text differs since weights 0413", "eval-1", 660, "sev3")
    _change(stores, text, ago(600), state="acknowledged", problem_class="wrong output")


def _recorded(stores: Stores, incident: Incident, at: datetime) -> None:
    """Two crash dumps that share requests, and one whose end is missing."""
    ended = [recorded.request(number, tokens=40 + 9 * number) for number in range(64)]
    stuck = [recorded.request(number, finished=False) for number in range(64, 70)]
    image = recorded.request(57, finished=False, rid="photo", image_data=["data:image/png;base64,"])
    first = recorded.dump([*ended, *stuck, image])
    make.dump(stores, incident, first, "crash_dump_2026-11-30_02-31-07.pkl", at=at)
    again = recorded.dump([*ended[:9], *stuck[:2], image])
    make.dump(stores, incident, again, "crash_dump_2026-11-30_02-40-12.pkl", at=at)
    make.dump(stores, incident, first[: len(first) // 2], "cut_off.pkl", at=at)


def _replayed(stores: Stores, incident: Incident, now: datetime) -> None:
    """Replays of the first crash dump: judged, of two sides, looked at, running, cut off."""
    seen = {"verdict": "healthy", "version": "0.5.23", "model": "chat-70b", "at": now.isoformat()}
    clean = make.target(stores, "debug-1", clean=True, created_at=now, seen=seen)
    older = {**seen, "version": "0.5.21"}
    good = make.target(stores, "debug-good", clean=True, created_at=now, seen=older)
    mixed = make.target(stores, "canary-1", created_at=now - timedelta(days=2))
    file = recorded.dump([recorded.request(number) for number in range(500)])
    name = "crash_dump_2026-11-30_02-55-40.pkl"
    dump = make.dump(stores, incident, file, name, at=now - timedelta(minutes=28))

    def replay(*targets: Target, minutes: float, **given: Any) -> None:
        at = now - timedelta(minutes=minutes)
        kept_replays.replay(stores, incident, dump, *targets, at=at, **given)

    deaths = [kept_replays.outcomes(dies_at=343, seed=seed) for seed in (1, 2)]
    whole = [kept_replays.outcomes(seed=seed) for seed in (3, 4)]
    replay(clean, minutes=26, trials=deaths)
    replay(good, clean, minutes=20, trials=[whole[0], deaths[0], whole[1], deaths[1]])
    replay(good, minutes=15, trials=whole)
    replay(mixed, minutes=9, state="planned", size=71)
    half = kept_replays.outcomes(stops_at=287, seed=5)
    replay(clean, minutes=1.2, state="running", trials=[half], size=500)
    replay(mixed, minutes=5, state="interrupted", trials=[half], size=500)
    says = "canary-1 is serving 3 requests of others right now. Nothing was sent."
    replay(mixed, minutes=4, state="refused", says=says)


def _look_inside(stores: Stores, incident: Incident, target: Target, now: datetime) -> None:
    """A host that is linked to *target*, one that is silent, and what was taken at the first."""
    gpu = hosts.host(
        stores,
        "gpu-14",
        hosts.server(*map(hosts.rank, range(8))),
        heard_at=now - timedelta(seconds=12),
        ready=hosts.preflight(now, ranks=8),
    )
    hosts.host(stores, "gpu-15", heard_at=None, problem="Connection refused.")
    hosts.link(stores, target, gpu)
    at = now - timedelta(minutes=4)
    taken = _compared_stacks(stores, incident, gpu, target, at)
    hosts.diagnostic(
        stores,
        incident,
        gpu,
        [_inspected_dump(now - timedelta(minutes=2))],
        kind="coredump",
        at=now - timedelta(minutes=3),
        says="Coredump of TP0: complete.",
        target_id=target.id,
    )
    _profile(stores, incident, gpu, target, now - timedelta(minutes=2))
    assert incident.id is not None
    assert taken.id is not None
    event = DiagnosticTaken(taken.id, "stacks", (gpu.name,), taken.says)
    with writing(stores.engine) as session:
        timeline.record(session, event, incident_id=incident.id, actor=make.MIRA, at=at)


def _compared_stacks(
    stores: Stores, incident: Incident, host: Host, target: Target, at: datetime
) -> Diagnostic:
    """Eight ranks: six wait for the GPU, TP5 waits elsewhere, TP7 was not read; nothing moves."""
    reads = [number for number in range(8) if number != 7]
    calls = dict.fromkeys(reads, stacks.AWAITS_GPU) | {5: stacks.AWAITS_REQUESTS}
    bodies = [stacks.dump_json(41871 + n, calls[n]) for n in reads]
    items = [
        hosts.item(number, sample=sample + 1, taken_at=at + timedelta(seconds=5 * sample))
        for sample in range(3)
        for number in reads
    ]
    comparison = comparison_of_bodies(
        {f"TP{number}": body for number, body in zip(reads, bodies, strict=True)},
        pids={f"TP{number}": 41871 + number for number in reads},
        samples=3,
        missing=[Missing("TP7", "busy", hosts.GONE_QUIET, "Retry in 5 s.", hosts.RETRY)],
    )
    return hosts.diagnostic(
        stores,
        incident,
        host,
        [*items, hosts.refused(7)],
        at=at,
        bodies=bodies * 3,
        says=comparison["says"],
        target_id=target.id,
        answer={"comparison": comparison},
    )


def _inspected_dump(at: datetime) -> DiagnosticItem:
    """A dump of TP0 with the kernel that faulted in it."""
    dump = hosts.coredump(taken_at=at)
    dump.detail = {**dump.detail, "inspected": inspected(FAULT, BUSY)}
    return dump


def _profile(stores: Stores, incident: Incident, host: Host, target: Target, at: datetime) -> None:
    """Two seconds of TP5, which waits for a lock."""
    says = "99 samples in 2 s, idle threads included."
    hosts.diagnostic(
        stores,
        incident,
        host,
        [hosts.item(5, sample=None, kind="cpu profile", taken_at=at, says=says)],
        kind="cpu profile",
        at=at,
        says=says,
        bodies=[hosts.PROFILE.read_bytes()],
        target_id=target.id,
    )


def _change(stores: Stores, incident: Incident, at: datetime, **changes: object) -> None:
    assert incident.id is not None
    with writing(stores.engine) as session:
        wanted = Changes(**changes)  # type: ignore[typeddict-item]
        change_incident(session, get_incident(session, incident.id), wanted, actor=make.MIRA, at=at)


def _tell(stores: Stores, incident: Incident, since: datetime, until: datetime) -> None:
    """Notes of people and a run of system events, one of them pinned."""
    assert incident.id is not None
    notes = (
        "Router drained decode-a; traffic moved to decode-b and -c. TTFT there 1.1 s p99, holding.",
        "The watchdog of the server holds py-spy on TP7, pid 43010. It will let go in a minute.",
        "deploy-417: sglang 0.5.21 → 0.5.23, overlap schedule on.",
    )
    with writing(stores.engine) as session:
        for number, text in enumerate(notes):
            at = since + (until - since) * (number + 1) / 4
            row = timeline.record(
                session, NoteAdded(text), incident_id=incident.id, actor=make.MIRA, at=at
            )
        assert row.id is not None
        timeline.pin(session, incident.id, row.id, pinned=True, actor=make.MIRA, at=until)
        for number in range(6):
            timeline.record(
                session,
                StepRequested("CollectBundle", 1, "decode-a"),
                incident_id=incident.id,
                actor=CONSOLE,
                at=since + timedelta(seconds=40 * number),
            )


def main(data_dir: Path) -> None:
    """Migrate, make the user mira, and fill the console in *data_dir*."""
    stores = Stores.open(Settings(_env_file=None, data_dir=data_dir, min_free_bytes=0))
    migrations.upgrade(stores.engine)
    now = datetime.now(UTC)
    with writing(stores.engine) as session:
        password_hash = passwords.hashed("correct horse battery")
        for name, role in (("mira", "admin"), ("rea", "reader")):
            accounts.create_user(
                session, name, role=role, password_hash=password_hash, actor=CLI, at=now
            )
    if "--empty" not in sys.argv:
        fill(stores, now)
    stores.close()


if __name__ == "__main__":
    main(Path(sys.argv[1]))
