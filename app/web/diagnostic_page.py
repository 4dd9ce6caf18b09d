"""What a diagnostic's page shows, gathered: its items, and the stacks in the files they name."""

from collections.abc import Sequence
from dataclasses import dataclass

from sqlmodel import Session, col, select

from app.store.artifacts import ArtifactStore
from app.store.diagnostics import items_of
from app.store.same_faults import same_as
from app.store.tables import Artifact, Diagnostic, DiagnosticItem
from app.store.targets import get_target
from app.web.next_looks import next_looks
from app.web.side_by_side import ranks_told
from app.web.stack_columns import Part, columns_of, part_of
from app.web.views.comparison import ComparisonKept, comparison_in
from app.web.views.coredump_card import cards, dumps_in
from app.web.views.diagnostic_finding import UNFINISHED, asked_of
from app.web.views.diagnostics import DiagnosticTold
from app.web.views.found import (
    STACKS,
    Dump,
    Found,
    Refused,
    Taken,
    in_order,
    refusals,
    told_by_hosts,
    who,
)
from app.web.views.ranks import USUAL, Shape
from app.web.views.ras import ras_in
from app.web.views.same_faults import SameFaultsTold


@dataclass(frozen=True, slots=True)
class Asked:
    """Which part of the stacks is asked for; None and 1: the newest sample, the first ranks."""

    sample: int | None = None
    ranks: int = 1
    shape: Shape = USUAL
    raw: bool = False  # whether who asks may read raw evidence

    @property
    def chosen(self) -> bool:
        """Whether it is another part than the one that is shown first."""
        return self.sample is not None or self.ranks > 1


def _asks(part: Part, asked: Asked) -> dict[str, str | int]:
    """The query of a link to what is shown now; empty where nothing was chosen."""
    chosen = {"sample": part.sample or 1, "ranks": part.number} if asked.chosen else {}
    return {**chosen, **asked.shape.query}


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
    part = part_of(row, items, sample=asked.sample, number=asked.ranks)
    comparison = comparison_in(row.answer) if row.kind in STACKS else None
    dumps = [Dump(who(item), item) for item in items if row.kind == "coredump"]
    return Found(
        columns=columns_of(artifacts, files, part, raw=asked.raw, compared=bool(comparison)),
        first_column=part.first,
        samples=part.samples,
        sample=part.sample,
        rank_pages=part.pages if len(part.pages) > 1 else [],
        rank_page=part.number,
        asks=_asks(part, asked),
        dumps=dumps,
        taken=_taken(row, items, files),
        told=told_by_hosts(row),
        refused=_refused(items, comparison) if row.kind != "coredump" else [],
        asked=asked_of(row, items),
        compared=ranks_told(
            comparison,
            next_looks(session, row, items, comparison) if asked.raw else (),
            part.link,
            asked.shape,
        )
        if comparison
        else None,
        cards=cards([(dump.who, dump.item) for dump in dumps]),
        dumps_compared=dumps_in(row.answer),
        ras=ras_in(row.answer),
        same_faults=SameFaultsTold(same_as(session, row.incident_id, _fingerprints(items))),
    )


def _taken(
    row: Diagnostic, items: Sequence[DiagnosticItem], files: dict[int, Artifact]
) -> list[Taken]:
    """What is neither a stack nor a coredump."""
    plain = [item for item in items if row.kind not in (*STACKS, "coredump")]
    return [
        Taken(who(item), item, files.get(item.artifact_id or 0))
        for item in plain
        if item.state != "refused"
    ]


def _fingerprints(items: Sequence[DiagnosticItem]) -> list[str]:
    return [item.fingerprint for item in items if item.fingerprint]


def _refused(items: Sequence[DiagnosticItem], comparison: ComparisonKept | None) -> list[Refused]:
    """Those that the classes do not tell of: beside a comparison, what concerns no rank of it."""
    told = {one.rank for one in comparison.missing} if comparison else set()
    return refusals([item for item in items if who(item) not in told])


def _files(session: Session, items: Sequence[DiagnosticItem]) -> dict[int, Artifact]:
    wanted = [item.artifact_id for item in items if item.artifact_id]
    rows = session.exec(select(Artifact).where(col(Artifact.id).in_(wanted))) if wanted else ()
    return {row.id: row for row in rows if row.id is not None}
