"""``incident-console worker``: one more process that does jobs, without pages."""

import signal
from threading import Event

import typer

from app.cli.console_data import DataDir, migrated, settings_of
from app.jobs.engine import Engine
from app.store.stores import Stores
from app.web import logs

app = typer.Typer(add_completion=False, rich_markup_mode=None)


@app.command()
def worker(*, data_dir: DataDir = None) -> None:
    """Do jobs until told to stop; what is in hand then goes back to the queue."""
    settings = settings_of(data_dir)
    logs.configure(settings)
    stopping = Event()
    for number in (signal.SIGINT, signal.SIGTERM):
        signal.signal(number, lambda *_: stopping.set())
    with migrated(settings):
        stores = Stores.open(settings)
    engine = Engine.start(stores)
    typer.echo(f"Worker {engine.executor_id} is at work.")
    try:
        stopping.wait()
    finally:
        engine.stop()
        stores.close()
