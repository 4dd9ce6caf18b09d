"""Whether a set of requests brings the fault about, by what was seen each time it was sent.

A check may fail for reasons of its own, and a target may still carry what earlier requests left.
So a failure counts once it was seen on a target that had nothing before, and with more than one
witness: the check and the death of the target, or the check twice. What is not known never counts
as failing.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal

Says = Literal["fails", "passes", "unknown"]
_WITNESSES = 2
_MOST_UNKNOWN = 2
_MOST_RUNS = 5


@dataclass(frozen=True, slots=True)
class Run:
    """One time that a set of requests was sent.

    *fresh*: the target had no request since it started; None is unknown. *died*: it was ready
    before, and nothing listened there afterwards. *took_part*: a request did reach it.
    """

    check: Says
    fresh: bool | None
    died: bool = False
    took_part: bool = True

    @property
    def says(self) -> Says:
        return self.check if self.took_part else "unknown"


def decided(runs: Sequence[Run], *, restarts: bool, trials: int = 1) -> Says | None:
    """What *runs* say together; None: it has to be sent once more.

    *restarts*: a fresh target can be had, so failing on a used one is no proof. *trials*: how
    often it has to pass, for faults that do not come each time.
    """
    failed = [one for one in runs if one.says == "fails"]
    counted = sum(one.fresh is True or not restarts for one in failed)
    if counted >= _WITNESSES or any(one.died and one.fresh for one in failed):
        return "fails"
    if sum(one.says == "passes" for one in runs) - counted >= trials:
        return "passes"
    unknown = sum(one.says == "unknown" for one in runs)
    if unknown >= _MOST_UNKNOWN or len(runs) >= _MOST_RUNS + trials:
        return "unknown"
    return None
