"""What a reduction found: the requests as they are to be sent, and the document of ``--json``."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import orjson

from app.domain.counting import counted
from app.domain.replay.answer_cut import most_new_tokens, with_answer_cut
from app.domain.replay.planned import Sending
from app.domain.replay.prompt_cut import prompt_length, with_prompt_cut
from app.domain.replay.reducing import Probe
from app.domain.replay.steps import ranges


@dataclass(frozen=True, slots=True)
class Found:
    """How a reduction ended. *smallest* None: it was not seen that even all of them fail.

    *complete*: nothing was left to try; otherwise *why* says what ended it. *unknown* are probes
    that said nothing and were taken for passing, *why_unknown* why the last run did that said
    nothing. *again*: how often the smallest failed when it was sent again in the end, and of how
    many times. *died*: the target went away when a set failed for the last time; None is unknown.
    """

    smallest: Probe | None
    complete: bool
    why: str | None
    probes: int
    runs: int
    unknown: int = 0
    why_unknown: str | None = None
    again: tuple[int, int] = (0, 0)
    died: bool | None = None


def bodies_of(sendings: Sequence[Sending]) -> tuple[dict[int, int], dict[int, int]]:
    """The lengths of the prompts, and what answers may have at most, by index."""
    lengths, answers = dict[int, int](), dict[int, int]()
    for one in sendings:  # parsed one by one: together they may not fit
        body = orjson.loads(one.body)
        lengths[one.index] = prompt_length(body)
        if most := most_new_tokens(body):
            answers[one.index] = most
    return lengths, answers


def sent_for(probe: Probe, sendings: Mapping[int, Sending]) -> tuple[Sending, ...]:
    """The requests of *probe*, cut as it says, the first of them due at once."""
    chosen = [sendings[index] for index in probe.indexes]
    start = chosen[0].due_seconds if chosen else 0.0
    return tuple(
        replace(one, due_seconds=one.due_seconds - start, body=_body(one, probe)) for one in chosen
    )


def _body(sending: Sending, probe: Probe) -> bytes:
    length = probe.lengths.get(sending.index)
    most = probe.new_tokens.get(sending.index)
    if length is None and most is None:
        return sending.body
    body = orjson.loads(sending.body)
    if length is not None:
        body = with_prompt_cut(body, length)
    return orjson.dumps(body if most is None else with_answer_cut(body, most))


def document(
    found: Found, sendings: Sequence[Sending], files: Mapping[str, str], following: Sequence[str]
) -> dict[str, Any]:
    """What ``reduce --json`` prints. *files* are those that were written, by what they hold."""
    smallest = found.smallest or Probe(())
    again, of = found.again
    return {
        "requests": len(sendings),
        "smallest": None if found.smallest is None else len(smallest.indexes),
        "select": ranges(smallest.indexes) or None,
        "kept": _kept(smallest, sendings),
        "complete": found.complete,
        "why_stopped": found.why,
        "probes": found.probes,
        "runs": found.runs,
        "unknown": found.unknown,
        "why_unknown": found.why_unknown,
        "again": {"failed": again, "of": of},
        "target_died": found.died,
        "says": says(found, len(sendings)),
        "files": dict(files),
        "next": list(following),
    }


def _kept(smallest: Probe, sendings: Sequence[Sending]) -> list[dict[str, Any]]:
    """Each request that is left, with what became of its prompt and of its answer's limit."""
    by_index = {one.index: one for one in sendings}
    lengths, answers = bodies_of([by_index[index] for index in smallest.indexes])
    return [
        {
            "index": index,
            "rid": by_index[index].rid,
            "prompt": _cut(lengths[index] or None, smallest.lengths.get(index)),
            "max_new_tokens": _cut(answers.get(index), smallest.new_tokens.get(index)),
        }
        for index in smallest.indexes
    ]


def _cut(whole: int | None, left: int | None) -> dict[str, int | None]:
    return {"from": whole, "to": whole if left is None else left}


def says(found: Found, total: int) -> str:
    """The finding, in a sentence or a few."""
    return " ".join((*_finding(found, total), *_unknown(found)))


def _finding(found: Found, total: int) -> Iterator[str]:
    if found.smallest is None:
        yield _nothing(found, total)
        return
    kept = len(found.smallest.indexes)
    yield f"{counted(kept, 'request')} of {total:,} {_brings(kept)} the fault about."
    again, of = found.again
    if of:
        yield f"Sent again in the end, it failed {again} of {counted(of, 'time')}."
    if again < of:
        yield "So it comes only now and then: --trials 5, with another --out, may find fewer."
    if not found.complete:
        yield f"Perhaps fewer do: {found.why}"


def _nothing(found: Found, total: int) -> str:
    whole = counted(total, "request")
    if not found.complete:
        return f"{whole} did not bring the fault about so far: {found.why}"
    if found.unknown:
        return f"Nobody can tell whether {whole} {_brings(total)} the fault about{_because(found)}"
    return f"{whole} did not bring the fault about."


def _unknown(found: Found) -> Iterator[str]:
    if found.unknown and found.smallest is not None:
        were = "was" if found.unknown == 1 else "were"
        said = f"{counted(found.unknown, 'probe')} {were} inconclusive and counted as passing"
        yield said + _because(found)


def _because(found: Found) -> str:
    return f": {found.why_unknown.rstrip('.')}." if found.why_unknown else "."


def _brings(count: int) -> str:
    return "brings" if count == 1 else "bring"
