"""The fewest requests and the shortest prompts that still fail, in few probes."""

from collections.abc import Callable
from itertools import pairwise
from random import Random
from typing import Any

import orjson
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from app.domain.replay.planned import Sending
from app.domain.replay.prompt_cut import prompt_length, with_prompt_cut
from app.domain.replay.reducing import Probe, Reduced, reduced
from app.domain.replay.reproducer import curl, fixture

TOTAL = 500


def reduce(lengths: dict[int, int], fails: Callable[[Probe], bool]) -> tuple[Reduced, list[Probe]]:
    """The result where *fails* decides, and the probes that failed, in order."""
    probing, failed = reduced(lengths), list[Probe]()
    try:
        probe = next(probing)
        while True:
            verdict = fails(probe)
            if verdict:
                failed.append(probe)
            probe = probing.send(verdict)
    except StopIteration as ended:
        return ended.value, failed


def needing(*culprits: int) -> Callable[[Probe], bool]:
    """Fails when all *culprits* are sent."""
    return lambda probe: set(culprits) <= set(probe.indexes)


Judge = Callable[[Probe], bool]
NO_PROMPTS = dict.fromkeys(range(TOTAL), 0)


@pytest.mark.parametrize(
    ("culprits", "most_probes"), [(1, 40), (2, 150), (5, 150)], ids=["one", "a pair", "five"]
)
def test_planted_crashers_are_found_in_few_probes_wherever_they_are(
    culprits: int, most_probes: int
) -> None:
    for seed in range(300):
        planted = Random(seed).sample(range(TOTAL), culprits)
        result, _ = reduce(NO_PROMPTS, needing(*planted))

        assert result.smallest == Probe(tuple(sorted(planted)))
        assert result.probes <= most_probes


@pytest.mark.parametrize(
    ("fails", "kept", "most_probes"),
    [
        pytest.param(lambda probe: len(probe.indexes) >= 50, 50, 150, id="50 of any"),
        pytest.param(
            lambda probe: 400 in probe.indexes[20:], 21, 100, id="one with 20 of any before it"
        ),
        pytest.param(
            lambda probe: set(range(100, 112)) <= set(probe.indexes), 12, 60, id="a session of 12"
        ),
        pytest.param(
            lambda probe: 402 in probe.indexes and 7 in probe.indexes[: probe.indexes.index(402)],
            2,
            40,
            id="one after the other",
        ),
    ],
)
def test_faults_that_many_requests_or_their_order_bring_about_are_found_in_the_usual_budget(
    fails: Judge, kept: int, most_probes: int
) -> None:
    result, _ = reduce(NO_PROMPTS, fails)

    assert result.smallest is not None
    assert len(result.smallest.indexes) == kept
    assert list(result.smallest.indexes) == sorted(result.smallest.indexes)
    assert result.probes <= most_probes


@pytest.mark.parametrize(
    ("trials", "most_extra", "most_probes"),
    [pytest.param(1, 3, 100, id="once"), pytest.param(3, 1, 60, id="three times")],
)
@pytest.mark.parametrize("culprits", [1, 2], ids=["one", "a pair"])
def test_a_fault_that_comes_four_times_of_five_is_found_with_little_beside_it(
    culprits: int, trials: int, most_extra: int, most_probes: int
) -> None:
    for seed in range(300):
        random = Random(seed)
        planted = needing(*random.sample(range(TOTAL), culprits))

        def fails(probe: Probe, planted: Judge = planted, random: Random = random) -> bool:
            times = max(trials, 3) if len(probe.indexes) == TOTAL else trials
            return planted(probe) and any(random.random() < 0.8 for _ in range(times))

        result, failed = reduce(NO_PROMPTS, fails)
        if not failed:
            continue
        assert result.smallest is not None
        assert planted(result.smallest)
        assert len(result.smallest.indexes) <= culprits + most_extra
        assert result.probes <= most_probes


@pytest.mark.parametrize("culprit", [0, 1, 249, 250, 498, 499])
def test_the_ends_and_the_middle_are_no_harder(culprit: int) -> None:
    result, _ = reduce(NO_PROMPTS, needing(culprit))

    assert result.smallest == Probe((culprit,))


def test_a_prompt_is_cut_to_the_shortest_that_fails() -> None:
    lengths = dict.fromkeys(range(TOTAL), 131_072)

    def fails(probe: Probe) -> bool:
        return 343 in probe.indexes and probe.lengths.get(343, 131_072) >= 70_001

    result, _ = reduce(lengths, fails)
    assert result.smallest == Probe((343,), {343: 70_001})
    assert result.probes <= 40


def test_what_does_not_fail_as_a_whole_is_not_reduced() -> None:
    result, _ = reduce(NO_PROMPTS, lambda probe: False)

    assert result == Reduced(None, 1)
    assert reduce({}, lambda probe: True)[0] == Reduced(None, 0)


@given(
    st.integers(1, 30), st.integers(0, 2**32), st.sampled_from([0.0, 0.2, 0.5]), st.integers(1, 3)
)
@settings(deadline=None)
def test_what_is_held_as_the_smallest_did_fail_even_when_the_fault_is_moody(
    total: int, seed: int, mood: float, culprits: int
) -> None:
    random = Random(seed)
    planted = needing(*random.sample(range(total), min(culprits, total)))
    lengths = dict.fromkeys(range(total), 40)
    result, failed = reduce(lengths, lambda probe: planted(probe) and random.random() >= mood)

    if result.smallest is None:
        assert failed == []
        return
    assert result.smallest == failed[-1]
    assert all(len(later.indexes) <= len(one.indexes) for one, later in pairwise(failed))


@given(st.sets(st.integers(0, 15), min_size=1), st.integers(0, 2**16 - 1))
@settings(deadline=None)
def test_no_request_of_the_smallest_set_can_be_left_out(planted: set[int], other: int) -> None:
    also = {bit for bit in range(16) if other >> bit & 1} or {0}

    def fails(probe: Probe) -> bool:
        return planted <= set(probe.indexes) or also <= set(probe.indexes)

    result, _ = reduce(dict.fromkeys(range(16), 0), fails)
    assert result.smallest is not None
    kept = result.smallest.indexes
    if len(kept) <= 8:
        assert not any(fails(Probe(tuple(set(kept) - {one}))) for one in kept)


@pytest.mark.parametrize(
    ("body", "length", "cut"),
    [
        ({"input_ids": [1, 2, 3], "stream": True}, 3, {"input_ids": [1, 2], "stream": True}),
        ({"text": "abc"}, 3, {"text": "ab"}),
        ({"prompt": "abc"}, 3, {"prompt": "ab"}),
        ({"text": ["a", "b"]}, 0, {"text": ["a", "b"]}),
        (
            {"messages": [{"content": "system"}, {"content": "abc"}, {"content": None}]},
            3,
            {"messages": [{"content": "system"}, {"content": "ab"}, {"content": None}]},
        ),
    ],
    ids=["ids", "text", "completion", "batch", "chat"],
)
def test_a_prompt_ends_sooner(body: dict[str, Any], length: int, cut: dict[str, Any]) -> None:
    assert prompt_length(body) == length
    assert with_prompt_cut(body, 2) == cut


def sending(**body: Any) -> Sending:
    return Sending(7, "r", 0.5, "/generate", orjson.dumps(body), stream=True)


def test_a_request_becomes_a_command_that_a_shell_takes_as_it_is() -> None:
    command = curl(sending(text="it's $HOME"), "http://127.0.0.1:30000/", with_token=True)

    assert command == (
        "curl -sS -N http://127.0.0.1:30000/generate -H 'Content-Type: application/json'"
        ' -H "Authorization: Bearer $TARGET_TOKEN"'
        """ --data-raw '{"text":"it'"'"'s $HOME"}'"""
    )


def test_a_long_body_is_read_from_a_file() -> None:
    assert curl(sending(text="a" * 5000), "http://h").endswith("--data-binary @request-7.json")


def test_the_fixture_has_a_line_for_each_request() -> None:
    [line] = fixture([sending(text="a")]).splitlines()

    assert orjson.loads(line) == {
        "index": 7,
        "rid": "r",
        "endpoint": "/generate",
        "due_seconds": 0.5,
        "stream": True,
        "payload": {"text": "a"},
    }
