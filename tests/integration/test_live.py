"""Following jobs live: one poller, many followers, on a real database."""

import asyncio
from collections.abc import Callable, Iterator
from datetime import UTC, datetime
from pathlib import Path

import pytest
from sqlalchemy import Engine, event

from app.errors import Throttled
from app.store.database import open_database, writing
from app.store.tables import Job, metadata
from app.web.live import LiveJobs
from tests.waiting import BUSY

NOON = datetime(2026, 11, 30, 12, tzinfo=UTC)


@pytest.fixture
def engine(tmp_path: Path) -> Iterator[Engine]:
    engine = open_database(f"sqlite:///{tmp_path / 'console.sqlite'}")
    metadata.create_all(engine)
    with writing(engine) as session:
        for number in (1, 2):
            session.add(
                Job(
                    id=number,
                    key=str(number),
                    kind="collect",
                    partition=f"target:{number}",
                    arguments={},
                    requested_by="mira",
                    created_at=NOON,
                    state="running",
                )
            )
    yield engine
    engine.dispose()


def _change(engine: Engine, job_id: int, **values: object) -> None:
    with writing(engine) as session:
        job = session.get_one(Job, job_id)
        for name, value in values.items():
            setattr(job, name, value)
        job.version += 1


async def _states(live: LiveJobs, job_id: int, act: Callable[[int], None]) -> list[tuple[str, int]]:
    """What a follower sees; *act* is called after each state with how many there were."""
    seen = []
    async with live.following(job_id) as following:
        async for job in following.states():
            seen.append((job.state, job.done))
            await asyncio.to_thread(act, len(seen))
    return seen


def test_a_follower_sees_the_job_at_once_then_each_change_until_it_ends(engine: Engine) -> None:
    def act(seen: int) -> None:
        if seen == 1:
            _change(engine, 1, done=3)
        elif seen == 2:
            _change(engine, 1, done=9, state="succeeded")

    seen = asyncio.run(_states(LiveJobs(engine), 1, act))

    assert seen == [("running", 0), ("running", 3), ("succeeded", 9)]


def test_a_follower_hears_of_its_own_job_only(engine: Engine) -> None:
    def act(seen: int) -> None:
        _change(engine, 2, done=5)
        if seen == 1:
            _change(engine, 1, state="cancelled")

    assert asyncio.run(_states(LiveJobs(engine), 1, act)) == [("running", 0), ("cancelled", 0)]


def test_a_hundred_followers_cost_as_many_questions_as_one(engine: Engine) -> None:
    questions: list[str] = []
    event.listen(engine, "before_cursor_execute", lambda *args: questions.append(args[2]))

    async def hundred(live: LiveJobs) -> None:
        async def follow() -> None:
            async with live.following(1) as following:
                async for _ in following.states():
                    pass

        followers = [asyncio.create_task(follow()) for _ in range(100)]
        await asyncio.sleep(1)
        asked = sum("FROM job" in question for question in questions)
        await asyncio.to_thread(_change, engine, 1, state="succeeded")
        await asyncio.gather(*followers)
        assert asked <= 5 * BUSY, "one question each would be a hundred a look"

    asyncio.run(hundred(LiveJobs(engine)))
    assert questions


def test_nothing_is_asked_once_the_last_follower_has_left(engine: Engine) -> None:
    questions: list[str] = []

    async def leave() -> int:
        live = LiveJobs(engine)
        async with live.following(1) as following:
            await anext(following.states())
        event.listen(engine, "before_cursor_execute", lambda *args: questions.append(args[2]))
        await asyncio.sleep(1)
        return len(questions)

    assert asyncio.run(leave()) == 0


def test_one_follower_too_many_is_refused_and_a_place_comes_free_again(engine: Engine) -> None:
    async def crowd() -> None:
        live = LiveJobs(engine, most_followers=1)
        async with live.following(1):
            assert live.full
            with pytest.raises(Throttled):
                async with live.following(2):
                    pytest.fail("There was no place left.")
        assert not live.full

    asyncio.run(crowd())


def test_a_database_that_fails_ends_the_streams_and_is_asked_again_later(engine: Engine) -> None:
    async def fail() -> list[str]:
        live = LiveJobs(engine)
        async with live.following(1) as following:
            states = following.states()
            seen = [(await anext(states)).state]
            metadata.tables["job"].drop(engine)
            seen += [job.state async for job in states]
        metadata.create_all(engine)
        return seen

    assert asyncio.run(fail()) == ["running"]
