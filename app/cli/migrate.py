"""``incident-console migrate``."""

from pathlib import Path
from typing import Annotated

import typer

from app.settings import Settings
from app.store import migrations
from app.store.database import open_database

app = typer.Typer(add_completion=False, rich_markup_mode=None)


@app.command()
def migrate(
    data_dir: Annotated[
        Path | None, typer.Option(help="The console's data folder; ./data by default.")
    ] = None,
    *,
    check: Annotated[
        bool, typer.Option("--check", help="Only look; exit status 1 if something is missing.")
    ] = False,
) -> None:
    """Bring the database to the present schema. Safe to repeat, also while the console serves."""
    settings = Settings.read(**({"data_dir": data_dir} if data_dir else {}))
    engine = open_database(settings.database)
    if not check:
        migrations.upgrade(engine)
    present, needed = migrations.current(engine), migrations.newest()
    engine.dispose()
    typer.echo(f"Schema {present or 'none'}; this version needs {needed}.")
    if present != needed:
        raise typer.Exit(1)
