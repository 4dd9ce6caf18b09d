"""The crowded console that benchmarks share, and their table at the end of the run."""

import shutil
from pathlib import Path

import pytest

from app.store.database import open_database
from tests.benchmarks import crowd, table
from tests.conftest import Prepared


@pytest.fixture(scope="session")
def full(prepared: Prepared, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A data folder with 10 000 incidents and 1 000 000 timeline events on SQLite."""
    folder = tmp_path_factory.mktemp("full")
    shutil.copy(prepared.file, folder / "console.sqlite")
    engine = open_database(f"sqlite:///{folder / 'console.sqlite'}")
    crowd.fill(engine)
    engine.dispose()
    return folder


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter) -> None:
    if table.ROWS:
        terminalreporter.section("measured")
        for line in table.lines():
            terminalreporter.write_line(line)
