"""One ``incident-console reduce`` from the first look at the target to the smallest set."""

import sys
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from hashlib import sha256
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import orjson
import typer

from app.cli.fingerprint_key import fingerprint_key
from app.cli.stopping import stopped_once
from app.cli.summary_text import printable
from app.clients import looks
from app.clients.disposable import Disposable, Ways
from app.clients.dumps import Reading
from app.clients.reduced_files import ReducedFiles
from app.clients.reduction import Budget, Reduction
from app.clients.sendings import Sendings, sendings_of
from app.clients.steps_file import StepsFile
from app.clients.target import TargetAddress
from app.domain.counting import counted
from app.domain.observed import Observed
from app.domain.redaction import keyed_fingerprint
from app.domain.replay.command_lines import Known, bisect_line
from app.domain.replay.guards import Asked, refusals
from app.domain.replay.options import Options
from app.domain.replay.planned import Sending
from app.domain.replay.selection import read_selection
from app.domain.replay.smallest import Found, document, says, sent_for
from app.domain.replay.symptoms import Symptom
from app.domain.replay.target import facts_of, loads_of
from app.errors import Conflict, Interrupted, Rejected


@dataclass(frozen=True, slots=True)
class Chosen:
    """What the command line says."""

    path: Path
    select: str | None
    options: Options
    ways: Ways
    budget: Budget
    yes: bool
    as_json: bool


def run(chosen: Chosen, address: TargetAddress, files: ReducedFiles) -> None:
    """Look, ask, reduce, write and tell. Raises Interrupted when it was stopped by hand."""
    files.check_ours()
    seen = looks.settled(address, keyed_fingerprint(fingerprint_key()))
    _refuse(seen)
    sendings = sendings_of(
        chosen.path,
        Reading(key=fingerprint_key()),
        read_selection(chosen.select or ""),
        chosen.options,
        facts_of(seen),
    )
    _consent(seen, sendings, chosen)
    try:
        with stopped_once():
            by_hand = _reduced(sendings.all, _start(chosen, sendings), chosen, address, files)
    except KeyboardInterrupt as error:
        raise Interrupted("Stopped by hand before there was anything to tell.") from error
    if by_hand:
        raise Interrupted(
            "Stopped by hand; what was found is kept.", fix="The same command goes on from there."
        )


def _reduced(
    sendings: Sequence[Sending],
    start: Mapping[str, Any],
    chosen: Chosen,
    address: TargetAddress,
    files: ReducedFiles,
) -> bool:
    """Reduce, write and tell; returns whether it was stopped by hand. The target has ended."""
    with (
        StepsFile(files.steps, start) as steps,
        Disposable(address, chosen.ways, keyed_fingerprint(fingerprint_key())) as target,
    ):
        reduction = Reduction(target, sendings, chosen.options, chosen.budget, steps, _tell)
        found = reduction.run()
    _write(found, sendings, chosen, address, files)
    return reduction.by_hand


def _refuse(seen: Observed) -> None:
    """Raises Conflict for what no confirmation answers: it serves somebody, or half a server."""
    final = [one for one in refusals(_asked(seen)) if not one.confirmable]
    if final:
        says = " ".join(one.says for one in final)
        raise Conflict(f"{says} Nothing was sent.", fix=final[0].fix)


def _consent(seen: Observed, sendings: Sendings, chosen: Chosen) -> None:
    """Returns once a person, or --yes, said that this target may be killed."""
    name, count = _name(seen), counted(len(sendings.all), "request")
    what = f"{count}, and ever fewer of them, are sent to {name} until it fails, again and again."
    typer.echo(printable(what), err=True)
    if chosen.yes:
        return
    if not sys.stdin.isatty():
        raise Conflict(
            "Nothing was sent: nobody confirmed it.",
            fix="Look that the target serves nobody, then give --yes.",
        )
    typer.echo(f"Type {name} to go on: ", err=True, nl=False)
    if sys.stdin.readline().strip() != name:
        raise Conflict("Nothing was sent: that is not its name.")


def _asked(seen: Observed) -> Asked:
    """The target as the guards see it; nobody is here who could have marked it as clean."""
    return Asked(
        _name(seen),
        clean=False,
        loads=loads_of(seen),
        disaggregation=facts_of(seen).disaggregation,
    )


def _name(seen: Observed) -> str:
    return urlsplit(seen.bundle.base_url).netloc


def _start(chosen: Chosen, sendings: Sendings) -> Mapping[str, Any]:
    """What makes the steps this reduction's: other requests or another check are another one."""
    digest = sha256()
    for one in sendings.all:
        digest.update(orjson.dumps([one.index, one.path, one.due_seconds]) + one.body)
    options = chosen.options
    return {
        "requests": len(sendings.all),
        "sha256": digest.hexdigest(),
        "check": list(chosen.ways.check),
        "mode": options.mode,
        "parallel": options.parallel,
        "trials": chosen.budget.trials,
    }


def _tell(line: str) -> None:
    typer.echo(printable(line), err=True)


def _write(
    found: Found,
    sendings: Sequence[Sending],
    chosen: Chosen,
    address: TargetAddress,
    files: ReducedFiles,
) -> None:
    """The files of the smallest set, and what was found on stdout; raises Rejected for none."""
    written, following = {"steps": str(files.steps)}, []
    if found.smallest is not None:
        kept = sent_for(found.smallest, {one.index: one for one in sendings})
        written = dict(
            files.write(
                kept,
                address.base_url,
                with_token=address.token is not None,
                together=chosen.options.parallel > 1,
            )
        )
        symptom: Symptom | None = "crash" if found.died else None
        following = [bisect_line(Known(str(files.out), address.base_url, symptom)).text]
    told = document(found, sendings, written, following)
    if chosen.as_json:
        sys.stdout.buffer.write(orjson.dumps(told) + b"\n")
    else:
        _print(told)
    if found.smallest is None:
        raise Rejected(says(found, len(sendings)), fix=_fix(found))


def _fix(found: Found) -> str | None:
    """What else may bring the fault about, where all was sent and did not."""
    if not found.complete or found.unknown:
        return None
    return (
        "Send them more often (--trials 10), at the recorded times (--speed 1), one by one"
        " (--parallel 1), or with more of those that came before."
    )


def _print(told: Mapping[str, Any]) -> None:
    typer.echo(printable(told["says"]))
    for name, path in told["files"].items():
        typer.echo(f"  {name:<9} {printable(path)}")
    for line in told["next"]:
        typer.echo(f"  next      {printable(line)}")
