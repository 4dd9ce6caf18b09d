"""``incident-console agent key``: the secret that a console needs to ask this agent."""

import typer

from app.agent.door.keys import key
from app.cli.agent_state import KeyFile, StateDir, state_folder
from app.errors import NotFound

app = typer.Typer(add_completion=False, rich_markup_mode=None)


@app.command("key")
def show_key(*, state_dir: StateDir = None, key_file: KeyFile = None) -> None:
    """Print the key, 64 hexadecimal digits. Whoever has it may do what the agent may."""
    path = key_file or state_folder(state_dir) / "key"
    if not path.exists():
        raise NotFound(
            f"There is no key at {path}.",
            fix="The agent makes one on its first start. Name its --state-dir.",
        )
    typer.echo(key(path).hex())
