"""One replay while it is at work: its requests, its targets, and what is sent to each."""

from collections.abc import Callable, Iterator, Mapping
from concurrent.futures import Future, wait
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from typing import TypeVar

from app.clients.dumps import Reading
from app.clients.recorded_file import RecordedFile
from app.clients.target import TargetAddress
from app.domain.observed import Observed
from app.domain.replay import agreed, plan
from app.domain.replay.options import Options, TargetFacts
from app.domain.replay.plan import Plan
from app.domain.replay.selection import read_selection
from app.domain.replay.target import facts_of
from app.errors import Rejected
from app.jobs.work import LOOK_SECONDS, Work
from app.store import dump_rows, replay_progress
from app.store.aside import aside
from app.store.database import reading
from app.store.evidence import get_artifact
from app.store.tables import Replay, Target
from app.store.targets import address

Result = TypeVar("Result")


@dataclass(slots=True)
class Run:
    """*suspects* are the indexes of requests to look at first."""

    work: Work
    replay: Replay
    targets: Mapping[str, Target]  # by side
    recording: RecordedFile
    suspects: frozenset[int] = frozenset()
    plans: dict[str, Plan] = field(default_factory=dict)

    @property
    def id(self) -> int:
        assert self.replay.id is not None
        return self.replay.id

    @property
    def options(self) -> Options:
        """As agreed; identifiers on the target say of which replay they are."""
        return replace(agreed.read(self.replay.options), name=f"replay-{self.id}")

    def address(self, target: Target) -> TargetAddress:
        """Where a target is, and how to ask it."""
        return address(target, self.work.stores.vault, self.work.stores.settings)

    def plan_for(self, side: str, seen: Observed | None) -> Plan:
        """What is sent to a side, planned once, by what a bundle tells of it; None: there is none.

        Raises Rejected where nothing is left to send.
        """
        if side not in self.plans:
            chosen = read_selection(self.replay.selection)
            made = apart(
                self.work,
                "plan replay",
                lambda: plan.plan(
                    self.recording.requests(),
                    self.options,
                    facts_of(seen) if seen else TargetFacts(),
                    selection=chosen,
                    suspects=self.suspects,
                    problems=self.recording.document["problems"],
                ),
            )
            told = {side: plan.as_json(made)}
            replay_progress.planned(self.work.stores, self.work.attempt, self.id, told)
            if not made.schedule.slots:
                raise Rejected("Nothing is left to send.", why=_why_nothing(made))
            self.plans[side] = made
        return self.plans[side]


def suspects_of(work: Work, replay: Replay) -> frozenset[int]:
    """The suspects of the dump that is replayed; of a file that was not read as one, none."""
    if replay.dump_id is None:
        return frozenset()
    with reading(work.stores.engine) as session:
        found = dump_rows.suspects_of(session, replay.dump_id)
    return frozenset(one.position for one in found)


@contextmanager
def recording_of(work: Work, replay: Replay) -> Iterator[RecordedFile]:
    """The requests, raw: for sending only. Who asked for it is in the audit log."""
    stores = work.stores
    with reading(stores.engine) as session:
        artifact = get_artifact(session, replay.artifact_id)
    told = Reading(called=artifact.name, key=stores.vault.fingerprint_key)
    with stores.artifacts.as_file(artifact.sha256) as path:
        future = aside(lambda: RecordedFile(path, reading=told), name="read requests")
        try:
            while not wait([future], LOOK_SECONDS).done:
                work.check()
        finally:
            if not future.done():
                future.add_done_callback(_close)  # nobody waits for it any more
    with future.result() as recording:
        yield recording


def _close(future: "Future[RecordedFile]") -> None:
    if future.exception() is None:
        future.result().__exit__(None, None, None)


def apart(work: Work, name: str, action: Callable[[], Result]) -> Result:
    """What *action* returns, done by a thread. Raises what ``Work.check`` raises meanwhile."""
    future = aside(action, name=name)
    while not wait([future], LOOK_SECONDS).done:
        work.check()
    return future.result()


def _why_nothing(made: Plan) -> str:
    if made.left_out:
        first = made.left_out[0]
        return f"{len(made.left_out)} requests are left out; the first: {first.why}."
    return f"None of {made.requests_total} requests was chosen."
