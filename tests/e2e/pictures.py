"""The pictures of the README, of a seeded console: python -m tests.e2e.pictures (make screenshots).

A picture is of a page as it is served; what changes with the clock differs from run to run.
"""

from datetime import UTC, datetime, timedelta
from pathlib import Path
from tempfile import TemporaryDirectory

from playwright.sync_api import Browser

from app.domain.capture import Capture
from app.domain.playbook import NoteAdded
from app.settings import Settings
from app.store import evidence, timeline
from app.store.audit import Actor
from app.store.database import writing
from app.store.incidents import Changes, change_incident, get_incident
from app.store.stores import Stores
from app.store.tables import Incident
from tests import bundles, make, seed
from tests.bundles import answered, loads, metrics, rank, silent
from tests.e2e.browsing import PHONE, chromium, sign_in
from tests.integration.test_serve import serving

IMAGES = Path(__file__).parents[2] / "docs" / "images"
MAX_BYTES = 300_000
DESK = {"viewport": {"width": 1440, "height": 1000}, "color_scheme": "light"}
JONAS, MIRA = Actor("jonas", "user", "operator"), make.MIRA
MODEL = {"model_path": "Qwen/Qwen3-235B-A22B", "served_model_name": "qwen3-235b"}
STACKS = b"Process 43010: sglang::scheduler_TP7\n    all_reduce (torch/distributed)\n" * 180


def served_well() -> list[Capture]:
    """The day before: tokens come out between the two scrapes."""
    info = {**MODEL, "tp_size": 8, "weight_version": "0411"}
    busy = rank(num_running_reqs=24, gen_throughput=1920.0, max_running_requests=64)
    return [
        *bundles.serving(busy, info=info),
        answered("model_info", {**MODEL, "weight_version": "0411"}),
        answered("metrics_1", metrics(generation_tokens_total=61_000_000), at=0.2),
        answered("metrics_2", metrics(generation_tokens_total=61_019_200), at=10.2),
    ]


def hangs() -> list[Capture]:
    """Work is inside, no scheduler spoke for minutes, and /ready is green."""
    frozen = rank(
        num_running_reqs=31,
        num_waiting_reqs=12,
        age=212.6,
        token_usage=0.61,
        max_running_requests=128,
    )
    still = metrics(generation_tokens_total=88_102_441, num_running_reqs=31, num_queue_reqs=12)
    return [
        answered("ready", b"OK", seconds=0.003),
        answered("model_info", {**MODEL, "weight_version": "0413"}, seconds=0.004),
        silent("server_info", at=1.0),
        answered("loads_all_1", loads(frozen), at=6.0),
        answered("metrics_1", still, at=0.2),
        answered("metrics_2", still, at=10.2),
        answered("health_generate", b"", status=503, at=11.0, seconds=20.0),
    ]


def night(stores: Stores, now: datetime) -> int:
    """The number of an incident in its ninth minute, with all that was noted and taken."""
    target = make.target(stores, "decode-c", created_at=now - timedelta(days=9))
    before = make.incident(stores, "First tokens are slow", target, at=now - timedelta(hours=26))
    make.bundle(stores, before, target, served_well(), at=now - timedelta(hours=25))
    began = now - timedelta(minutes=11)
    incident = make.incident(
        stores,
        "decode-c answers but generates nothing",
        target,
        at=began + timedelta(minutes=2),
        severity="sev1",
        started_at=began,
    )
    make.bundle(stores, incident, target, hangs(), at=began + timedelta(minutes=4))
    tell(stores, incident, began)
    assert incident.id is not None
    return incident.id


def tell(stores: Stores, incident: Incident, began: datetime) -> None:
    """Who did and saw what, with the stacks that were taken."""
    assert incident.id is not None
    notes = (
        (2.6, JONAS, "Router drained decode-c; traffic moved to decode-a and -b, TTFT 1.1 s p99."),
        (5.2, MIRA, "Deploy 417 put weights 0413 live ten minutes before it began."),
        (7.8, MIRA, "Stacks, twice: TP7 alone waits in all_reduce, the others in recv."),
    )
    with writing(stores.engine) as session:
        wanted = Changes(state="acknowledged", assignee="mira")
        at = began + timedelta(minutes=3)
        change_incident(session, get_incident(session, incident.id), wanted, actor=MIRA, at=at)
        evidence.attach(
            session,
            stores.artifacts.put(STACKS),
            incident_id=incident.id,
            name="py-spy-tp0-7.txt",
            taken_from="host of decode-c",
            actor=MIRA,
            at=began + timedelta(minutes=7),
        )
        for minutes, who, text in notes:
            at = began + timedelta(minutes=minutes)
            row = timeline.record(
                session, NoteAdded(text), incident_id=incident.id, actor=who, at=at
            )
        assert row.id is not None
        timeline.pin(session, incident.id, row.id, pinned=True, actor=MIRA, at=at)


def take(browser: Browser, url: str, name: str, **options: object) -> None:
    """Keep what *options* see of the page at *url* as docs/images/*name*.png."""
    page = browser.new_page(**options)  # type: ignore[arg-type]
    page.goto(url)
    sign_in(page, "mira")
    page.wait_for_url(url)
    page.screenshot(path=IMAGES / f"{name}.png")
    page.close()


def main() -> None:
    """Seed a console, and look at its newest incident from a desk and from a phone."""
    IMAGES.mkdir(exist_ok=True)
    with TemporaryDirectory() as folder:
        data_dir = Path(folder)
        seed.main(data_dir)
        stores = Stores.open(Settings(_env_file=None, data_dir=data_dir, min_free_bytes=0))
        number = night(stores, datetime.now(UTC))
        stores.close()
        with (
            serving(data_dir, "--no-worker", INCIDENT_CONSOLE_LOG_LEVEL="error") as (_, said),
            chromium() as browser,
        ):
            url = f"{said[0].split()[-1]}incidents/{number}"
            take(browser, url, "incident", **DESK)
            take(browser, url, "phone", **PHONE)
    for image in IMAGES.glob("*.png"):
        assert image.stat().st_size <= MAX_BYTES, f"{image.name} is too large"


if __name__ == "__main__":
    main()
