"""Files of a diagnostic are one line in the evidence of an incident."""

from typing import Any

from app.store.tables import Artifact
from app.web.views.evidence import evidence_rows
from tests.make import NOON


def file(number: int, **given: Any) -> Artifact:
    return Artifact(
        **{
            "id": number,
            "kind": "stacks",
            "name": f"{number}.json",
            "sha256": "0" * 64,
            "size_bytes": 10,
            "tier": "T1",
            "taken_by": "mira",
            "taken_at": NOON,
            "taken_from": "host gpu-14",
            **given,
        }
    )


def test_several_files_of_one_look_are_one_line_in_the_place_of_the_newest() -> None:
    files = [file(5), file(4), file(3, kind="bundle"), file(2), file(1)]

    rows = evidence_rows(files, {5: 7, 4: 7, 2: 7, 1: 8})

    assert [row.artifact and row.artifact.id for row in rows] == [None, 3, 1]
    batch = rows[0].batch
    assert batch is not None
    assert (batch.diagnostic_id, batch.files, batch.size_bytes) == (7, 3, 30)


def test_a_damaged_or_purged_file_is_not_lost_in_its_line() -> None:
    files = [file(2, damaged_at=NOON), file(1, purged_at=NOON, tier="T2")]

    batch = evidence_rows(files, {1: 7, 2: 7})[0].batch

    assert batch is not None
    assert (batch.damaged, batch.purged, batch.tiers) == (1, 1, ["T1", "T2"])
