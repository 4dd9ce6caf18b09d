"""The samples of a diagnostic as files that can be compared, with what is known of each."""

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any

import orjson

from app.domain.endpoints import MIB
from app.domain.stacks.sources import StackFile
from app.errors import ConsoleError, TooLarge
from app.jobs.looking import Look
from app.store.database import reading
from app.store.evidence import get_artifact
from app.store.tables import DiagnosticItem

MOST_FILE_BYTES = 8 * MIB
_ODD = re.compile(r"[^A-Za-z0-9_.]")
MOST_BYTES = 256 * MIB  # of all samples together


@dataclass(slots=True)
class Gathered:
    """Files as ``stacks take`` writes them, and the number of each artifact by path."""

    files: list[StackFile] = field(default_factory=list)
    artifacts: dict[str, int] = field(default_factory=dict)
    size_bytes: int = 0


def gathered(look: Look) -> Gathered:
    """Each host is a folder with its samples and an ``answer.json``, as for the command line.

    A sample whose bytes cannot be read is refused with the reason; so is a process of a host
    that did not answer.
    """
    found = Gathered()
    for host in look.hosts:
        folder = f"host-{host['name'].replace('/', '_')}"
        items = [one for one in look.items if one.host_id == host["host_id"]]
        answer: dict[str, Any] = {"done": [], "refused": []}
        for item in items:
            if item.state == "done" and item.artifact_id is not None:
                _add(look, found, answer, folder, item)
            else:
                answer["refused"] += _refusals(host, item)
        found.files.append(StackFile(f"{folder}/answer.json", orjson.dumps(answer)))
    return found


def _add(
    look: Look, found: Gathered, answer: dict[str, Any], folder: str, item: DiagnosticItem
) -> None:
    label = _ODD.sub("_", item.rank or "pid")
    name = f"{label}-{item.pid}-{item.sample}.pyspy.json"
    path = f"{folder}/{name}"
    try:
        body = _body(look, item, left_bytes=MOST_BYTES - found.size_bytes)
    except ConsoleError as error:
        answer["refused"].append(_refusal(item, str(item.process_id), item.rank, error.detail))
        return
    found.files.append(StackFile(path, body))
    found.size_bytes += len(body)
    if item.artifact_id is not None:
        found.artifacts[path] = item.artifact_id
    answer["done"].append(_note(item, name))


def _body(look: Look, item: DiagnosticItem, *, left_bytes: int) -> bytes:
    """Raises NotFound, Damaged, or TooLarge where nothing more is read."""
    if left_bytes <= 0:
        raise TooLarge("The stacks of this diagnostic are too large to be compared whole.")
    with reading(look.work.stores.engine) as session:
        sha256 = get_artifact(session, item.artifact_id or 0).sha256
    return look.work.stores.artifacts.read(sha256, min(MOST_FILE_BYTES, left_bytes))


def _note(item: DiagnosticItem, name: str) -> dict[str, Any]:
    return {
        "process_id": item.process_id,
        "pid": item.pid,
        "rank": item.rank,
        "sample": item.sample,
        "taken_at": item.taken_at.isoformat() if item.taken_at else None,
        "mode": item.mode,
        "exact": item.exact,
        "state_before": item.detail.get("state_before"),
        "state_after": item.detail.get("state_after"),
        "file": {"name": name},
    }


def _refusals(host: Mapping[str, Any], item: DiagnosticItem) -> Iterator[dict[str, Any]]:
    """One for each process that it is about: a host that is silent is silent for all of them."""
    if item.process_id is not None:
        yield _refusal(item, item.process_id, item.rank, item.says)
        return
    for process_id in host["process_ids"]:
        yield _refusal(item, process_id, host["ranks"].get(process_id), item.says)


def _refusal(
    item: DiagnosticItem, process_id: str, rank: str | None, reason: str
) -> dict[str, Any]:
    return {
        "process_id": process_id,
        "rank": rank,
        "kind": item.kind,
        "reason": reason,
        "fix": item.fix,
        "command": item.command,
    }
