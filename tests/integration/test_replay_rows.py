"""Rows of outcomes on both databases: written over, filtered, paged."""

from typing import Any

import pytest

from app.domain.replay.outcomes import ErrorClass, Outcome
from app.domain.replay.planned import Recorded
from app.errors import NotFound
from app.store import evidence, replay_rows, replays
from app.store.database import reading, writing
from app.store.replay_rows import Wanted
from app.store.replays import NewReplay
from app.store.stores import Stores
from tests.integration import make
from tests.integration.replayed import asked, clean_target, line

REFUSED: ErrorClass = "connection-refused"


def _outcome(index: int, error: ErrorClass | None = None, **more: object) -> Outcome:
    told = {"rid": f"rid-{index}", "status": None if error else 200, "says": None}
    sent = {"sent_at": 1000.0 + index, "due_seconds": index / 10, "lateness_ms": 0.5}
    return Outcome(index=index, error=error, **{**told, **sent, **more})  # type: ignore[arg-type]


@pytest.fixture
def replay_id(any_stores: Stores) -> int:
    target = clean_target(any_stores, "http://127.0.0.1:9", "clean-a")
    return asked(any_stores, NewReplay(make.incident(any_stores), target.id or 0), line(0))[0]


def _put(stores: Stores, replay_id: int, trial: int, *outcomes: Outcome) -> None:
    pairs = [(one, Recorded("finished", completion_tokens=4)) for one in outcomes]
    with writing(stores.engine) as session:
        replay_rows.put_outcomes(session, replay_id, trial, pairs)


def test_a_later_outcome_of_a_request_takes_the_place_of_the_earlier_one(
    any_stores: Stores, replay_id: int
) -> None:
    _put(any_stores, replay_id, 1, _outcome(0, "not-sent", sent_at=None), _outcome(1))
    with writing(any_stores.engine) as session:
        assert replay_rows.done_indexes(session, replay_id, 1) == {1}

    _put(any_stores, replay_id, 1, _outcome(0, e2e_seconds=0.25), _outcome(1))

    with reading(any_stores.engine) as session:
        page = replay_rows.outcomes_of(session, replay_id)
    assert [(one.position, one.state, one.e2e_seconds) for one in page.rows] == [
        (0, "completed", 0.25),
        (1, "completed", None),
    ]


def test_what_is_read_back_is_what_was_measured(any_stores: Stores, replay_id: int) -> None:
    before = _outcome(3, "aborted", says="KV cache pool is full.", output_hash="ab", lag_ms=1.5)
    _put(any_stores, replay_id, 2, before)

    with reading(any_stores.engine) as session:
        [(outcome, recorded)] = replay_rows.read_outcomes(session, replay_id, 2)

    assert outcome == before
    assert recorded == Recorded("finished", completion_tokens=4)


@pytest.mark.parametrize(
    ("wanted", "expected"),
    [
        pytest.param(Wanted(), [(1, n) for n in range(6)] + [(2, n) for n in range(6)], id="all"),
        pytest.param(Wanted(trial=2), [(2, n) for n in range(6)], id="one-trial"),
        pytest.param(Wanted(error=REFUSED), [(1, 4), (2, 4)], id="one-class"),
        pytest.param(Wanted(state="failed"), [(1, 4), (1, 5), (2, 4), (2, 5)], id="failed"),
        pytest.param(Wanted(trial=1, state="failed"), [(1, 4), (1, 5)], id="failed-of-one"),
        pytest.param(Wanted(error="tls-failed"), [], id="none"),
    ],
)
def test_pages_hold_every_wanted_outcome_once_and_in_order(
    any_stores: Stores, replay_id: int, wanted: Wanted, expected: list[tuple[int, int]]
) -> None:
    for trial in (2, 1):
        good = (_outcome(n) for n in range(4))
        _put(any_stores, replay_id, trial, *good, _outcome(4, REFUSED), _outcome(5, "timeout"))

    after: replay_rows.Place | None = (0, -1)
    seen = []
    while after is not None:
        with reading(any_stores.engine) as session:
            page = replay_rows.outcomes_of(session, replay_id, wanted, after=after, limit=3)
        seen += [(one.trial, one.position) for one in page.rows]
        assert len(page.rows) <= 3
        after = page.after

    assert seen == expected


def test_what_a_target_told_is_held_to_its_size(any_stores: Stores, replay_id: int) -> None:
    told = {"says": "x" * 10_000, "rid": "a\0b", "completion_tokens": 2**80, "status": 2**40}
    _put(any_stores, replay_id, 1, _outcome(0, "aborted", finish_reason=["stop"], **told))

    with reading(any_stores.engine) as session:
        [row] = replay_rows.outcomes_of(session, replay_id).rows
    assert row.says is not None
    assert (len(row.says), row.rid) == (400, "a\ufffdb")
    assert (row.completion_tokens, row.status, row.finish_reason) == (None, None, None)


def test_why_an_answer_ended_is_told_to_all_in_known_words_alone(
    any_stores: Stores, replay_id: int
) -> None:
    differs: dict[str, Any] = {"first_divergent_token": 2, "logprob_gap": 0.05}
    recorded = Recorded(finish_reason="ada", output_ids=(1,), output_logprobs=(-0.5,))
    outcome = _outcome(0, finish_reason="My name is Ada", **differs)
    with writing(any_stores.engine) as session:
        replay_rows.put_outcomes(session, replay_id, 1, [(outcome, recorded)])

    with reading(any_stores.engine) as session:
        [row] = replay_rows.outcomes_of(session, replay_id).rows
        told, raw = replay_rows.row_of(row), replay_rows.row_of(row, raw=True)
        [(_, kept)] = replay_rows.read_outcomes(session, replay_id, 1)
    assert told["finish_reason"] == "other (14 characters)"
    assert told["recorded"]["finish_reason"] == "other (3 characters)"
    assert (raw["finish_reason"], raw["recorded"]["finish_reason"]) == ("My name is Ada", "ada")
    assert (told["first_divergent_token"], told["logprob_gap"]) == (2, 0.05)
    assert (kept.output_ids, kept.output_logprobs) == (None, None)


def test_files_and_dumps_of_another_incident_are_not_found(any_stores: Stores) -> None:
    target = clean_target(any_stores, "http://127.0.0.1:9", "clean-a")
    here, elsewhere = make.incident(any_stores), make.incident(any_stores)
    asked(any_stores, NewReplay(elsewhere, target.id or 0, send=False), line(0))
    with reading(any_stores.engine) as session:
        [artifact] = evidence.artifacts_of(session, elsewhere)
    new = NewReplay(here, target.id or 0, artifact_id=artifact.id)

    with (
        pytest.raises(NotFound, match=f"Incident {here} has no such file"),
        writing(any_stores.engine) as session,
    ):
        replays.request_replay(session, any_stores, new, actor=make.MIRA, at=make.now())
