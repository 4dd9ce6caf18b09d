"""The vitals row: what each source answered, and what must never look green."""

from app.domain.bundle import summarise
from app.web.vitals import Vital, vitals
from tests import situations
from tests.bundles import answered, bundle, loads, rank, silent


def cells(*captures: object) -> dict[str, Vital]:
    summary = summarise(bundle(*captures))  # type: ignore[arg-type]
    return {one.source: one for one in vitals(summary)}


def test_without_a_bundle_every_cell_is_unknown() -> None:
    assert {one.level for one in vitals(None)} == {"unknown"}


def test_a_healthy_server_shows_its_figures() -> None:
    told = cells(*situations.healthy())

    assert told["/v1/loads"].level == "good"
    assert told["Tokens out"].answer == "3\u202f100 in 10 s"
    assert told["Requests"].answer == "3 running"
    assert told["/health_generate"].answer == "not asked"


def test_ready_is_never_a_good_sign_of_its_own() -> None:
    assert cells(answered("ready", b"OK"))["/ready"].level == "quiet"


def test_a_stuck_server_is_red_where_it_is_stuck_and_amber_where_it_is_stale() -> None:
    told = cells(*situations.stuck())

    assert told["/server_info"] == Vital(
        "/server_info", "bad", "no answer in 5 s", "waits for every scheduler"
    )
    assert told["/health_generate"].answer == "503 in 20 s"
    assert (told["/v1/loads"].level, told["/v1/loads"].answer) == ("warn", "200, but frozen")
    assert (told["Tokens out"].level, told["Tokens out"].answer) == ("bad", "0 in 10 s")


def test_a_rank_that_is_not_told_leaves_the_total_unknown() -> None:
    known = rank(0, num_running_reqs=3)
    told = cells(
        answered("server_info", {"version": "0.5.23", "tp_size": 2, "dp_size": 2}),
        answered("loads_all_1", loads(known), at=2.0),
    )

    assert told["Requests"].level == "unknown"


def test_a_refused_connection_is_told_apart_from_silence() -> None:
    assert cells(*situations.gone())["/server_info"].answer == "refused"
    assert cells(silent("server_info"))["/server_info"].answer == "no answer in 5 s"


def test_no_access_is_no_failure() -> None:
    assert cells(answered("server_info", status=401))["/server_info"].level == "unknown"
