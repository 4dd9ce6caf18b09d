"""The raw stacks of a diagnostic as columns: a part of its ranks, in one sample."""

from collections.abc import Sequence
from dataclasses import dataclass
from urllib.parse import urlencode

from app.domain.stack_text import ProcessStacks, read_stacks
from app.errors import ConsoleError
from app.store.artifacts import ArtifactStore
from app.store.tables import Artifact, Diagnostic, DiagnosticItem
from app.web.views.found import STACKS, RankPage, in_order, who
from app.web.views.stacks import (
    COMPARED_PAGE_BYTES,
    PAGE_BYTES,
    Column,
    Room,
    main_told,
    others_told,
)

RANKS_ON_PAGE = 32
RAW = "T2"
MOST_STACK_BYTES = 4 * 1024 * 1024  # of one file; a larger one is for downloading


@dataclass(slots=True)
class RankAsked:
    """A process that was asked, and what came of it."""

    who: str
    host: str
    pid: int | None
    items: list[DiagnosticItem]


@dataclass(frozen=True, slots=True)
class Part:
    """The ranks and the sample that are shown, and what else there is."""

    ranks: Sequence[RankAsked]  # all of them
    samples: Sequence[int]
    sample: int | None
    pages: Sequence[RankPage]
    number: int  # of the page, from 1

    @property
    def first(self) -> int:
        """The number of the first rank that is shown, from 1."""
        return (self.number - 1) * RANKS_ON_PAGE + 1

    @property
    def shown(self) -> Sequence[RankAsked]:
        return self.ranks[self.first - 1 : self.first - 1 + RANKS_ON_PAGE]

    def link(self, rank: str) -> str | None:
        """To the raw stack of *rank*, which may be on another page; None where it has none."""
        place = next((n for n, one in enumerate(self.ranks) if one.who == rank), None)
        if place is None:
            return None
        part = {"sample": self.sample or 1, "ranks": place // RANKS_ON_PAGE + 1}
        return f"?{urlencode(part)}#stack-{place + 1}"


def part_of(
    row: Diagnostic, items: Sequence[DiagnosticItem], *, sample: int | None, number: int
) -> Part:
    """The newest sample and the first ranks where nothing that exists is asked for."""
    ranks = _ranks(row, items) if row.kind in STACKS else []
    samples = sorted({item.sample for item in items if item.sample is not None})
    chosen = sample if sample in samples else next(iter(samples[::-1]), None)
    pages = _rank_pages(ranks)
    return Part(ranks, samples, chosen, pages, min(max(number, 1), max(len(pages), 1)))


def _ranks(row: Diagnostic, items: Sequence[DiagnosticItem]) -> list[RankAsked]:
    """Every process that was asked, those included that nothing came of, by rank."""
    ranks = {
        (str(host["name"]), process_id): RankAsked(
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


def _concerned(ranks: dict[tuple[str, str], RankAsked], item: DiagnosticItem) -> list[RankAsked]:
    """The process of *item*; all of its host where the host as a whole gave nothing."""
    if item.process_id is None:
        return [rank for rank in ranks.values() if rank.host == item.host_name]
    key = (item.host_name, item.process_id)
    rank = ranks.setdefault(key, RankAsked(who(item), item.host_name, item.pid, []))
    rank.who = item.rank or rank.who
    return [rank]


def _rank_pages(ranks: Sequence[RankAsked]) -> list[RankPage]:
    pages = []
    for start in range(0, len(ranks), RANKS_ON_PAGE):
        part = ranks[start : start + RANKS_ON_PAGE]
        pages.append(RankPage(start // RANKS_ON_PAGE + 1, f"{part[0].who} to {part[-1].who}"))
    return pages


def columns_of(
    artifacts: ArtifactStore,
    files: dict[int, Artifact],
    part: Part,
    *,
    raw: bool,
    compared: bool,
) -> list[Column]:
    """Each with its share of the page: its main thread first, then the others."""
    ranks = part.shown
    chosen = [_of_sample(rank.items, part.sample) for rank in ranks]
    read = [_read(artifacts, files, item, raw=raw) for item in chosen]
    share = (COMPARED_PAGE_BYTES if compared else PAGE_BYTES) // max(len(ranks), 1)
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
