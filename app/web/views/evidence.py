"""The evidence of an incident: a line for each file, and one for all files of a diagnostic."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Self

from app.store.tables import Artifact


@dataclass(frozen=True)
class Batch:
    """The files that one diagnostic took; its page shows them."""

    diagnostic_id: int
    kind: str
    files: int
    size_bytes: int
    tiers: Sequence[str]
    taken_at: datetime  # the newest of them
    taken_by: str
    taken_from: Sequence[str]
    damaged: int  # files that no longer match their hash
    purged: int

    @classmethod
    def of(cls, diagnostic_id: int, files: Sequence[Artifact]) -> Self:
        """*files* as one line, the newest first."""
        return cls(
            diagnostic_id=diagnostic_id,
            kind=files[0].kind,
            files=len(files),
            size_bytes=sum(file.size_bytes for file in files),
            tiers=sorted({file.tier for file in files}),
            taken_at=files[0].taken_at,
            taken_by=files[0].taken_by,
            taken_from=sorted({file.taken_from for file in files}),
            damaged=sum(file.damaged_at is not None for file in files),
            purged=sum(file.purged_at is not None for file in files),
        )


@dataclass(frozen=True)
class EvidenceRow:
    """One line: a file, or the files of a diagnostic; the other is None.

    *dump_id* is the dump that was read from the file, None where it is none.
    """

    artifact: Artifact | None = None
    batch: Batch | None = None
    dump_id: int | None = None


def evidence_rows(
    files: Sequence[Artifact], taken: Mapping[int, int], dumps: Mapping[int, int] | None = None
) -> list[EvidenceRow]:
    """*files* in their order; *taken* tells the diagnostic of a file, *dumps* its dump.

    Where a diagnostic took several, they are one line in the place of the first.
    """
    batches: dict[int, list[Artifact]] = {}
    for file in files:
        if (look := taken.get(file.id or 0)) is not None:
            batches.setdefault(look, []).append(file)
    rows = []
    for file in files:
        batch = batches.get(taken.get(file.id or 0, 0), [])
        if len(batch) < 2:
            rows.append(EvidenceRow(artifact=file, dump_id=(dumps or {}).get(file.id or 0)))
        elif file is batch[0]:
            rows.append(EvidenceRow(batch=Batch.of(taken[file.id or 0], batch)))
    return rows
