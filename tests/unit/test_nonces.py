"""A nonce is taken once, and forgotten only when its time is refused anyway."""

from pathlib import Path

import pytest

from app.agent.door import nonces
from app.agent.door.nonces import Nonces
from app.errors import Throttled

NOW = 1_764_480_000


@pytest.fixture
def seen(tmp_path: Path) -> Nonces:
    return Nonces(tmp_path / "nonces.jsonl")


def _take(seen: Nonces, nonce: str, *, time: int = NOW, now: float = NOW) -> bool:
    return seen.take(nonce, time, now=now, durable=False)


def test_a_nonce_is_taken_once(seen: Nonces) -> None:
    assert _take(seen, "a")
    assert not _take(seen, "a")
    assert _take(seen, "b")


def test_a_nonce_is_known_as_long_as_its_time_is_accepted(seen: Nonces) -> None:
    assert _take(seen, "a", time=NOW + 60)
    assert not _take(seen, "a", time=NOW + 60, now=NOW + 120)


def test_what_was_forgotten_is_not_taken_again_when_the_clock_is_set_back(seen: Nonces) -> None:
    assert _take(seen, "a")
    assert _take(seen, "b", time=NOW + 300, now=NOW + 300)
    assert not _take(seen, "a", now=NOW)


def test_nonces_outlive_the_agent(seen: Nonces, tmp_path: Path) -> None:
    assert _take(seen, "a")
    assert not _take(Nonces(tmp_path / "nonces.jsonl"), "a")


def test_the_file_does_not_grow_for_ever(seen: Nonces, tmp_path: Path) -> None:
    for number in range(nonces._REWRITE_AFTER + 500):
        assert _take(seen, f"{number}", time=NOW + number, now=NOW + number)
    lines = (tmp_path / "nonces.jsonl").read_text().splitlines()
    again = Nonces(tmp_path / "nonces.jsonl")
    last = nonces._REWRITE_AFTER + 499

    assert len(lines) < 1000
    assert not _take(again, f"{last}", time=NOW + last, now=NOW + last)


def test_who_asks_too_often_waits(seen: Nonces) -> None:
    seen._seen = {str(number): NOW for number in range(nonces.MAX_NONCES)}

    with pytest.raises(Throttled):
        _take(seen, "one more")
