"""The wheel with its base dependencies alone is the agent; nothing of the console is needed."""

import re
import subprocess
import sys
import venv
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

import httpx
import pytest

from tests.wheels import ROOT, build_wheel, install, links_into

pytestmark = pytest.mark.slow

ABSENT = ("sqlmodel", "sqlalchemy", "dbos", "obstore", "aiohttp", "jinja2", "alembic", "pwdlib")
SECONDS = 60


@pytest.fixture(scope="module")
def wheel(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return build_wheel(tmp_path_factory.mktemp("wheel"))


@pytest.fixture(scope="module")
def bin_folder(wheel: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Of an environment as `pip install incident-console` makes it."""
    home = tmp_path_factory.mktemp("environment")
    venv.create(home, with_pip=False)
    install(wheel, "--prefix", str(home))
    [site] = (home / "lib").glob("python3*/site-packages")
    links_into(site, home / "bin")
    return home / "bin"


@pytest.fixture(scope="module")
def unpacked(wheel: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The one file to copy, copied and unpacked."""
    made = tmp_path_factory.mktemp("file")
    install(wheel, "--target", str(made / "lib"))
    links_into(made / "lib", made / "lib" / "bin")
    packed = made / "agent.tar.gz"
    subprocess.run([ROOT / "scripts/agent-file", made / "lib", packed], check=True)
    there = tmp_path_factory.mktemp("elsewhere")
    subprocess.run(["tar", "-xzf", packed, "-C", there], check=True)
    return there / "incident-agent"


def _run(*command: str | Path) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        command, cwd="/", capture_output=True, text=True, check=False, timeout=SECONDS
    )


@contextmanager
def _agent(command: Sequence[str | Path], folder: Path) -> Iterator[str]:
    """Where an agent can be reached that *command* started."""
    with subprocess.Popen(
        [*command, "agent", "--port", "0", "--state-dir", folder],
        cwd="/",
        env={"PATH": "/usr/bin:/bin"},
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
    ) as process:
        try:
            assert process.stdout is not None
            first = process.stdout.readline()
            found = re.search(r"http://\S+", first)
            assert found, first + process.communicate(timeout=SECONDS)[0]
            yield found[0]
        finally:
            process.terminate()
            process.wait(SECONDS)


@pytest.mark.parametrize("name", ABSENT)
def test_what_only_the_console_needs_is_not_there(bin_folder: Path, name: str) -> None:
    done = _run(bin_folder / "python", "-I", "-c", f"import {name}")

    assert f"No module named '{name}'" in done.stderr


@pytest.mark.parametrize(
    "words",
    [
        ("--help",),
        ("agent", "--help"),
        ("agent", "serve", "--help"),
        ("agent", "key", "--help"),
        ("agent", "hook", "--help"),
        ("stacks", "take", "--help"),
        ("coredump", "trigger", "--help"),
        ("preflight", "--help"),
        ("launch-env", "--help"),
        ("bundle", "collect", "--help"),
    ],
    ids=" ".join,
)
def test_the_commands_of_a_host_need_no_more(bin_folder: Path, words: tuple[str, ...]) -> None:
    done = _run(bin_folder / "python", "-I", "-m", "app", *words)

    assert done.returncode == 0, done.stderr


def test_the_agent_starts_without_the_console(bin_folder: Path, tmp_path: Path) -> None:
    with _agent([bin_folder / "python", "-I", "-m", "app"], tmp_path / "state") as url:
        answer = httpx.get(f"{url}/agent/v1/alive", trust_env=False)

    assert answer.json()["alive"] is True


def test_the_one_file_runs_where_it_was_copied_to(unpacked: Path, tmp_path: Path) -> None:
    launcher = ["env", f"INCIDENT_AGENT_PYTHON={_python()}", str(unpacked / "incident-console")]
    with _agent(launcher, tmp_path / "state") as url:
        answer = httpx.get(f"{url}/agent/v1/alive", trust_env=False)
    [py_spy] = unpacked.glob("lib/bin/py-spy")

    assert answer.json()["alive"] is True
    assert _run(py_spy, "--version").stdout.startswith("py-spy 0.")
    assert not list(unpacked.rglob("sqlmodel"))


def test_the_one_file_says_which_python_it_needs(unpacked: Path, tmp_path: Path) -> None:
    other = tmp_path / "python"
    other.write_text("#!/bin/sh\nexit 1\n")
    other.chmod(0o755)
    done = _run("env", f"INCIDENT_AGENT_PYTHON={other}", unpacked / "incident-console", "--help")

    assert done.returncode == 1
    assert "built for Python 3." in done.stderr


def _python() -> str:
    """The interpreter below the environment of the tests."""
    return str(Path(sys.executable).resolve())
