"""What a diagnostic's page shows, gathered: its items, and the stacks in the files they name."""

from collections.abc import Sequence
from dataclasses import dataclass

from sqlmodel import Session, col, select

from app.domain.stack_text import ProcessStacks, read_stacks
from app.errors import ConsoleError
from app.store.artifacts import ArtifactStore
from app.store.diagnostics import items_of
from app.store.tables import Artifact, Diagnostic, DiagnosticItem
from app.store.targets import get_target
from app.web.views.diagnostic_finding import UNFINISHED, asked_of
from app.web.views.diagnostics import DiagnosticTold
from app.web.views.found import (
    STACKS,
    Dump,
    Found,
    RankPage,
    Taken,
    in_order,
    refusals,
    told_by_hosts,
    who,
)
from app.web.views.stacks import PAGE_BYTES, Column, Room, main_told, others_told

RANKS_ON_PAGE = 32
RAW = "T2"
MOST_STACK_BYTES = 4 * 1024 * 1024  # of one file; a larger one is for downloading


@dataclass(frozen=True, slots=True)
class Asked:
    """Which part of the stacks is asked for; None and 1: the newest sample, the first ranks."""

    sample: int | None = None
    ranks: int = 1
    raw: bool = False  # whether who asks may read raw evidence

    @property
    def chosen(self) -> bool:
        """Whether it is another part than the one that is shown first."""
        return self.sample is not None or self.ranks > 1


def told_of(session: Session, row: Diagnostic, items: Sequence[DiagnosticItem]) -> DiagnosticTold:
    """*row* as its page tells of it."""
    target = get_target(session, row.target_id).name if row.target_id else None
    return DiagnosticTold.of(row, items, target)


def is_live(row: Diagnostic) -> bool:
    """Whether more may come; its job follows what the agents do to the end."""
    return row.state in UNFINISHED


def items_in_order(session: Session, diagnostic_id: int) -> list[DiagnosticItem]:
    """What was taken and refused, by host and rank."""
    items = items_of(session, diagnostic_id)
    return sorted(items, key=lambda item: (in_order(who(item)), item.host_name, item.sample or 0))


def found_in(
    session: Session,
    artifacts: ArtifactStore,
    row: Diagnostic,
    items: Sequence[DiagnosticItem],
    asked: Asked,
) -> Found:
    """What the diagnostic brought, for the sample and the ranks that are *asked* for."""
    files = _files(session, items)
    ranks = _ranks(row, items) if row.kind in STACKS else []
    samples = sorted({item.sample for item in items if item.sample is not None})
    sample = asked.sample if asked.sample in samples else next(iter(samples[::-1]), None)
    pages = _rank_pages(ranks)
    number = min(max(asked.ranks, 1), max(len(pages), 1))
    part = ranks[(number - 1) * RANKS_ON_PAGE : number * RANKS_ON_PAGE]
    plain = [item for item in items if row.kind not in (*STACKS, "coredump")]
    return Found(
        columns=_columns(artifacts, files, part, sample, raw=asked.raw),
        samples=samples,
        sample=sample,
        rank_pages=pages if len(pages) > 1 else [],
        rank_page=number,
        chosen=asked.chosen,
        dumps=[Dump(who(item), item) for item in items if row.kind == "coredump"],
        taken=[
            Taken(who(item), item, files.get(item.artifact_id or 0))
            for item in plain
            if item.state != "refused"
        ],
        told=told_by_hosts(row),
        refused=refusals(items) if row.kind != "coredump" else [],
        asked=asked_of(row, items),
    )


def _files(session: Session, items: Sequence[DiagnosticItem]) -> dict[int, Artifact]:
    wanted = [item.artifact_id for item in items if item.artifact_id]
    rows = session.exec(select(Artifact).where(col(Artifact.id).in_(wanted))) if wanted else ()
    return {row.id: row for row in rows if row.id is not None}


@dataclass(slots=True)
class _Rank:
    """A process that was asked, and what came of it."""

    who: str
    host: str
    pid: int | None
    items: list[DiagnosticItem]


def _ranks(row: Diagnostic, items: Sequence[DiagnosticItem]) -> list[_Rank]:
    """Every process that was asked, those included that nothing came of, by rank."""
    ranks = {
        (str(host["name"]), process_id): _Rank(
            (host.get("ranks") or {}).get(process_id) or f"pid {process_id.partition('.')[0]}",
            str(host["name"]),
            int(process_id.partition(".")[0]),
            [],
        )
        for host in row.hosts
        for process_id in host.get("process_ids") or ()
    }
    for item in items:
        for rank in _concerned(ranks, item):
            rank.items.append(item)
    return sorted(ranks.values(), key=lambda rank: (in_order(rank.who), rank.host))


def _concerned(ranks: dict[tuple[str, str], _Rank], item: DiagnosticItem) -> list[_Rank]:
    """The process of *item*; all of its host where the host as a whole gave nothing."""
    if item.process_id is None:
        return [rank for rank in ranks.values() if rank.host == item.host_name]
    key = (item.host_name, item.process_id)
    rank = ranks.setdefault(key, _Rank(who(item), item.host_name, item.pid, []))
    rank.who = item.rank or rank.who
    return [rank]


def _rank_pages(ranks: Sequence[_Rank]) -> list[RankPage]:
    pages = []
    for start in range(0, len(ranks), RANKS_ON_PAGE):
        part = ranks[start : start + RANKS_ON_PAGE]
        pages.append(RankPage(start // RANKS_ON_PAGE + 1, f"{part[0].who} to {part[-1].who}"))
    return pages


def _columns(
    artifacts: ArtifactStore,
    files: dict[int, Artifact],
    ranks: Sequence[_Rank],
    sample: int | None,
    *,
    raw: bool,
) -> list[Column]:
    """Each with its share of the page: its main thread first, then the others."""
    chosen = [_of_sample(rank.items, sample) for rank in ranks]
    read = [_read(artifacts, files, item, raw=raw) for item in chosen]
    share = PAGE_BYTES // max(len(ranks), 1)
    rooms = [Room(share * 2 // 3) for _ in ranks]
    mains = [main_told(stacks, room) for stacks, room in zip(read, rooms, strict=True)]
    columns = []
    for rank, item, stacks, room, main in zip(ranks, chosen, read, rooms, mains, strict=True):
        others, left_out = others_told(stacks, Room(max(room.left, 0) + share // 3))
        columns.append(
            Column(
                who=rank.who,
                host=rank.host,
                pid=rank.pid,
                item=item,
                main=main,
                others=others,
                others_left_out=left_out if stacks.threads else 0,
                problem=stacks.problem,
            )
        )
    return columns


def _of_sample(items: Sequence[DiagnosticItem], sample: int | None) -> DiagnosticItem | None:
    """What is known of a process in that sample; a refusal of all samples counts for each."""
    return next((item for item in items if item.sample in (sample, None)), None)


def _read(
    artifacts: ArtifactStore,
    files: dict[int, Artifact],
    item: DiagnosticItem | None,
    *,
    raw: bool,
) -> ProcessStacks:
    if item is None or item.state != "done":
        return ProcessStacks(())
    file = files.get(item.artifact_id or 0)
    if file is None or file.purged_at:
        return ProcessStacks((), problem="The bytes are no longer kept here.")
    if file.tier == RAW and not raw:
        return ProcessStacks((), problem="Raw evidence: an operator may read it.")
    try:
        return read_stacks(artifacts.read(file.sha256, MOST_STACK_BYTES))
    except ConsoleError as error:
        return ProcessStacks((), problem=error.detail)
