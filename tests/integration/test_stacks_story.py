"""Stacks while the world goes on: two people at once, a cancel, ends and restarts in between."""

import os
import shutil
import signal
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from fastapi.testclient import TestClient

from app.agent.touching.tools import find_tool
from app.jobs.engine import Engine
from app.main import create_app
from app.settings import Settings
from tests.conftest import BASE_URL, Prepared
from tests.integration.story import Agent, Console, Dumping, dumping, quick_agent
from tests.waiting import until

pytestmark = [
    pytest.mark.slow,
    pytest.mark.skipif(find_tool("py-spy") is None, reason="py-spy is not installed"),
]

THRICE = {"samples": 3, "interval_seconds": 2.0}


@pytest.fixture(scope="module")
def console(prepared: Prepared, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Console]:
    data_dir = tmp_path_factory.mktemp("data")
    shutil.copy(prepared.file, data_dir / "console.sqlite")
    settings = Settings(_env_file=None, data_dir=data_dir, min_free_bytes=0)
    app = create_app(settings, start_work=Engine.start)
    with TestClient(app, BASE_URL, follow_redirects=False) as client:
        client.headers["Sec-Fetch-Site"] = "same-origin"
        client.cookies.set("session", prepared.cookies["admin"])
        yield Console(client)


@pytest.fixture
def agent(tmp_path: Path) -> Iterator[Agent]:
    with quick_agent(tmp_path / "agent") as found:
        yield found


@pytest.fixture
def server(tmp_path: Path) -> Iterator[Dumping]:
    with dumping(tmp_path / "server", ranks=2) as found:
        yield found


@pytest.fixture
def incident(console: Console, agent: Agent, server: Dumping) -> int:
    return console.incident(console.register(agent), server, ranks=2)


def _ranks(console: Console, server: Dumping) -> dict[str, int]:
    [host] = console.get("/hosts")["items"]
    told = console.server(host["id"], server.port, 2)
    return {
        one["rank"]["label"]: one["pid"] for one in told["processes"] if one["role"] == "scheduler"
    }


def _sampled(console: Console, number: int, samples: int) -> bool:
    compared = (console.diagnostic(number)["answer"] or {}).get("comparison")
    return compared is not None and compared["samples"] >= samples


def test_two_who_press_at_once_get_the_stacks_each(console: Console, incident: int) -> None:
    numbers = [console.press(incident, "stacks", samples=2, interval_seconds=1) for _ in range(2)]
    for told in map(console.ended, numbers):
        compared = told["answer"]["comparison"]
        assert (told["state"], compared["captured"], compared["missing"]) == ("done", 2, [])


def test_what_was_taken_before_a_cancel_is_compared_and_says_so(
    console: Console, incident: int
) -> None:
    number = console.press(incident, "stacks", samples=5, interval_seconds=4)
    until(lambda: _sampled(console, number, 1))
    console.post(f"/jobs/{console.diagnostic(number)['job_id']}/cancel")
    told = console.ended(number)
    assert told["answer"]["comparison"]["captured"] == 2
    assert told["answer"]["comparison"]["stuck"] is None


def test_a_rank_that_ends_between_samples_is_named(
    console: Console, incident: int, server: Dumping
) -> None:
    ranks = _ranks(console, server)
    number = console.press(incident, "stacks", **THRICE)
    until(lambda: _sampled(console, number, 1))
    os.kill(ranks["TP1"], signal.SIGKILL)
    compared: dict[str, Any] = console.ended(number)["answer"]["comparison"]
    assert (compared["verdict"], compared["outliers"]) == ("rank divergence", ["TP1"])
    assert "TP1 has ended" in compared["says"]
    page = console.client.get(f"/diagnostics/{number}")
    assert "TP1 has ended" in page.text
    assert "kill -CONT" not in page.text
    told = console.client.get(f"/incidents/{incident}")
    assert "TP1 has ended" in told.text


def test_an_agent_that_is_started_anew_loses_no_sample_that_was_here(
    console: Console, incident: int, agent: Agent
) -> None:
    number = console.press(incident, "stacks", **THRICE)
    until(lambda: _sampled(console, number, 1))
    agent.kill()
    with quick_agent(agent.state_dir, port=int(agent.url.rpartition(":")[2])):
        told = console.ended(number)
    assert told["answer"]["comparison"]["captured"] == 2
    page = console.client.get(f"/diagnostics/{number}")
    assert page.status_code == 200


def test_a_page_outlives_its_artifacts(console: Console, incident: int) -> None:
    number = console.press(incident, "stacks", samples=1)
    console.ended(number)
    said = console.diagnostic(number)["answer"]["comparison"]["says"]
    for one in console.artifacts(incident):
        answer = console.client.post(
            f"/api/v1/artifacts/{one['id']}/purge", json={"reason": "retention"}
        )
        assert answer.status_code == 200
    page = console.client.get(f"/diagnostics/{number}")
    assert page.status_code == 200
    assert console.diagnostic(number)["answer"]["comparison"]["says"] == said
    for one in console.artifacts(incident):
        assert console.client.get(f"/artifacts/{one['id']}/content").status_code == 409
