"""The title of a diagnostic's page is what was found."""

from typing import Any

import pytest

from app.store.tables import Diagnostic, DiagnosticItem
from app.web.views.diagnostic_finding import finding, so_far
from app.web.views.found import in_order, refusals
from tests.hosts import coredump, item, rank, refused
from tests.make import NOON


def diagnostic(kind: str = "stacks", *, ranks: int = 8, **given: Any) -> Diagnostic:
    ids = [rank(number).id for number in range(ranks)]
    return Diagnostic(
        **{
            "incident_id": 1,
            "job_id": 1,
            "kind": kind,
            "state": "done",
            "asked_by": "mira",
            "asked_at": NOON,
            "hosts": [{"host_id": 1, "name": "gpu-14", "process_ids": ids}],
            **given,
        }
    )


def read(ranks: int, samples: int = 3) -> list[DiagnosticItem]:
    return [item(one, sample=n + 1) for one in range(ranks) for n in range(samples)]


LOST = refused(7, says="Another tracer holds it.")


@pytest.mark.parametrize(
    ("row", "items", "title"),
    [
        pytest.param(diagnostic(), read(8), "8 of 8 ranks read, 3 samples", id="all"),
        pytest.param(
            diagnostic("server dumps"),
            [item(0), item(1, state="here-already"), refused(says="It grows.")],
            "1 dump copied, 1 here already; 1 refused: it grows",
            id="dumps",
        ),
        pytest.param(
            diagnostic(
                "server dumps",
                answer={"hosts": [{"name": "gpu-14", "says": "No dump lies in /var/dumps."}]},
            ),
            [],
            "Dumps the server wrote: no dump lies in /var/dumps",
            id="no dumps",
        ),
        pytest.param(
            diagnostic(),
            [*read(7, samples=1), LOST],
            "7 of 8 ranks read, 1 sample; TP7: another tracer holds it",
            id="one refused",
        ),
        pytest.param(
            diagnostic(),
            [*read(6), LOST, refused(6, says="gone")],
            "6 of 8 ranks read, 3 samples; TP7: another tracer holds it, and 1 more",
            id="two refused",
        ),
        pytest.param(
            diagnostic(state="running", says="Sample 2 of 3."),
            read(4, samples=1),
            "Taking stacks, not finished yet",
            id="running",
        ),
        pytest.param(
            diagnostic(state="queued"), [], "Taking stacks, not finished yet", id="nothing yet"
        ),
        pytest.param(
            diagnostic(state="failed", says="The agent of gpu-14 does not answer."),
            [],
            "Stacks: the agent of gpu-14 does not answer",
            id="failed",
        ),
        pytest.param(
            diagnostic(ranks=1), read(1), "1 of 1 rank read, 3 samples", id="a single rank"
        ),
        pytest.param(
            diagnostic("coredump", ranks=1),
            [coredump()],
            "Coredump of TP0: complete, 2.1 GB",
            id="coredump",
        ),
        pytest.param(
            diagnostic("coredump", ranks=1, state="running"),
            [coredump(state="sent", detail={})],
            "Triggering a CUDA coredump, not finished yet",
            id="coredump sent",
        ),
        pytest.param(
            diagnostic("coredump", ranks=2),
            [coredump(), coredump(1, state="no-file", says="No file appeared in 60 s.")],
            "1 of 2 coredumps complete; TP1: no file appeared in 60 s",
            id="coredumps",
        ),
        pytest.param(
            diagnostic("host facts", answer={"hosts": [{"name": "gpu-14", "facts": [
                {"topic": "clock", "says": "Agrees.", "level": "good", "source": "adjtimex"},
                {"topic": "gpu", "says": "Xid 79 at 02:51.", "level": "bad", "source": "/dev/kmsg"},
            ]}]}),
            [],
            "Host facts and server log: Xid 79 at 02:51",
            id="facts",
        ),
        pytest.param(
            diagnostic("host facts", answer={"hosts": "not a list"}),
            [item(kind="log tail")],
            "Host facts and server log: 1 file taken",
            id="facts of an unknown shape",
        ),
        pytest.param(
            diagnostic("nccl ras", answer={"hosts": [{"name": "g", "says": "TP5 lags."}]}),
            [],
            "NCCL RAS: TP5 lags",
            id="ras",
        ),
    ],
)  # fmt: skip
def test_the_title_says_what_was_read_and_what_was_not(
    row: Diagnostic, items: list[DiagnosticItem], title: str
) -> None:
    assert finding(row, items) == title


@pytest.mark.parametrize(
    ("kind", "items", "told"),
    [
        pytest.param("stacks", [], "Stacks: nothing came yet", id="nothing"),
        pytest.param(
            "stacks", read(4, samples=1), "4 of 8 ranks read, 1 sample so far", id="stacks"
        ),
        pytest.param(
            "coredump",
            [coredump(state="sent", detail={})],
            "Coredump of TP0: sent",
            id="a byte that was written is sent, never dumped",
        ),
    ],
)
def test_what_has_come_is_told_while_more_may_come(
    kind: str, items: list[DiagnosticItem], told: str
) -> None:
    assert so_far(diagnostic(kind, state="running"), items) == told


def test_equal_refusals_are_told_once_with_all_whom_they_concern() -> None:
    lost = [refused(10), refused(2), refused(2), refused(1, says="It has ended.", fix=None)]

    told = refusals(lost)

    assert [one.who for one in told] == ["TP2, TP10", "TP1"]


def test_ranks_are_in_the_order_of_their_numbers() -> None:
    ranks = ["TP10", "DP1_TP0", "TP2", "DP0_TP1", "pid 7"]

    assert sorted(ranks, key=in_order) == ["DP0_TP1", "DP1_TP0", "TP2", "TP10", "pid 7"]
