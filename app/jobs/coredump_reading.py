"""Coredumps that are here are read, one a slice and apart from us, and told beside each other."""

import logging
from collections.abc import Mapping
from concurrent.futures import wait
from datetime import UTC, datetime
from functools import partial
from typing import Any

from app.clients.coredumps import inspect_file
from app.domain.coredump.document import unreadable
from app.domain.coredump.kept import compared, shortened
from app.domain.coredump_findings import Dump, coredump_findings
from app.errors import ConsoleError
from app.jobs.looking import Look
from app.jobs.work import LOOK_SECONDS
from app.store import findings
from app.store.aside import aside
from app.store.database import reading, writing
from app.store.dumps_beside import dumps_beside
from app.store.evidence import get_artifact
from app.store.findings import Found
from app.store.stores import Stores
from app.store.tables import Artifact, DiagnosticItem

INSPECTED = "inspected"  # in an item's detail: the document of ``coredump inspect``
TOGETHER = "coredumps"  # in the answer: what the dumps of several ranks say together

log = logging.getLogger(__name__)


def read_next_dump(look: Look) -> bool:
    """Read one coredump that is whole here and was not read yet; whether there was one."""
    item = next((one for one in look.items if _is_due(one)), None)
    if item is None:
        return False
    look.say(f"Reading the coredump of {_label(item)}.")
    document = _document(look, item)
    item.detail = {**item.detail, INSPECTED: document}
    item.fingerprint = document["fingerprint"]
    look.keep([Found(item)])
    conclude(look)
    return True


def conclude(look: Look) -> None:
    """Tell what the dumps say that were read so far, if any was."""
    items = [one for one in look.items if one.kind == "coredump" or one.state == "refused"]
    names = _names(items)
    dumps = [
        Dump(name, item.artifact_id, item.detail[INSPECTED])
        for name, item in zip(names, items, strict=True)
        if item.artifact_id is not None and INSPECTED in item.detail
    ]
    if not dumps:
        return
    together = _together(_beside(look, items))
    conclusion = coredump_findings(dumps, together)
    parts = {TOGETHER: together} if together else {}
    at = datetime.now(UTC)
    with writing(look.work.stores.engine) as session:
        findings.make_of_it(session, look.work.attempt, conclusion, at=at, **parts)


def _is_due(item: DiagnosticItem) -> bool:
    whole = item.kind == "coredump" and item.artifact_id is not None
    return whole and bool(item.detail.get("over")) and INSPECTED not in item.detail


def _document(look: Look, item: DiagnosticItem) -> dict[str, Any]:
    """Of the artifact behind *item*; why it tells nothing where it cannot be read."""
    stores = look.work.stores
    with reading(stores.engine) as session:
        artifact = get_artifact(session, item.artifact_id or 0)
    future = aside(partial(_inspected, stores, artifact), name=f"inspect artifact {artifact.id}")
    while not wait([future], LOOK_SECONDS).done:  # its reader has a limit of its own
        look.work.check()
    error = future.exception()
    if error is None:
        return shortened(future.result())
    says = "Reading it failed; the console's log says why."
    if isinstance(error, ConsoleError):
        says = error.detail
    else:
        log.error("Reading artifact %s failed.", artifact.id, exc_info=error)
    return shortened(unreadable(artifact.name, "not read", says, None))


def _inspected(stores: Stores, artifact: Artifact) -> Mapping[str, Any]:
    """Its commands name the file as a person downloads it, not where it lies here."""
    with stores.artifacts.as_file(artifact.sha256) as path:
        return inspect_file(path, called=artifact.name)


def _beside(look: Look, items: list[DiagnosticItem]) -> list[DiagnosticItem]:
    """*items*, and what earlier diagnostics read of ranks that were not read now."""
    with reading(look.work.stores.engine) as session:
        earlier = dumps_beside(session, look.diagnostic)
    read = {_process(one) for one in items if INSPECTED in one.detail}
    added: dict[tuple[str, str], DiagnosticItem] = {}
    for one in earlier:
        if INSPECTED in one.detail and _process(one) not in read:
            added.setdefault(_process(one), one)
    return [*(one for one in items if _process(one) not in added), *added.values()]


def _process(item: DiagnosticItem) -> tuple[str, str]:
    """The same for two dumps of one rank, whichever process it was."""
    return item.host_name, _label(item)


def _together(items: list[DiagnosticItem]) -> dict[str, Any] | None:
    """What the dumps say beside each other, and which diagnostic has each; None for one alone."""
    if len(items) < 2:
        return None
    names = _names(items)
    told = compared(
        {
            name: item.detail.get(INSPECTED) or item.says
            for name, item in zip(names, items, strict=True)
        }
    )
    by = {name: item.diagnostic_id for name, item in zip(names, items, strict=True)}
    return {**told, "taken_by": by}


def _label(item: DiagnosticItem) -> str:
    return item.rank or f"pid {item.pid}"


def _names(items: list[DiagnosticItem]) -> list[str]:
    """A name of its own for each: ranks of two servers may be called the same."""
    labels = [_label(one) for one in items]
    return [
        label if labels.count(label) == 1 else f"{label} (pid {one.pid} on {one.host_name})"
        for label, one in zip(labels, items, strict=True)
    ]
