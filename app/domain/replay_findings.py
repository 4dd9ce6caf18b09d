"""The document of a replay → claims of the incident.

They speak of the target of the replay, which serves nobody: whatever became of it, the servers
of the incident are not judged by it.
"""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from app.domain.claims import Claim, Evidence, Level, Status
from app.domain.counting import counted
from app.domain.findings import Conclusion, Open

NAMED = 5  # requests in a sentence
_LONGEST_WHY = 600
_CAME_BACK = {
    "crash": "The crash came back",
    "hang": "The hang came back",
    "latency": "The slowness came back",
    "error": "The error came back",
    "output": "The wrong output came back",
}


@dataclass(frozen=True, slots=True)
class Sent:
    """One side of a replay as claims speak of it. *document* is that of ``replay --json``."""

    target: str
    document: Mapping[str, Any]
    artifact_id: int  # the outcomes
    deaths: Sequence[tuple[int, Mapping[str, Any]]] = ()  # number of the trial, ``died``


def replay_findings(replay_id: int, sides: Sequence[Sent]) -> Conclusion:
    """What a replay claims of the incident."""
    claims = [claim for side in sides for claim in _claims(replay_id, side)]
    shown = [one for one in sides if one.document.get("verdict", "").startswith("reproduced")]
    return Conclusion(tuple(claims), settles=tuple(_reduce(replay_id, one) for one in shown[:1]))


def death_told(died: Mapping[str, Any]) -> str:
    """The sentence of a death with the requests in flight by their index."""
    flight = [int(one) for one in died.get("in_flight") or ()]
    named = ", ".join(str(one) for one in flight[:NAMED])
    more = f" and {len(flight) - NAMED} more" if len(flight) > NAMED else ""
    in_flight = f" In flight: {named}{more}." if flight else ""
    return f"{died.get('says')}{in_flight}"


def _claims(replay_id: int, side: Sent) -> Iterator[Claim]:
    artifact = f"artifact {side.artifact_id}"
    for number, died in side.deaths:
        sure = bool(died.get("certain"))
        says = f"In replay {replay_id} on {side.target}: {death_told(died)}"
        proof = (Evidence(artifact, f"trial {number}, request {died.get('last_sent')}", None),)
        status = Status.ESTABLISHED if sure else Status.SUPPORTED
        yield Claim("replay-target-died", says, status, proof, Level.WARN)
    yield _verdict(replay_id, side, artifact)


def _verdict(replay_id: int, side: Sent, artifact: str) -> Claim:
    document = side.document
    word, why = str(document.get("verdict")), str(document.get("why"))[:_LONGEST_WHY]
    proof = (Evidence(artifact, "verdict", word),)
    where = f"in replay {replay_id} on {side.target}"
    if word.startswith("reproduced"):
        came = _CAME_BACK.get(str(document.get("symptom")), "It came back")
        level, status = Level.WARN, Status(str(document.get("status")))
        return Claim("replay-reproduced", f"{came} {where}. {why}", status, proof, level)
    if word == "not reproduced":
        sent = counted(int(document.get("sent") or 0), "request")
        says = f"It did not come back {where}, {sent}. {why}"
        return Claim("replay-not-reproduced", says, Status.SUPPORTED, proof)
    says = f"What {where[3:]} says is open. {why}"
    return Claim("replay-inconclusive", says, Status.UNKNOWN, proof)


def _reduce(replay_id: int, side: Sent) -> Open:
    return Open(
        f"Reduce the requests of replay {replay_id} to the smallest set that still does it.",
        "One request that fails by itself is what a fix can be tested with.",
        f"None for production: {side.target} is brought down again and again.",
        place="replay",
        place_id=replay_id,
    )
