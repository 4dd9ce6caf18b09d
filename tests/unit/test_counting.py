import pytest

from app.domain.counting import counted


@pytest.mark.parametrize(
    ("count", "said"),
    [(0, "0 samples"), (1, "1 sample"), (2, "2 samples"), (12_000, "12,000 samples")],
)
def test_one_is_said_as_one(count: int, said: str) -> None:
    assert counted(count, "sample") == said


def test_words_that_take_no_s_say_their_plural() -> None:
    assert counted(1, "process is", "processes are") == "1 process is"
    assert counted(3, "process is", "processes are") == "3 processes are"
