"""The icicle on a diagnostic's page, and the tree unfolded and by line."""

import re
from typing import Any

import pytest
from fastapi.testclient import TestClient

from app.store.stores import Stores
from tests import hosts, make, stacks
from tests.compared import comparison_of

HUNG = stacks.ranks(8, stacks.AWAITS_GPU, TP5=stacks.AWAITS_REQUESTS)
HOSTILE = "<img src=x onerror=alert(1)>"
LARGEST_PAGE = 200_000


def kept(stores: Stores, comparison: dict[str, Any], ranks: int = 8, **given: Any) -> str:
    """The path of a diagnostic of stacks that was compared."""
    incident = make.incident(stores, "decode-a hangs", make.target(stores))
    items = [hosts.item(number, sample=sample) for sample in (1, 2) for number in range(ranks)]
    row = hosts.diagnostic(
        stores, incident, hosts.host(stores), items, answer={"comparison": comparison}, **given
    )
    return f"/diagnostics/{row.id}"


def part(page: str, name: str) -> str:
    found = re.search(rf'<section [^>]*id="{name}".*?</section>', page, re.DOTALL)
    assert found, name
    return found[0]


def test_the_icicle_says_in_words_what_it_shows_and_has_the_list_beside_it(
    reader: TestClient, stores: Stores
) -> None:
    icicle = part(reader.get(kept(stores, comparison_of(HUNG, HUNG))).text, "icicle")

    says = "8 ranks part after event_loop_overlap: TP5 in recv_requests; TP0-4, TP6, TP7 in"
    assert f'role="img" aria-label="{says}' in icicle
    assert 'href="#tree"' in icicle
    assert icicle.count('class="icicle__outlier"') == 4
    assert icicle.count('class="icicle__edge"') == 1
    assert 'x="12.5%" y="58" width="87.5%"' in icicle
    assert "style=" not in icicle


def test_where_nothing_parts_there_is_no_icicle(reader: TestClient, stores: Stores) -> None:
    page = reader.get(kept(stores, comparison_of(stacks.ranks(8, stacks.SYNCS_MLP)))).text

    assert 'id="icicle"' not in page
    assert "They do not part" in page


def test_the_tree_is_unfolded_and_drawn_by_line_by_links_that_keep_what_is_shown(
    reader: TestClient, stores: Stores
) -> None:
    path = kept(stores, comparison_of(HUNG, HUNG))
    usual = part(reader.get(path).text, "tree")
    whole = part(reader.get(f"{path}?fold=none").text, "tree")
    lines = reader.get(f"{path}?sample=1&fold=none&by=line").text

    assert 'href="?fold=none#tree">unfold all' in usual
    assert 'href="?by=line#tree">by line' in usual
    assert "frame--folded" in usual
    assert "frame--folded" not in whole
    assert "run_scheduler_process" in whole
    assert "fold long runs" in whole
    assert "Lines are those of the first rank of each class." in part(lines, "tree")
    assert 'href="?sample=1&amp;ranks=1&amp;fold=none&amp;by=call#tree">by call' in lines
    assert 'href="?sample=2&amp;ranks=1&amp;fold=none&amp;by=line#stacks"' in lines


@pytest.mark.parametrize("asked", ["fold=everything", "by=<b>", "fold=&by=", "by=line&by=line"])
def test_what_cannot_be_asked_for_shows_the_usual(
    reader: TestClient, stores: Stores, asked: str
) -> None:
    answer = reader.get(f"{kept(stores, comparison_of(HUNG, HUNG))}?{asked}")

    assert answer.status_code == 200
    assert "<b>&" not in answer.text


def test_a_shape_that_was_chosen_is_kept_while_samples_come(
    reader: TestClient, stores: Stores
) -> None:
    path = kept(stores, comparison_of(HUNG), state="running")

    assert f'hx-get="{path}/found?fold=none"' in reader.get(f"{path}?fold=none").text
    assert f'hx-get="{path}/found"' in reader.get(path).text


def many(count: int, name: str = "step") -> dict[str, Any]:
    """Each rank in one of 26 branches, deep, beside a long trunk that all share."""
    trunk = tuple(f"{name}_trunk_{depth} (model.py:{depth})" for depth in range(30))
    return comparison_of(
        {
            f"TP{n}": (*(f"{name}_{n % 26}_{d} (model.py:{d})" for d in range(20)), *trunk)
            for n in range(count)
        }
    )


@pytest.mark.parametrize("query", ["", "?fold=none", "?fold=none&by=line"])
@pytest.mark.parametrize(
    "document",
    [
        pytest.param(many(1024), id="1024 ranks"),
        pytest.param(many(64), id="64 ranks"),
        pytest.param(many(40, HOSTILE + '"' * 90), id="names that grow when escaped"),
    ],
)
def test_the_page_stays_small(
    reader: TestClient, stores: Stores, document: dict[str, Any], query: str
) -> None:
    body = stacks.dump_json(41871, stacks.AWAITS_GPU)
    path = kept(stores, document, 64, bodies=[body] * 64)
    answer = reader.get(f"{path}{query}")

    assert answer.status_code == 200
    assert len(answer.content) < LARGEST_PAGE
    assert 'id="icicle"' in answer.text
    assert "<img" not in answer.text
