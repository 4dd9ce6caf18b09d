"""The built wheel alone, in an empty environment and an empty folder, serves the console."""

import os
import subprocess
import sys
import time
import venv
from collections.abc import Iterator
from importlib.metadata import distributions
from pathlib import Path

import httpx
import pytest

from tests.ports import free_port
from tests.wheels import ROOT, build_wheel, install

pytestmark = pytest.mark.slow

START_SECONDS = 60


@pytest.fixture(scope="module")
def wheel(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return build_wheel(tmp_path_factory.mktemp("wheel"))


@pytest.fixture(scope="module")
def python(wheel: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """An environment with the wheel; its dependencies are those of the running tests."""
    home = tmp_path_factory.mktemp("environment")
    venv.create(home, with_pip=False)
    python = home / "bin" / "python"
    install(wheel, "--prefix", str(home))
    [site] = (home / "lib").glob("python3*/site-packages")
    [ours] = [Path(path) for path in sys.path if path.endswith("site-packages")][:1]
    for entry in ours.iterdir():
        if not entry.name.startswith(
            ("incident_console", "_incident_console", "__editable__", "app")
        ) and not (entry.name.endswith(".pth")):
            target = site / entry.name
            if not target.exists():
                target.symlink_to(entry)
    return python


@pytest.fixture(scope="module")
def console(python: Path, tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    folder = tmp_path_factory.mktemp("empty")
    port = free_port()
    environment = {
        name: value
        for name, value in os.environ.items()
        if not name.startswith("INCIDENT_CONSOLE_")
    }
    process = subprocess.Popen(
        [
            python,
            "-I",
            "-m",
            "app",
            "serve",
            "--port",
            str(port),
            "--data-dir",
            str(folder / "data"),
        ],
        cwd=folder,
        env=environment,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
    )
    yield f"http://127.0.0.1:{port}"
    process.terminate()
    process.wait(60)


def _get(url: str) -> httpx.Response:
    deadline = time.monotonic() + START_SECONDS
    while True:
        try:
            return httpx.get(url, follow_redirects=True, timeout=5)
        except httpx.TransportError:
            if time.monotonic() > deadline:
                raise
            time.sleep(0.2)


@pytest.mark.parametrize("file", ["htmx-4.0.1.min.js", "speedscope-1.25.0/speedscope-Y2522XSH.js"])
def test_a_page_and_the_vendored_files_are_served(console: str, file: str) -> None:
    page = _get(f"{console}/")
    script = _get(f"{console}/static/vendor/{file}")

    assert page.status_code == 200
    assert "incident console" in page.text.lower()
    assert script.status_code == 200
    assert script.content == (ROOT / "static/vendor" / file).read_bytes()


def test_the_code_comes_from_the_wheel_and_not_from_the_checkout(python: Path) -> None:
    done = subprocess.run(
        [python, "-I", "-c", "import app; print(app.__file__)"],
        capture_output=True,
        text=True,
        check=True,
        cwd="/",
    )
    assert not done.stdout.startswith(str(ROOT))


def test_the_environment_of_the_tests_keeps_the_checkout(python: Path) -> None:
    [checkout] = [one for one in distributions() if one.name == "incident-console"]
    assert any(file.name == "incident-console" for file in checkout.files or ())
