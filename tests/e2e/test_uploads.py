"""A large file in the browser: in pieces, with a bar, gone on with after the line broke."""

from collections.abc import Callable
from pathlib import Path

import pytest
from playwright.sync_api import Request, Route, expect

from tests.e2e.browsing import Visits
from tests.e2e.conftest import Open

pytestmark = pytest.mark.browser

MIB = 1024**2
PIECE_BYTES = 8 * MIB
Handler = Callable[[Route, Request], None]


@pytest.fixture
def large(tmp_path: Path) -> Path:
    path = tmp_path / "memory.bin"
    with path.open("wb") as file:
        file.truncate(3 * PIECE_BYTES - 100)
    return path


def test_a_large_file_is_sent_in_pieces_and_again_where_the_line_broke(
    opened: Open, visits: Visits, large: Path
) -> None:
    page = opened("/incidents/2")
    offsets: list[str] = []

    def broken_once(route: Route, request: Request) -> None:
        offsets.append(request.headers.get("upload-offset", ""))
        if len(offsets) == 2:
            route.abort("connectionreset")
        else:
            route.continue_()

    page.route("**/api/v1/uploads/*", _pieces(broken_once))
    page.get_by_label("Attach a file").set_input_files(large)
    page.get_by_role("button", name="Attach", exact=True).click()

    page.wait_for_url("**/artifacts/*")
    expect(page.locator("h1")).to_contain_text("memory.bin")
    told = [str(PIECE_BYTES * number) for number in (0, 1, 1, 2)]
    assert offsets == told
    visits.forgive("ERR_CONNECTION_RESET")


def test_a_file_that_was_stopped_goes_on_when_it_is_chosen_again(opened: Open, large: Path) -> None:
    page = opened("/incidents/2")
    held = _Held()
    page.route("**/api/v1/uploads/*", _pieces(held))
    field = page.get_by_label("Attach a file")
    field.set_input_files(large)
    page.get_by_role("button", name="Attach", exact=True).click()
    expect(page.get_by_role("status").filter(has_text="8 of 23 MiB sent")).to_be_visible()
    page.get_by_role("button", name="Stop").click()
    expect(page.get_by_text("Stopped. Attach the same file again to go on.")).to_be_visible()

    page.unroute_all(behavior="ignoreErrors")
    page.reload()
    offsets: list[str] = []
    page.on(
        "request",
        lambda one: offsets.append(one.headers["upload-offset"]) if one.method == "PATCH" else None,
    )
    page.get_by_label("Attach a file").set_input_files(large)
    page.get_by_role("button", name="Attach", exact=True).click()

    page.wait_for_url("**/artifacts/*")
    assert offsets[0] == str(PIECE_BYTES)


class _Held:
    """Lets one piece through and holds the next for ever."""

    def __init__(self) -> None:
        self.pieces = 0

    def __call__(self, route: Route, _request: Request) -> None:
        self.pieces += 1
        if self.pieces == 1:
            route.continue_()


def _pieces(handle: Handler) -> Handler:
    """*handle* for the pieces alone; how far it is may always be asked."""

    def only_pieces(route: Route, request: Request) -> None:
        if request.method == "PATCH":
            handle(route, request)
        else:
            route.continue_()

    return only_pieces
