"""The requests of a file that are sent again and again, ready to be sent: held, as they are few.

Replay makes each body when it is due; whoever sends parts of them many times needs them at hand.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from app.clients.dumps import Reading
from app.clients.recorded_file import RecordedFile
from app.domain.counting import counted
from app.domain.replay.options import Options, TargetFacts
from app.domain.replay.plan import Plan, plan
from app.domain.replay.planned import Sending
from app.domain.replay.selection import Selection
from app.errors import Rejected, TooLarge

MOST_BYTES = 512 * 1024 * 1024


@dataclass(frozen=True, slots=True)
class Sendings:
    """*all* in the order they are due; *document* is that of ``dump summarize``."""

    all: tuple[Sending, ...]
    plan: Plan
    document: Mapping[str, Any]


def sendings_of(
    file: Path, reading: Reading, selection: Selection, options: Options, facts: TargetFacts
) -> Sendings:
    """What of *file* is sent. Raises Rejected where that is nothing, TooLarge for too much."""
    with RecordedFile(file, reading=reading) as recording:
        suspects = frozenset(one["index"] for one in recording.document["suspects"])
        made = plan(recording.requests(), options, facts, selection=selection, suspects=suspects)
        if not made.schedule.slots:
            why = made.left_out[0].why if made.left_out else "none was chosen"
            raise Rejected(f"No request is left to be sent: {why}.")
        if made.body_bytes > MOST_BYTES:
            raise TooLarge(
                f"{counted(len(made.schedule.slots), 'request')} of"
                f" {made.body_bytes / 1024**2:,.0f} MiB are too much to be sent again and again.",
                fix="Choose fewer with --select, such as those in flight when the server died.",
            )
        return Sendings(tuple(made.sendings(recording.request_at)), made, recording.document)
