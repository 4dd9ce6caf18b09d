"""Answers of NCCL's RAS among other files, as ``stacks compare`` is given them."""

import re
from collections.abc import Sequence

from app.domain.ras.look import RasLook, Unread, counted, look_at
from app.domain.ras.ranks import Known
from app.domain.ras.reading import is_ras, read_status
from app.domain.ras.watch import Taken
from app.domain.stacks.counts import Counted
from app.domain.stacks.samples import Reading
from app.domain.stacks.sources import StackFile
from app.errors import Malformed

_OUR_NAME = re.compile(r"(?:^|/)nccl-ras-[^/]*$")  # as an agent names them
_DIGITS = re.compile(r"(\d{1,18})")


def part(files: Sequence[StackFile]) -> tuple[list[StackFile], list[StackFile]]:
    """NCCL's answers, in the order of their names, and the other files."""
    ras = [one for one in files if _OUR_NAME.search(one.path) or is_ras(one.body)]
    paths = {one.path for one in ras}
    return sorted(ras, key=_in_order), [one for one in files if one.path not in paths]


def look_into(files: Sequence[StackFile], reading: Reading) -> RasLook:
    """What *files* say of the ranks of *reading*; the times in them, if all tell, order them."""
    taken, unread = [], []
    for file in files:
        try:
            taken.append(Taken(read_status(file.body), file.path))
        except Malformed as error:
            unread.append(Unread(file.path, error.detail))
    if all(one.status.written_at for one in taken):
        taken.sort(key=lambda one: one.status.written_at or "")
    return look_at(taken, unread, _known(reading))


def counts_beside(look: RasLook) -> list[Counted]:
    """Counts that may be laid beside stacks: whether growth came before them is not known."""
    return [one for one in counted(look) if not one.grew]


def _in_order(file: StackFile) -> list[tuple[int, str]]:
    parts = _DIGITS.split(file.path)
    return [(int(part), "") if part.isdecimal() else (-1, part) for part in parts]


def _known(reading: Reading) -> list[Known]:
    """Its ranks; py-spy's pids need not be those inside a container."""
    met = {
        one.rank: Known(one.rank, None, one.pid, certain=False, numbers=one.numbers)
        for one in reading.processes
        if one.rank is not None
    }
    lost = {
        one.rank: Known(one.rank, None, one.pid, certain=False, numbers=one.numbers)
        for one in reading.missing
    }
    return list((lost | met).values())
