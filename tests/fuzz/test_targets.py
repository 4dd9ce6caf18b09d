"""What the long run feeds does its work; the long run itself is ``make fuzz``."""

import pytest

from tests.fuzz import pickled


@pytest.mark.parametrize("seed", [*pickled.seeds()])
def test_every_seed_passes(seed: bytes) -> None:
    pickled.one_input(seed)


def test_a_wrong_answer_would_be_found() -> None:
    with pytest.raises(AssertionError):
        pickled._compare(b"N.", value=False)


def test_chance_finds_nothing_in_a_moment() -> None:
    assert pickled.by_chance(0.3, seed=5) > 10
