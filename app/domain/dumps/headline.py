"""What a file of requests comes to, as the title of a page: a finding, made of its document."""

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from app.domain.counting import counted
from app.domain.dump_words import states_of

_APART = ("the only ", "the longest ")  # how a reason begins that sets a request apart


def headline(document: Mapping[str, Any], name: str) -> str:
    """``30 of 131 requests were unfinished when …``; *name* is what the file is called."""
    total = document.get("requests_total") or 0
    match document.get("kind"):
        case "crash dump":
            return _crash(document, total)
        case "request dump":
            never = "" if document.get("unfinished") else ": a request dump never holds what hung"
            return f"{_all(document, total)}{never}"
        case "requests":
            return _requests(document, total)
        case _ if document.get("dumps_inside") is not None:
            files = counted(len(document.get("members") or ()), "file")
            return f"{name} is an archive of {files}; {document['dumps_inside']} became dumps here"
        case _:
            saved = f"; {counted(total, 'request')} could be saved" if total else ""
            return f"{name} cannot be read{saved}"


def suspected(document: Mapping[str, Any]) -> str | None:
    """What sets the first suspect that was in flight apart; None where none is set apart.

    A request that had been answered is no suspect here, however odd it is.
    """
    for suspect in _suspects(document):
        index, reasons = suspect.get("index"), list(_reasons(suspect))
        if not any(reason.startswith("unfinished") for reason in reasons):
            continue
        apart = next((reason for reason in reasons if reason.startswith(_APART)), None)
        if suspect.get("trigger") == "supported":
            return f"request {index} is most likely the trigger: {apart or reasons[0]}"
        if apart and apart.startswith(_APART[0]):
            return f"request {index} is {apart}"
        if apart:
            return f"request {index} has {apart}"
    return None


def _crash(document: Mapping[str, Any], total: int) -> str:
    unfinished = document.get("unfinished") or 0
    if not unfinished and not document.get("not_recorded"):
        return f"{_all(document, total)} when the server wrote this crash dump"
    if not unfinished:
        return _all(document, total)
    were = "was" if unfinished == 1 else "were"
    says = f"{unfinished:,} of {counted(total, 'request')} {were} unfinished"
    says += " when the server wrote this"
    apart = suspected(document)
    return f"{says}; {apart}" if apart else says


def _all(document: Mapping[str, Any], total: int) -> str:
    aborted = document.get("aborted") or 0
    ended = f", {aborted:,} of them aborted" if aborted else ""
    if unknown := document.get("not_recorded"):
        return f"{counted(total, 'request')}; of {unknown:,} the file does not tell how they fared"
    if document.get("unfinished"):
        return f"{counted(total, 'request')}, {document['unfinished']:,} unfinished"
    return f"{counted(total, 'request')} had ended{ended}"


def _requests(document: Mapping[str, Any], total: int) -> str:
    if document.get("not_recorded") == total:
        return f"{counted(total, 'request')} to send; how they fared is not recorded"
    told = {**states_of(document)}
    told.pop("not_recorded", None)
    parts = [f"{count:,} {state}" for state, count in told.items()]
    return f"{counted(total, 'request')}: {', '.join(parts)}"


def _suspects(document: Mapping[str, Any]) -> Sequence[Mapping[str, Any]]:
    return document.get("suspects") or ()


def _reasons(suspect: Mapping[str, Any]) -> Iterator[str]:
    """The reasons in its ``why``, the most telling first."""
    why = str(suspect.get("why"))
    if suspect.get("trigger"):
        why = why.partition("): ")[2]
    yield from why.split("; ")
