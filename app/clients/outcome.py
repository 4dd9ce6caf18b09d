"""From what was measured of one request to its outcome."""

from typing import NamedTuple

from app.clients.answering import Sent
from app.clients.spool import Answered, Place
from app.domain.dumps.scalars import escaped
from app.domain.replay.answer import Answer, pace_ms
from app.domain.replay.logprobs import logprob_gap
from app.domain.replay.outcomes import MOST_SAID_CHARACTERS, Outcome
from app.domain.replay.output import first_divergent


def outcome_of(
    place: Place, sent: Sent, *, due: float, epoch: float, lag: float, recorded: Answered
) -> Outcome:
    """The outcome of *sent*, which was *due* on the monotonic clock.

    *epoch* is that clock's zero in seconds since 1970, *lag* the longest standstill in seconds.
    """
    answer = sent.answer
    out_at = sent.began_at if sent.sent_at is None else sent.sent_at
    pace = pace_ms(answer.moments, answer.counts)
    text = answer.text
    compared = _compared(answer, recorded)
    return Outcome(
        index=place.index,
        rid=place.rid,
        status=sent.status,
        error=sent.error,
        says=None if sent.says is None else escaped(sent.says, MOST_SAID_CHARACTERS),
        sent_at=round(epoch + out_at, 6),
        due_seconds=place.due_seconds,
        lateness_ms=_ms(max(0.0, out_at - due)),
        lag_ms=_ms(lag),
        ttft_seconds=_seconds(answer.moments[0] - out_at) if answer.moments else None,
        e2e_seconds=_seconds(sent.ended_at - out_at),
        prompt_tokens=answer.prompt_tokens,
        completion_tokens=answer.completion_tokens,
        cached_tokens=answer.cached_tokens,
        finish_reason=answer.finish_reason,
        output_characters=len(text) if answer.said_anything else None,
        output_hash=answer.output_hash(),
        inter_token_p50_ms=_rounded(pace[0]) if pace else None,
        inter_token_p99_ms=_rounded(pace[1]) if pace else None,
        frames=answer.frames,
        compared_tokens=compared.tokens,
        first_divergent_token=compared.divergent,
        logprob_gap=compared.gap,
    )


class _Compared(NamedTuple):
    tokens: int
    divergent: int | None = None
    gap: float | None = None


def _compared(answer: Answer, recorded: Answered) -> _Compared:
    ids = answer.ids
    tokens = min(len(recorded.ids), len(ids))
    place = first_divergent(recorded.ids, ids) if tokens else None
    if place is None:
        return _Compared(tokens)
    was = recorded.logprobs[place] if place < len(recorded.logprobs) else None
    told = answer.logprobs_at(place)
    return _Compared(tokens, place, logprob_gap((recorded.ids[place], was), ids[place], told))


def _ms(seconds: float) -> float:
    return round(1000.0 * seconds, 3)


def _rounded(milliseconds: float) -> float:
    return round(milliseconds, 3)


def _seconds(seconds: float) -> float:
    return round(max(0.0, seconds), 6)
