"""One request as it will be sent, and what the recording says of how it went the first time."""

from collections.abc import Sequence
from dataclasses import dataclass, replace

from app.domain.dumps.recorded import State

OF_ANSWER = frozenset(("output_ids", "output_logprobs"))  # of Recorded: what is no figure


@dataclass(frozen=True, slots=True)
class Recorded:
    """How a request went when it was recorded; None is unknown, *state* None: never sent.

    *output_ids* are the tokens it answered, where they are kept (tier T2), for the comparison, and
    *output_logprobs* how likely each was, where that was asked; *greedy*: each was the likeliest,
    so the same request should have the same answer, None also where another one is sent.
    """

    state: State | None = None
    prompt_tokens: int | None = None
    completion_tokens: int | None = None
    cached_tokens: int | None = None
    ttft_seconds: float | None = None
    e2e_seconds: float | None = None
    finish_reason: str | None = None
    output_ids: Sequence[int] | None = None
    output_logprobs: Sequence[float] | None = None
    greedy: bool | None = None

    def without_answer(self) -> "Recorded":
        """The figures alone."""
        return replace(self, output_ids=None, output_logprobs=None)


@dataclass(frozen=True, slots=True)
class Sending:
    """A request ready to be sent, once *due_seconds* have passed since the start of the replay.

    *index* and *rid* are the recording's; the body carries no identifier of it. *stripped* names
    the fields that were taken out, changed or added, as ``sanitising`` tells them.
    """

    index: int
    rid: str | None
    due_seconds: float
    path: str  # below the target's base URL: /generate, /encode, /v1/chat/completions …
    body: bytes  # JSON
    stream: bool
    stripped: tuple[str, ...] = ()
    recorded: Recorded = Recorded()
