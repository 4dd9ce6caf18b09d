"""What a host may say at most, and in which characters: checked wherever it is said or heard.

A process chooses its own name, and an agent may be another program than ours. No database takes
every character or number that JSON can spell, and no screen should.
"""

from datetime import UTC, datetime
from typing import Annotated

from pydantic import AfterValidator, AwareDatetime, Field

MAX_CHARACTERS = 10_000
_EARLIEST, _LATEST = datetime(1970, 1, 1, tzinfo=UTC), datetime(2200, 1, 1, tzinfo=UTC)
LATEST_SECONDS = int(_LATEST.timestamp()) - 1


def harmless(text: str) -> str:
    """*text* with NUL, cursor moves, directions and half characters spelled out, and cut."""
    if text.isprintable() and len(text) <= MAX_CHARACTERS:
        return text
    kept = text[: MAX_CHARACTERS + 1]
    shown = "".join(c if c.isprintable() or c in "\n\t" else repr(c)[1:-1] for c in kept)
    return shown if len(shown) <= MAX_CHARACTERS else shown[: MAX_CHARACTERS - 1] + "…"


Text = Annotated[str, AfterValidator(harmless)]
Moment = Annotated[AwareDatetime, Field(ge=_EARLIEST, le=_LATEST)]
Count = Annotated[int, Field(ge=0, lt=2**63)]
Pid = Annotated[int, Field(ge=0, lt=2**31)]
Port = Annotated[int, Field(ge=0, lt=2**16)]
Seconds = Annotated[float, Field(ge=0, lt=1e9)]
