"""The shared collection of attacks, through the console: collected, attached, typed as addresses.

Skipped where the collection is not beside this checkout.
"""

import gzip
import re
import time
from collections.abc import Iterator
from itertools import zip_longest
from pathlib import Path
from typing import Any

import orjson
import pytest
from fastapi.testclient import TestClient

from app.jobs.engine import Engine
from app.main import create_app
from app.settings import Settings
from app.store import api_tokens, migrations
from app.store.audit import CLI
from app.store.database import writing
from app.store.stores import Stores
from tests.conftest import BASE_URL
from tests.integration import make
from tests.integration.scripted_target import answers, scripted_target
from tests.integration.shared_tools import SHARED, needs
from tests.waiting import until

pytestmark = pytest.mark.slow

ATTACKS = SHARED / "attacks"
LARGEST_PAGE_BYTES = 400_000
# What no page may hold: markup of theirs, and characters that move a terminal or the eye.
MARKUP = ("<script>alert", "<img src=x", "<svg onload", "{{7*7}}49")
HARMFUL = re.compile("[\0-\x08\x0b\x0c\x0e-\x1f\x7f-\x9f\u202a-\u202e\u2066-\u2069]")
INNOCENT_URLS = {"http://[::ffff:127.0.0.1]/", "http://localtest.me/"}  # only loopback, if anything


@pytest.fixture(scope="module")
def console(tmp_path_factory: pytest.TempPathFactory) -> Iterator[TestClient]:
    """An admin's program at a console that does its jobs."""
    needs("attacks", "MANIFEST.json")
    settings = Settings(_env_file=None, data_dir=tmp_path_factory.mktemp("data"), min_free_bytes=0)
    stores = Stores.open(settings)
    migrations.upgrade(stores.engine)
    stores.close()
    app = create_app(settings, start_work=Engine.start)
    with TestClient(app, BASE_URL, follow_redirects=False) as client:
        with writing(app.state.stores.engine) as session:
            _, token = api_tokens.create_token(
                session, "attacker", role="admin", actor=CLI, at=make.now()
            )
        client.headers["Authorization"] = f"Bearer {token}"
        yield client


def contents(path: Path) -> bytes:
    return gzip.decompress(path.read_bytes()) if path.suffix == ".gz" else path.read_bytes()


def attacks(*folders: str) -> list[Path]:
    return sorted(path for folder in folders for path in (ATTACKS / folder).glob("*"))


# One of each kind in one bundle, so that a bundle is collected for each pair and not for each file.
PAIRS = list(zip_longest(attacks("prom", "text"), attacks("json"), fillvalue=None))


def whole_bundle(console: TestClient, incident_id: int) -> int:
    wanted = {"probe": "never", "interval_seconds": 1}
    asked = console.post(f"/api/v1/incidents/{incident_id}/bundles", json=wanted).json()

    def ended() -> dict[str, Any] | None:
        job: dict[str, Any] = console.get(f"/api/v1/jobs/{asked['job']['id']}").json()
        return None if job["state"] in ("queued", "running") else job

    job = until(ended)
    assert job is not None
    assert job["state"] == "succeeded", job
    return int(asked["bundle"]["id"])


def pages_of(console: TestClient, incident_id: int, bundle_id: int) -> list[str]:
    captures = console.get(f"/api/v1/bundles/{bundle_id}").json()["captures"]
    places = ("", "?at=/0", "?at=/*/*", "?at=line 1", "?at=%00", "?at=sglang:x{", "?at=~")
    return [
        "/",
        "/targets",
        f"/incidents/{incident_id}",
        f"/incidents/{incident_id}.md",
        f"/incidents/{incident_id}.json",
        f"/reports/{incident_id}",
        f"/reports/{incident_id}/shares",
        f"/bundles/{bundle_id}",
        f"/bundles/{bundle_id}/diff/{bundle_id}",
        f"/api/v1/bundles/{bundle_id}/summary",
        f"/api/v1/incidents/{incident_id}/report",
        *(f"/bundles/{bundle_id}/captures/{one['name']}{at}" for one in captures for at in places),
    ]


def faults(console: TestClient, path: str) -> str | None:
    answer = console.get(path)
    if answer.status_code != 200 or len(answer.content) > LARGEST_PAGE_BYTES:
        return f"{path}: {answer.status_code}, {len(answer.content)} bytes"
    if answer.headers["content-type"].startswith("text/html"):
        if found := [one for one in MARKUP if one in answer.text]:
            return f"{path}: {found}"
        if harmful := HARMFUL.search(answer.text):
            return f"{path}: {harmful[0]!r}"
    return None


@pytest.mark.parametrize(
    ("text", "document"), PAIRS or [(None, None)], ids=lambda path: path.name if path else "-"
)
def test_hostile_answers_are_collected_and_every_page_of_them_opens(
    console: TestClient, text: Path | None, document: Path | None
) -> None:
    metrics = answers(contents(text) if text else b"")
    rest = answers(contents(document) if document else contents(text or ATTACKS))
    with scripted_target({"/metrics": metrics}, otherwise=rest) as server:
        target = {"name": f"<script>alert(1)</script> {server.port}", "base_url": server.base_url}
        target_id = console.post("/api/v1/targets", json=target).json()["id"]
        opened = {"title": "<img src=x>{{7*7}}", "target_ids": [target_id]}
        incident_id = console.post("/api/v1/incidents", json=opened).json()["id"]
        bundle_id = whole_bundle(console, incident_id)

    paths = [f"/targets/{target_id}", *pages_of(console, incident_id, bundle_id)]
    assert [fault for path in paths if (fault := faults(console, path))] == []


def incident(console: TestClient) -> int:
    return int(console.post("/api/v1/incidents", json={"title": "files"}).json()["id"])


@pytest.mark.parametrize("folder", ["archive", "pickle"])
def test_hostile_files_are_kept_as_they_are_and_not_unpacked(
    console: TestClient, folder: str
) -> None:
    number = incident(console)
    start = time.process_time()
    for path in attacks(folder):
        kept = console.post(
            f"/api/v1/incidents/{number}/artifacts", files={"file": (path.name, path.read_bytes())}
        )
        assert kept.status_code == 201
        assert kept.json()["bundle_id"] is None
        assert console.get(f"/artifacts/{kept.json()['id']}/content").content == path.read_bytes()
    taken = time.process_time() - start

    assert taken < 20


def test_hostile_file_names_are_shown_only(console: TestClient) -> None:
    number = incident(console)
    names = orjson.loads(needs("attacks", "text", "filenames.json").read_bytes())
    for name in names:
        kept = console.post(
            f"/api/v1/incidents/{number}/artifacts", files={"file": (name, b"<script>")}
        ).json()
        content = console.get(f"/artifacts/{kept['id']}/content")

        assert "/" not in kept["name"]
        assert len(kept["name"]) <= 200
        assert content.headers["content-disposition"].startswith("attachment; ")
        assert content.headers["content-type"] == "application/octet-stream"
        assert "set-cookie" not in content.headers
        assert faults(console, f"/artifacts/{kept['id']}") is None
    assert faults(console, f"/incidents/{number}") is None


def test_no_address_of_the_collection_leads_to_a_metadata_service(console: TestClient) -> None:
    urls = orjson.loads(needs("attacks", "http", "ssrf_urls.json").read_bytes())
    taken = [
        url
        for number, url in enumerate(urls)
        if console.post(
            "/api/v1/targets", json={"name": f"ssrf {number}", "base_url": url}
        ).status_code
        != 422
    ]

    assert set(taken) <= INNOCENT_URLS
