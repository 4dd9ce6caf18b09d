"""Rows of requests on both databases: paged without gaps in any order, filtered, held to types."""

import time
from collections.abc import Iterator
from typing import Any, get_args

import pytest
from sqlmodel import Session

from app.errors import NotFound
from app.store import dump_rows
from app.store.database import reading, writing
from app.store.dump_rows import Place, Sort, Wanted
from app.store.dump_tables import Dump
from app.store.evidence import keep
from app.store.stores import Stores
from tests.integration import make
from tests.integration.conftest import MakeStores

FIGURES: list[int | None] = [5, None, 7, 5, 0, None, 5, 9, 2**40]


@pytest.fixture(scope="module")
def stores(make_stores: MakeStores, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Stores]:
    opened = make_stores(tmp_path_factory.mktemp("data"))
    yield opened
    opened.close()


def _dump(stores: Stores, rows: list[dict[str, Any]]) -> int:
    """The number of a dump with these rows."""
    incident_id, stored = make.incident(stores), stores.artifacts.put(b"a dump")
    with writing(stores.engine) as session:
        custody: Any = {"name": "a.pkl", "taken_from": "a test"}
        artifact = keep(
            session, stored, incident_id=incident_id, actor=make.MIRA, at=make.NOON, **custody
        )
        dump = Dump(
            incident_id=incident_id,
            artifact_id=artifact.id or 0,
            sha256=artifact.sha256,
            name="a.pkl",
            added_by="mira",
            added_at=make.NOON,
        )
        session.add(dump)
        session.flush()
        assert dump.id is not None
        dump_rows.put_rows(session, dump.id, [_row(n, **one) for n, one in enumerate(rows)])
    return dump.id


def _row(index: int, **given: Any) -> Any:
    return {
        "index": index,
        "rid": f"r{index}",
        "state": "finished",
        "endpoint": "/generate",
        "prompt_tokens": 8,
        "completion_tokens": 3,
        "cached_tokens": None,
        "prompt_characters": None,
        "stream": False,
        "started_at": 1.0 + index,
        "finished_at": 2.0 + index,
        "elapsed_seconds": 1.0,
        "finish_reason": "stop",
        "sampling": {},
        "features": (),
        "problems": (),
        **given,
    }


def _all(session: Session, dump_id: int, limit: int, **asked: Any) -> list[int]:
    found: list[int] = []
    after: Place | None = None
    while True:
        page = dump_rows.requests_of(session, dump_id, after=after, limit=limit, **asked)
        assert len(page.rows) <= limit
        found += [row.position for row in page.rows]
        if page.after is None:
            return found
        after = page.after


@pytest.mark.parametrize("limit", [1, 2, 3, 4, 9, 50])
@pytest.mark.parametrize(
    "descending", [pytest.param(False, id="up"), pytest.param(True, id="down")]
)
@pytest.mark.parametrize("sort", get_args(Sort))
def test_pages_of_any_size_leave_nothing_out_and_repeat_nothing(
    stores: Stores, sort: Sort, descending: bool, limit: int
) -> None:
    name = "prompt_tokens" if sort == "index" else sort
    dump_id = _dump(stores, [{name: one} for one in FIGURES])
    known = [n for n, one in enumerate(FIGURES) if one is not None]
    unknown = [n for n, one in enumerate(FIGURES) if one is None]
    if sort == "index":
        expected = sorted(range(len(FIGURES)), reverse=descending)
    else:
        order = sorted(known, key=lambda n: (FIGURES[n], n), reverse=descending)
        expected = order + unknown
    with reading(stores.engine) as session:
        assert _all(session, dump_id, limit, sort=sort, descending=descending) == expected


def test_filters_meet_and_a_word_is_a_whole_one(stores: Stores) -> None:
    dump_id = _dump(
        stores,
        [
            {"features": ("lora", "multimodal"), "state": "unfinished"},
            {"features": ("lora-x",)},
            {"features": ("lora",)},
            {"state": None},
        ],
    )
    with writing(stores.engine) as session:
        dump_rows.mark_suspects(session, dump_id, [2, 0, 2, 99])
        found = {
            "lora": _all(session, dump_id, 10, wanted=Wanted(feature="lora")),
            "both": _all(session, dump_id, 10, wanted=Wanted(feature="lora", state="unfinished")),
            "percent": _all(session, dump_id, 10, wanted=Wanted(feature="%")),
            "rid": _all(session, dump_id, 10, wanted=Wanted(rid="r1")),
            "suspects": [row.position for row in dump_rows.suspects_of(session, dump_id)],
        }
        assert dump_rows.count_of(session, dump_id, Wanted(suspect=True)) == 2
    assert found == {
        "lora": [0, 2],
        "both": [0],
        "percent": [],
        "rid": [1],
        "suspects": [2, 0],
    }


@pytest.mark.parametrize(
    ("told", "kept"),
    [
        pytest.param({"prompt_tokens": 2**70}, {"prompt_tokens": None}, id="a-huge-number"),
        pytest.param({"prompt_tokens": -1}, {"prompt_tokens": None}, id="a-negative-count"),
        pytest.param({"prompt_tokens": "9"}, {"prompt_tokens": None}, id="a-text-for-a-count"),
        pytest.param({"prompt_tokens": True}, {"prompt_tokens": None}, id="a-switch-for-a-count"),
        pytest.param({"started_at": float("nan")}, {"started_at": None}, id="not-a-number"),
        pytest.param({"started_at": 10**400}, {"started_at": None}, id="beyond-a-float"),
        pytest.param({"stream": "yes"}, {"stream": None}, id="a-text-for-a-switch"),
        pytest.param({"state": "exploded"}, {"state": None}, id="an-unknown-state"),
        pytest.param({"rid": "a\0b"}, {"rid": "a\ufffdb"}, id="a-nul"),
        pytest.param({"rid": "x" * 5000}, {"rid": "x" * 200}, id="a-long-name"),
        pytest.param({"sampling": {"a": "x" * 9000}}, {"sampling": {}}, id="long-parameters"),
        pytest.param({"features": ("a,b", "c")}, {"features": ["a", "b", "c"]}, id="a-comma"),
    ],
)
def test_what_does_not_fit_is_not_known(
    stores: Stores, told: dict[str, Any], kept: dict[str, Any]
) -> None:
    dump_id = _dump(stores, [told])
    with reading(stores.engine) as session:
        row = dump_rows.row_of(dump_rows.request_at(session, dump_id, 0))
    assert {name: row[name] for name in kept} == kept


def test_requests_in_two_dumps_are_found_by_their_rid(stores: Stores) -> None:
    one = _dump(stores, [{"rid": name} for name in ("a", "b", None, "c")])
    other = _dump(stores, [{"rid": name} for name in ("c", None, "x", "a")])
    with reading(stores.engine) as session:
        shared = dump_rows.shared_requests(session, one, other)
        rest = dump_rows.shared_requests(session, one, other, after=0)
        assert dump_rows.count_shared(session, one, other) == 2
    assert [(s.rid, s.one.position, s.other.position) for s in shared] == [("a", 0, 3), ("c", 3, 0)]
    assert [s.rid for s in rest] == ["c"]


def test_figures_come_in_the_order_of_the_file(stores: Stores) -> None:
    dump_id = _dump(stores, [{"prompt_tokens": one} for one in FIGURES])
    with reading(stores.engine) as session:
        assert dump_rows.figures_of(session, dump_id, "prompt_tokens") == [5, 7, 5, 0, 5, 9, 2**40]
        assert dump_rows.span_of(session, dump_id) == (1.0, 10.0)


def test_rows_are_dropped_a_few_at_a_time_until_none_is_left(stores: Stores) -> None:
    dump_id = _dump(stores, [{}] * 7)
    other = _dump(stores, [{}])
    told = []
    for _ in range(4):
        with writing(stores.engine) as session:
            told.append(dump_rows.drop_rows(session, dump_id, most=3))
    assert told == [True, True, False, False]
    with reading(stores.engine) as session:
        assert dump_rows.count_of(session, dump_id) == 0
        assert dump_rows.count_of(session, other) == 1


@pytest.mark.parametrize("index", [1, -1, 2**63, 2**80])
def test_a_request_that_is_not_there_is_not_found(stores: Stores, index: int) -> None:
    dump_id = _dump(stores, [{}])
    with reading(stores.engine) as session, pytest.raises(NotFound):
        dump_rows.request_at(session, dump_id, index)


def test_requests_of_both_dumps_with_a_state_both_times_are_found_alone(stores: Stores) -> None:
    stuck = {"state": "unfinished"}
    one = _dump(stores, [{"rid": "a", **stuck}, {"rid": "b", **stuck}, {"rid": "c"}])
    other = _dump(stores, [{"rid": "b"}, {"rid": "a", **stuck}, {"rid": "c", **stuck}])
    with reading(stores.engine) as session:
        found = dump_rows.shared_requests(session, one, other, state="unfinished")
    assert [(s.rid, s.one.position, s.other.position) for s in found] == [("a", 0, 1)]


def test_two_large_dumps_are_compared_by_looking_each_identifier_up(stores: Stores) -> None:
    """Walking one dump for each row of the other would take 16 million steps, some seconds."""
    count = 4000
    one = _dump(stores, [{"rid": f"one-{n}"} for n in range(count)])
    other = _dump(stores, [{"rid": f"other-{n}"} for n in range(count)])
    with reading(stores.engine) as session:
        began = time.process_time()
        assert dump_rows.shared_requests(session, one, other) == []
        assert time.process_time() - began < 1.5  # a hundredth of a second on a quiet machine


def test_a_part_of_an_identifier_is_no_pattern(stores: Stores) -> None:
    dump_id = _dump(stores, [{"rid": "a_b"}, {"rid": "axb"}, {"rid": None}])
    with reading(stores.engine) as session:
        page = dump_rows.requests_of(session, dump_id, Wanted(rid_part="_"))
    assert [row.position for row in page.rows] == [0]
