"""How the end of a diagnostic is told, on its page and in the timeline."""

import pytest

from app.domain import playbook as story
from app.domain import timeline
from app.domain.diagnostic_words import Came, summed_up


@pytest.mark.parametrize(
    ("came", "says"),
    [
        pytest.param(
            [Came("a", "done", ""), Came("b", "done", ""), Came("a", "done", "")],
            "Stacks of 2 processes on gpu-14, gpu-15.",
            id="all",
        ),
        pytest.param(
            [Came("a", "done", ""), Came("b", "refused", "It is gone.")],
            "Stacks of 1 process on gpu-14, gpu-15. Not of 1 process: It is gone.",
            id="one-refused",
        ),
        pytest.param(
            [Came("a", "done", ""), Came("a", "refused", "busy")],
            "Stacks of 1 process on gpu-14, gpu-15.",
            id="a-later-sample-refused",
        ),
        pytest.param(
            [Came("a", "refused", "No right."), Came("b", "refused", "No right.")],
            "Stacks on gpu-14, gpu-15: none. Not of 2 processes: No right.",
            id="nothing",
        ),
    ],
)
def test_what_came_is_summed_up(came: list[Came], says: str) -> None:
    assert summed_up("stacks", ["gpu-14", "gpu-15"], came) == says


@pytest.mark.parametrize(
    ("states", "says"),
    [
        pytest.param([], "No dump copied from gpu-14.", id="none"),
        pytest.param(["done"], "1 dump copied from gpu-14.", id="one"),
        pytest.param(
            ["done", "done", "here-already", "refused"],
            "2 dumps copied from gpu-14. 1 was here already. 1 refused: It grows.",
            id="some",
        ),
    ],
)
def test_dumps_are_counted_one_by_one(states: list[str], says: str) -> None:
    came = [Came("a", state, "It grows.") for state in states]
    assert summed_up("server dumps", ["gpu-14"], came) == says


@pytest.mark.parametrize(
    ("event", "says"),
    [
        pytest.param(
            story.StepRequested("Diagnose native stacks", 7, "decode-a"),
            "Taking native stacks from decode-a was asked for.",
            id="asked",
        ),
        pytest.param(
            story.BundleCollected(3, "decode-a", "It works.", "healthy", 1, 1, 0.4),
            "Bundle of decode-a: It works. 1 of 1 endpoint answered in 0.4 s.",
            id="one-endpoint",
        ),
        pytest.param(
            story.CoredumpTriggered(3, "gpu-14", "TP0, pid 4711"),
            "Sent the coredump trigger to TP0, pid 4711 on gpu-14; whether it dumps is watched.",
            id="sent-is-not-dumped",
        ),
        pytest.param(
            story.DiagnosticRefused(3, "stacks", ("gpu-14",), "No right."),
            "Taking stacks on gpu-14 gave nothing: No right.",
            id="refused",
        ),
    ],
)
def test_the_timeline_tells_it_in_a_sentence(event: story.Event, says: str) -> None:
    assert timeline.told(event) == says


def test_a_diagnostic_can_be_opened_from_the_timeline() -> None:
    link = timeline.link(story.DiagnosticTaken(3, "stacks", ("gpu-14",), "Stacks."))
    assert link == timeline.Link("diagnostic", 3)


@pytest.mark.parametrize(
    ("kind", "intrusive"),
    [
        ("stacks", False),
        ("host facts", False),
        ("nccl ras", False),
        ("server dumps", False),
        ("native stacks", True),
        ("cpu profile", True),
        ("flight recorder", True),
        ("coredump", True),
    ],
)
def test_what_pauses_slows_or_may_end_a_process_is_intrusive(
    kind: story.DiagnosticKind, intrusive: bool
) -> None:
    assert story.is_intrusive(story.Diagnose(kind, {})) is intrusive
