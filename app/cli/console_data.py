"""The console's data folder, opened from the command line, also while a console serves it."""

from collections.abc import Generator
from contextlib import contextmanager
from pathlib import Path
from typing import Annotated

import typer
from sqlalchemy import Engine

from app.settings import Settings
from app.store import migrations
from app.store.database import open_database

DataDir = Annotated[Path | None, typer.Option(help="The console's data folder; ./data by default.")]


def settings_of(data_dir: Path | None) -> Settings:
    """The settings of the environment, with *data_dir* before theirs; raises Misconfigured."""
    return Settings.read(**({"data_dir": data_dir} if data_dir else {}))


@contextmanager
def migrated(settings: Settings) -> Generator[Engine]:
    """The console's database, brought to the present schema."""
    settings.data_dir.mkdir(parents=True, exist_ok=True)
    engine = open_database(settings.database)
    try:
        migrations.upgrade(engine)
        yield engine
    finally:
        engine.dispose()
