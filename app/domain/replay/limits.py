"""What a replay may take at most, whatever the target does."""

from dataclasses import dataclass

_MIB = 1024 * 1024


@dataclass(frozen=True, slots=True)
class Limits:
    """*request_seconds* is from when one is sent to its end, *total_seconds* from the start.

    What has not been sent by then is not sent. *patience_seconds* is how long a target that went
    away may take to come back before the rest is not sent. *processes* None: as many as the rate
    asks for.
    """

    connect_seconds: float = 10.0
    request_seconds: float = 600.0
    total_seconds: float = 4 * 3600.0
    patience_seconds: float = 10.0
    answer_bytes: int = 64 * _MIB
    frame_bytes: int = 8 * _MIB
    frames: int = 200_000
    processes: int | None = None


USUAL = Limits()
