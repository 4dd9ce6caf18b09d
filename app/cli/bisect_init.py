"""``incident-console bisect init``."""

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Annotated

import typer

from app.cli.fingerprint_key import fingerprint_key
from app.clients.bisect_folder import check_between, checkout_of, commit, write_folder
from app.clients.dumps import Reading
from app.clients.sendings import sendings_of
from app.domain.counting import counted
from app.domain.replay.bisecting import BisectSettings, BisectSymptom, checked, with_free_port
from app.domain.replay.options import DEFAULT_PARALLEL, Options, TargetFacts
from app.domain.replay.planned import Sending
from app.domain.replay.selection import read_selection

app = typer.Typer(add_completion=False, rich_markup_mode=None)

Source = Annotated[
    Path, typer.Argument(metavar="PATH", help="The requests: best those that reduce has left.")
]
Good = Annotated[str, typer.Option(metavar="REV", help="A commit without the fault.")]
Bad = Annotated[str, typer.Option(metavar="REV", help="A later commit with the fault.")]
Launch = Annotated[
    str,
    typer.Option(
        metavar="CMD", help="Starts the server in the checkout; {port} is where the port goes."
    ),
]
Out = Annotated[Path, typer.Option(metavar="DIR", help="A new folder.")]
Checkout = Annotated[Path, typer.Option(help="The git checkout of the server.")]
Port = Annotated[
    int | None,
    typer.Option(min=1, max=65535, help="If the port cannot be told to the server."),
]
Select = Annotated[
    str | None,
    typer.Option(metavar="EXPR", help="0:3,7 or rid=…, state=unfinished, suspect."),
]
OfSymptom = Annotated[BisectSymptom, typer.Option("--symptom", help="What makes a commit bad.")]
Check = Annotated[
    str | None,
    typer.Option(metavar="CMD", help="For --symptom check: its status 0 is good, 125 neither."),
]
LatencySeconds = Annotated[
    float | None, typer.Option(min=0.001, help="For --symptom latency: a longer median is bad.")
]
RightOutput = Annotated[
    str | None,
    typer.Option(metavar="PATTERN", help="For --symptom output: what right answers match."),
]
Setup = Annotated[
    str | None, typer.Option(metavar="CMD", help="Run before the server is, such as an install.")
]
ReadyPath = Annotated[str, typer.Option(help="Answers 200 once the server takes requests.")]
ReadySeconds = Annotated[float, typer.Option(min=1, help="Until then, at most.")]
AnswerSeconds = Annotated[float, typer.Option(min=0.1, help="A longer answer is none.")]
SettleSeconds = Annotated[float, typer.Option(min=0, help="Waited after the last answer.")]
Runs = Annotated[int, typer.Option(min=1, help="How often a good commit gets the requests.")]
Parallel = Annotated[int, typer.Option(min=1, help="In flight at most.")]
AsRecorded = Annotated[
    bool, typer.Option("--as-recorded", help="At the recorded times, not as fast as possible.")
]


@app.command("init")
def init(  # noqa: PLR0913  (each is a flag of its own)
    path: Source,
    *,
    good: Good,
    bad: Bad,
    launch: Launch,
    out: Out,
    checkout: Checkout = Path(),
    port: Port = None,
    select: Select = None,
    symptom: OfSymptom = "crash",
    check: Check = None,
    latency_seconds: LatencySeconds = None,
    right_output: RightOutput = None,
    setup: Setup = None,
    ready_path: ReadyPath = "/health",
    ready_seconds: ReadySeconds = 600.0,
    answer_seconds: AnswerSeconds = 300.0,
    settle_seconds: SettleSeconds = 5.0,
    runs: Runs = 1,
    parallel: Parallel = DEFAULT_PARALLEL,
    as_recorded: AsRecorded = False,
) -> None:
    """Write a script that tests one commit after another, for git bisect run; prints its folder.

    At each commit it starts the server on a free port, sends the requests, looks for the symptom
    and stops the server with all its processes. Exit status of a step: 0 good, 1 bad, 125 cannot
    test. It needs nothing but Python and git. Nothing is started, built or checked out now.
    """
    top = checkout_of(checkout)
    settings = BisectSettings(
        checkout=str(top), good=commit(top, good), bad=commit(top, bad),
        launch=launch if port else with_free_port(launch), port=port,
        symptom="check" if check and symptom == "crash" else symptom, check=check,
        latency_seconds=latency_seconds, right_output=right_output, setup=setup,
        ready_path=ready_path, ready_seconds=ready_seconds, answer_seconds=answer_seconds,
        settle_seconds=settle_seconds, runs=runs, parallel=parallel,
    )  # fmt: skip
    check_between(top, settings.good, settings.bad)
    sendings = _sendings(path, select, as_recorded=as_recorded)
    write_folder(out, checked(settings), sendings)
    typer.echo(f"{counted(len(sendings), 'request')}; now: {out}/run verify", err=True)
    typer.echo(str(out))


def _sendings(path: Path, select: str | None, *, as_recorded: bool) -> Sequence[Sending]:
    """What is sent at each commit; at once, unless *as_recorded*."""
    selection = read_selection(select or "")
    reading = Reading(key=fingerprint_key())
    sendings = sendings_of(path, reading, selection, Options(), TargetFacts()).all
    return sendings if as_recorded else [replace(one, due_seconds=0.0) for one in sendings]
