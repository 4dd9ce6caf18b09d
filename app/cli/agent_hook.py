"""``incident-console agent hook``."""

from typing import Annotated

import typer

from app.agent.evidence.hook import take_evidence
from app.cli.agent_state import StateDir, state_folder

app = typer.Typer(add_completion=False, rich_markup_mode=None)
DEADLINE_SECONDS = 20.0

DeadlineSeconds = Annotated[
    float, typer.Option(min=2.0, max=600.0, help="From start to end, whatever hangs.")
]


@app.command()
def hook(
    *, state_dir: StateDir = None, deadline_seconds: DeadlineSeconds = DEADLINE_SECONDS
) -> None:
    """Save stacks, host facts and log tails before a restart; prints what it saved.

    For a liveness probe, preStop or ExecStopPost. Stops and restarts nothing. Exit status 0
    whatever happens, so that the restart goes on; in a probe, let the check itself decide:
    `curl -fsS -m 5 localhost:30000/health || { incident-console agent hook; exit 1; }`.
    """
    take_evidence(state_folder(state_dir), typer.echo, deadline_seconds=deadline_seconds)
