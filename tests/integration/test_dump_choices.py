"""Chosen requests on both databases: counted and listed as the expression means."""

from collections.abc import Iterator

import pytest

from app.domain.dumps.choosing import read_choice
from app.store.database import reading
from app.store.dump_choices import Chosen, chosen_indexes, chosen_rows, count_chosen
from app.store.stores import Stores
from tests import make, recorded
from tests.integration.conftest import MakeStores


@pytest.fixture(scope="module")
def stores(make_stores: MakeStores, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Stores]:
    opened = make_stores(tmp_path_factory.mktemp("data"))
    yield opened
    opened.close()


@pytest.fixture(scope="module")
def dump_id(stores: Stores) -> int:
    """Ten requests with 1 to 8 tokens; the last two, 8 and 9, unfinished."""
    requests = [recorded.request(one, tokens=one) for one in range(1, 9)]
    requests += [recorded.request(9, finished=False), recorded.request(10, finished=False)]
    dump = make.dump(stores, make.incident(stores), recorded.dump(requests))
    assert dump.id is not None
    return dump.id


@pytest.mark.parametrize(
    ("expression", "indexes"),
    [
        pytest.param("", [], id="nothing"),
        pytest.param("0:2,4", [0, 1, 4], id="ranges"),
        pytest.param("7:", [7, 8, 9], id="to-the-end"),
        pytest.param("state=unfinished", [8, 9], id="state"),
        pytest.param(f"rid={3:032x},rid={5:032x},rid=none", [2, 4], id="identifiers"),
        pytest.param("0,state=unfinished", [0, 8, 9], id="any-term-is-enough"),
        pytest.param("100", [], id="behind-the-end"),
    ],
)
def test_a_choice_means_the_requests_of_any_of_its_terms(
    stores: Stores, dump_id: int, expression: str, indexes: list[int]
) -> None:
    choice = read_choice(expression)
    with reading(stores.engine) as session:
        assert list(chosen_indexes(session, dump_id, choice, limit=50)) == indexes
        assert count_chosen(session, dump_id, choice).total == len(indexes)
        rows = chosen_rows(session, dump_id, choice, limit=2)
    assert [row.position for row in rows] == indexes[:2]


def test_what_was_chosen_is_added_up(stores: Stores, dump_id: int) -> None:
    with reading(stores.engine) as session:
        told = count_chosen(session, dump_id, read_choice("0:3,8"))
        suspects = count_chosen(session, dump_id, read_choice("suspect")).total
    assert told == Chosen(
        total=4,
        states={"finished": 3, "unfinished": 1},
        prompt_tokens=1 + 2 + 3 + 8,
        prompts_told=4,
    )
    assert suspects >= 2
