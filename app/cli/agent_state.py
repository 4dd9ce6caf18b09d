"""Where the agent of this user keeps its state."""

import os
from pathlib import Path
from typing import Annotated

import typer

StateDir = Annotated[
    Path | None,
    typer.Option(
        envvar="INCIDENT_AGENT_STATE_DIR",
        help="The agent's folder; /var/lib/incident-agent for root, else below the home folder.",
    ),
]
KeyFile = Annotated[Path | None, typer.Option(help="The agent's key, where it lies elsewhere.")]


def state_folder(given: Path | None) -> Path:
    """*given*, or this user's own."""
    if given:
        return given
    if os.geteuid() == 0:
        return Path("/var/lib/incident-agent")
    base = os.environ.get("XDG_STATE_HOME")
    return (Path(base) if base else Path.home() / ".local" / "state") / "incident-agent"
