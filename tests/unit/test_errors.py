"""Every error that is raised on purpose is told to a reader in the right way."""

from collections.abc import Iterator

import pytest

from app.errors import ConsoleError
from app.web.failures import STATUS


def _below(kind: type[ConsoleError]) -> Iterator[type[ConsoleError]]:
    yield kind
    for narrower in kind.__subclasses__():
        yield from _below(narrower)


OURS = [kind for kind in _below(ConsoleError) if kind.__module__ == "app.errors"]


@pytest.mark.parametrize("kind", OURS, ids=lambda kind: kind.__name__)
def test_an_error_has_a_status_of_its_own_and_a_code_that_tells_it_from_others(
    kind: type[ConsoleError],
) -> None:
    assert kind in STATUS
    assert kind.code == kind.code.lower()
    assert [other for other in OURS if other.code == kind.code] == [kind]


def test_the_detail_is_what_why_and_fix_without_the_command() -> None:
    error = ConsoleError("It broke.", why="A cable.", fix="Plug it in.", command="plug")

    assert error.detail == "It broke. A cable. Plug it in."
    assert ConsoleError("It broke.").detail == "It broke."
