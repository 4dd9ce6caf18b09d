"""The document of a dump → claims: what was in flight, and which request deserves a look first.

A dump is no proof of a crash: some versions write one when they end in good order. So no problem
class follows from it, and a suspect stays a suspect until a replay says otherwise.
"""

from collections.abc import Iterator, Mapping
from typing import Any

from app.domain.claims import Claim, Evidence, Status
from app.domain.findings import Conclusion, Open

CRASH_DUMP = "crash dump"
REPLAY_ADVICE = "Replay request"  # how the step begins that would settle what a suspect is
LONGEST_SHOWN = 300
_MOST_SUSPECTS = 3  # that become claims; all of them stand on the page of the dump


def dump_findings(document: Mapping[str, Any], *, artifact_id: int, name: str) -> Conclusion:
    """What *document* of ``dump summarize`` claims of the incident."""
    artifact = f"artifact {artifact_id}"
    if document.get("kind") == "unreadable":
        return Conclusion((_unreadable(document, artifact, name),))
    if document.get("kind") != CRASH_DUMP:
        return Conclusion(())  # it holds what had finished before anything went wrong
    suspects = [one for one in document.get("suspects") or () if one.get("trigger")]
    claims = [
        *_in_flight(document, artifact, name),
        *(_suspect(one, artifact, name) for one in suspects[:_MOST_SUSPECTS]),
    ]
    return Conclusion(tuple(claims), settles=tuple(_replay(one, name) for one in suspects[:1]))


def _unreadable(document: Mapping[str, Any], artifact: str, name: str) -> Claim:
    problems = [str(one) for one in document.get("problems") or ()]
    why = problems[0][:LONGEST_SHOWN] if problems else "it is no dump that is known here."
    says = f"{name} cannot be read: {why}"
    return Claim("dump-unreadable", says, Status.UNKNOWN, (Evidence(artifact, "problems", why),))


def _in_flight(document: Mapping[str, Any], artifact: str, name: str) -> Iterator[Claim]:
    unfinished, total = document.get("unfinished"), document.get("requests_total")
    if not unfinished:
        return
    were = "was" if unfinished == 1 else "were"
    says = f"{unfinished} of {total} requests {were} unfinished when {name} was written."
    proof = (Evidence(artifact, "unfinished", unfinished),)
    yield Claim("requests-in-flight", says, Status.ESTABLISHED, proof)


def _suspect(suspect: Mapping[str, Any], artifact: str, name: str) -> Claim:
    """How sure it is, the rules of ``dumps.suspects`` say."""
    index, why = suspect.get("index"), str(suspect.get("why"))[:LONGEST_SHOWN]
    proof = (Evidence(artifact, f"request {index}", suspect.get("rid")),)
    if suspect.get("trigger") == Status.SUPPORTED:
        says = f"Request {index} of {name} is most likely the trigger: {why}"
        return Claim("suspect-request", says, Status.SUPPORTED, proof)
    says = f"Request {index} of {name} may be the trigger: {why}"
    return Claim("suspect-request", says, Status.HYPOTHESIS, proof)


def _replay(suspect: Mapping[str, Any], name: str) -> Open:
    return Open(
        f"{REPLAY_ADVICE} {suspect.get('index')} of {name} against a server that serves nobody.",
        "It is the trigger only if the fault comes back with it.",
        "None for production: the target has to be clean.",
        place="ask for a replay",
    )
