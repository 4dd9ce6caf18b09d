"""A CPU profile in the bundled speedscope, in a real browser, under its own security policy."""

import json
import subprocess
import sys
from pathlib import Path

import pytest
from playwright.sync_api import Dialog, FrameLocator, Page, expect

from app.agent.touching.tools import find_tool
from tests.e2e.browsing import Visits
from tests.e2e.conftest import Open
from tests.e2e.test_every_page import FAULTS, SIDEWAYS

pytestmark = pytest.mark.browser

WAITS = """
import threading
def wait_for_peer():
    threading.Event().wait()
print(1, flush=True)
wait_for_peer()
"""
HOSTILE = "<img src=x onerror=alert(1)>"
# Speedscope reads pixels back to find what lies under the pointer.
READS_PIXELS = "GPU stall due to ReadPixels"


@pytest.fixture
def recorded(tmp_path: Path) -> Path:
    """What py-spy records of a process that waits; skips the test where it may not."""
    pyspy = find_tool("py-spy")
    if pyspy is None:
        pytest.skip("py-spy is not installed")
    file = tmp_path / "waits.speedscope.json"
    argv = [pyspy, "record", "--format", "speedscope", "--idle", "--duration", "1"]
    with subprocess.Popen([sys.executable, "-c", WAITS], stdout=subprocess.PIPE) as process:
        assert process.stdout
        process.stdout.readline()
        done = subprocess.run(
            [*argv, "--rate", "10", "--pid", str(process.pid), "--output", str(file)],
            capture_output=True,
            check=False,
        )
        process.kill()
    if done.returncode != 0:
        pytest.skip(f"py-spy may not read a process here: {done.stderr.decode()[:200]}")
    return file


def attach(page: Page, file: Path) -> None:
    """Attach *file* to the incident and open it as a flame graph."""
    page.goto("/incidents/6")
    page.get_by_label("Attach a file").set_input_files(file)
    page.get_by_role("button", name="Attach", exact=True).click()
    page.get_by_role("link", name="Open the flame graph").click()


def speedscope(page: Page) -> FrameLocator:
    return page.frame_locator("iframe.flame")


def test_a_profile_of_py_spy_opens_from_its_diagnostic(opened: Open, visits: Visits) -> None:
    page = opened("/diagnostics/3", viewport={"width": 1280, "height": 800})

    page.get_by_role("link", name="Open the flame graph").click()
    expect(speedscope(page).get_by_text('Thread 14791 "MainThread"')).to_be_visible()
    expect(page.get_by_role("heading", level=1)).to_have_text(
        "TP5: 99 samples in 2 s, idle threads included"
    )
    speedscope(page).get_by_text("Sandwich").click()
    expect(speedscope(page).get_by_text("lock_wait")).to_be_visible()
    assert page.evaluate(FAULTS) == []
    assert page.evaluate(SIDEWAYS) == 0
    page.set_viewport_size({"width": 390, "height": 844})
    assert page.evaluate(SIDEWAYS) == 0
    visits.forgive(READS_PIXELS)


def test_what_py_spy_records_now_is_read_too(opened: Open, visits: Visits, recorded: Path) -> None:
    page = opened("/")

    attach(page, recorded)
    expect(speedscope(page).get_by_text("MainThread")).to_be_visible()
    speedscope(page).get_by_text("Sandwich").click()
    expect(speedscope(page).get_by_text("wait_for_peer")).to_be_visible()
    visits.forgive(READS_PIXELS)


def test_a_hostile_profile_is_text_and_a_link_decides_nothing(
    opened: Open, visits: Visits, tmp_path: Path
) -> None:
    file = tmp_path / "hostile.speedscope.json"
    samples = {"type": "sampled", "name": HOSTILE, "unit": "seconds", "startValue": 0}
    samples |= {"endValue": 1, "samples": [[0]], "weights": [1]}
    frames = [{"name": HOSTILE, "file": "javascript:alert(1)", "line": 1}]
    schema = "https://www.speedscope.app/file-format-schema.json"
    file.write_text(
        json.dumps(
            {
                "$schema": schema,
                "name": HOSTILE,
                "profiles": [samples],
                "shared": {"frames": frames},
            }
        )
    )
    page = opened("/")
    asked: list[str] = []

    def refuse(dialog: Dialog) -> None:
        asked.append(dialog.message)
        dialog.dismiss()

    page.on("dialog", refuse)

    attach(page, file)
    expect(speedscope(page).get_by_text(HOSTILE).first).to_be_visible()
    speedscope(page).get_by_text("Sandwich").click()
    expect(speedscope(page).get_by_text(HOSTILE).nth(1)).to_be_visible()
    assert speedscope(page).locator("img").count() == 0

    foreign = "profileURL=https%3A%2F%2Fspeedscope.example%2Fx.json&localProfilePath=x.js"
    page.goto(f"{page.url}/speedscope#{foreign}")
    expect(page.get_by_text(HOSTILE).first).to_be_visible()
    assert asked == []
    assert "example" not in page.url
    visits.forgive(READS_PIXELS)
