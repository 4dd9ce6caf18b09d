"""A crash dump sent again to a target that dies of it: from the dump's page to the verdict."""

import re
from collections.abc import Iterator
from pathlib import Path

import pytest
from playwright.sync_api import Page, expect

from tests import recorded
from tests.e2e.browsing import PHONE
from tests.e2e.conftest import Open
from tests.replaying import ReplayTarget, replay_target

pytestmark = pytest.mark.browser

REQUESTS, DIES_AFTER = 80, 57


@pytest.fixture
def dying() -> Iterator[ReplayTarget]:
    """A server that goes away when it has taken 57 requests."""
    with replay_target(dies_after=DIES_AFTER) as target:
        yield target


@pytest.fixture
def slow() -> Iterator[ReplayTarget]:
    with replay_target() as target:
        yield target


@pytest.fixture
def crash(tmp_path: Path) -> Path:
    """Requests 100 ms apart, each answered in four steps."""
    file = tmp_path / "crash_dump_2026-11-30_02-31-07.pkl"
    file.write_bytes(recorded.dump([_request(number, "cumulative") for number in range(REQUESTS)]))
    return file


@pytest.fixture
def stuck(tmp_path: Path) -> Path:
    """One request that is answered, and one that is not before somebody cancels."""
    file = tmp_path / "crash_dump_2026-11-30_03-00-00.pkl"
    requests = [_request(0, "cumulative"), _request(1, "hang")]
    file.write_bytes(recorded.dump(requests))
    return file


def _request(number: int, kind: str) -> tuple[object, ...]:
    asked, answer, _, _ = recorded.request(number, text=kind, input_ids=None, stream=True)
    at = recorded.BEGAN + number / 10
    return asked, answer, at, at + 0.05


def _attach(page: Page, file: Path) -> None:
    page.get_by_label("Attach a file").set_input_files(file)
    page.get_by_role("button", name="Attach", exact=True).click()
    page.wait_for_url(re.compile(r"/dumps/\d+"))


def _register(page: Page, target: ReplayTarget, name: str) -> None:
    page.goto("/targets/new")
    page.get_by_label("Name", exact=True).fill(name)
    page.get_by_label("Base URL").fill(target.base_url)
    page.get_by_label("Clean").check()
    page.get_by_role("button", name=re.compile("Register")).first.click()
    page.wait_for_url(re.compile(r"/targets/\d+"))


def test_a_crash_comes_back_on_a_clean_target_and_the_page_says_after_which_request(
    opened: Open, crash: Path, dying: ReplayTarget
) -> None:
    page = opened("/targets")
    _register(page, dying, "dying-1")
    page.goto("/incidents/8")
    _attach(page, crash)
    heading = page.get_by_role("heading", level=1)
    expect(page.locator("#progress")).to_have_count(0)
    page.get_by_role("link", name="Replay…", exact=True).click()
    expect(heading).to_contain_text(f"Replay {REQUESTS} requests of")
    page.get_by_label("dying-1").check()
    page.get_by_label("Crash").check()
    page.get_by_role("button", name="Show what would be sent").click()

    expect(heading).to_have_text(f"{REQUESTS} requests would go to dying-1; nothing was sent yet")
    expect(page.locator("#plan")).to_contain_text("Taken out or changed")
    assert dying.seen() == []
    page.get_by_role("button", name=f"Send {REQUESTS} requests").click()

    expect(heading).to_contain_text("dying-1 went away after request")
    expect(page.get_by_label("Verdict", exact=True)).to_contain_text("Reproduced in 1 of 1 trial.")
    expect(page.locator("#trials")).to_contain_text("went away after request")
    expect(page.locator("#errors")).to_contain_text("connection refused")
    expect(page.locator("#recipe")).to_contain_text("CUDA_ENABLE_COREDUMP_ON_EXCEPTION=1")
    expect(page).to_have_title(re.compile("^done · replay"))
    expect(page.locator("#tab-icon")).to_have_attribute("href", re.compile("favicon-done"))
    page.get_by_role("link", name="Show the recipe").click()
    expect(page.locator("#recipe")).to_be_in_viewport()

    _leads_on(page)


def _leads_on(page: Page) -> None:
    """Those in flight can be sent alone, and the incident knows of it."""
    page.get_by_role("link", name="Fill in the form").first.click()  # those in flight, alone
    expect(page.get_by_label("Requests", exact=True)).to_have_value(re.compile(r"^\d"))
    page.goto("/incidents/8")
    expect(page.locator("#replays")).to_contain_text("The crash came back on dying-1")
    expect(page.locator("#story")).to_contain_text("went away after request")
    page.goto("/reports/8")
    expect(page.get_by_role("main")).to_contain_text("The crash came back in replay")


def test_a_replay_is_followed_live_and_stopped_by_a_key(
    opened: Open, stuck: Path, slow: ReplayTarget
) -> None:
    page = opened("/targets")
    _register(page, slow, "slow-1")
    page.goto("/incidents/8")
    _attach(page, stuck)
    page.get_by_role("link", name="Replay…", exact=True).click()
    page.get_by_label("slow-1").check()
    page.get_by_role("button", name="Show what would be sent").click()
    page.get_by_role("button", name="Send 2 requests").click()

    progress = page.locator("#progress")
    expect(progress).to_contain_text("1 answered")  # followed: nobody loaded the page again
    expect(page).to_have_title(re.compile(r"^50 % · replay \d+"))
    icon, heading = page.locator("#tab-icon"), page.get_by_role("heading", level=1)
    expect(icon).to_have_attribute("href", re.compile("favicon-running"))
    expect(heading).to_have_text("Sending 2 requests to slow-1")  # it waited for a worker before
    page.keyboard.press(".")
    expect(icon).to_have_attribute("href", re.compile(r"favicon\.svg"))
    expect(heading).to_contain_text("was cancelled after 1 of 2 requests")
    expect(page.locator("#consent")).to_contain_text("what was answered is not sent again")


def test_a_replay_is_asked_for_and_held_back_without_javascript(
    opened: Open, slow: ReplayTarget
) -> None:
    page = opened("/targets", java_script_enabled=False)
    _register(page, slow, "busy-1")
    slow.get("/__running/3")
    page.goto("/dumps/1/choice?select=0:3")
    page.get_by_role("link", name="Replay 3 requests…").click()
    page.get_by_label("busy-1").check()
    page.get_by_role("button", name="Show what would be sent").click()
    heading = page.get_by_role("heading", level=1)
    for _ in range(400):
        if "would go to" in heading.inner_text():
            break
        page.wait_for_timeout(250)
        page.reload()
    page.get_by_role("button", name="Send 3 requests").click()
    for _ in range(400):
        if "held back" in heading.inner_text():
            break
        page.wait_for_timeout(250)
        page.reload()
    expect(page.locator("#progress")).to_contain_text("is serving 3 requests of others right now")
    assert slow.seen() == []


@pytest.mark.parametrize("width", [1280, 1440])
def test_no_column_of_a_comparison_is_cut_off_at_a_desk(opened: Open, width: int) -> None:
    page = opened("/replays/2", viewport={"width": width, "height": 900})

    for name in ("Trials", "Errors by class"):
        table = page.get_by_role("group", name=name)
        assert table.evaluate("part => part.scrollWidth - part.clientWidth") == 0, name


def test_what_to_do_comes_before_what_was_not_asked_on_a_phone(opened: Open) -> None:
    page = opened("/incidents/6", **PHONE)

    assert page.locator(".vitals .vital:visible").all_inner_texts() == [
        "Asked\nnever\nin this incident"
    ]
    step = page.locator("#next .steps > li").first.get_by_role("button").bounding_box()
    bar = page.get_by_role("group", name="Quick actions").bounding_box()
    assert step is not None
    assert bar is not None
    assert step["y"] + step["height"] <= bar["y"], "it is seen without scrolling"

    page.set_viewport_size({"width": 1280, "height": 800})
    assert page.locator(".vitals .vital:visible").count() == 7


def test_all_replays_are_reached_by_key_and_opened(opened: Open) -> None:
    page = opened("/")
    page.keyboard.press("g")
    page.keyboard.press("p")
    page.wait_for_url("**/replays")

    expect(page.locator("tr[data-row]")).not_to_have_count(0)
    page.keyboard.press("j")
    page.keyboard.press("o")
    page.wait_for_url(re.compile(r"/replays/\d+$"))


def test_a_reader_on_a_phone_sees_the_verdict_and_no_button(opened: Open) -> None:
    page = opened("/replays/2", by="rea", **PHONE)
    expect(page.get_by_role("heading", level=1)).to_have_text(
        "debug-1 shows it, debug-good does not"
    )
    expect(page.locator("#trials")).to_contain_text("B 2")
    expect(page.get_by_role("button", name=re.compile("Send|Cancel|Go on"))).to_have_count(0)
    expect(page.get_by_role("link", name="Fill in the form")).to_have_count(0)
