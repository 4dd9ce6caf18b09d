"""Log lines: one for each event, whatever the input is, and no secret in any."""

import json
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
PROGRAM = """
import sys
import structlog
from app.settings import Settings
from app.web import logs
logs.configure(Settings(_env_file=None, log_format=sys.argv[1], log_level="info"))
log = structlog.get_logger()
log.info("said", text='a\\n{"event": "forged"}\\x1b[2J\\u2028b')
log.debug("not told")
try:
    raise ValueError("first\\n{\\"event\\": \\"forged\\"}")
except ValueError:
    log.exception("failed")
"""


@pytest.fixture(params=["json", "text"])
def lines(request: pytest.FixtureRequest) -> list[str]:
    command = [sys.executable, "-c", PROGRAM, request.param]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=True)
    assert done.stdout == ""
    return done.stderr.splitlines()


def test_no_input_can_forge_a_line_or_move_a_terminal(lines: list[str]) -> None:
    assert lines
    for line in lines:
        assert "\x1b" not in line
        assert not line.startswith('{"event": "forged"')


def test_a_level_below_the_setting_is_not_told(lines: list[str]) -> None:
    assert not any("not told" in line for line in lines)


def test_json_lines_are_whole_documents_with_time_and_level() -> None:
    command = [sys.executable, "-c", PROGRAM, "json"]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=True)

    said, failed = [json.loads(line) for line in done.stderr.splitlines()]
    assert said["level"] == "info"
    assert said["at"].endswith("Z")
    assert "ValueError" in failed["exception"]
