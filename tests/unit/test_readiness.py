"""What can be captured, as pages tell of it."""

from app.protocol.messages import Check
from app.web.views.readiness import Tally, answers_told, capabilities_told
from tests.hosts import preflight

MISSING = Check(
    capability="stacks", ready=False, says="py-spy is missing", fix="Install it.", command="pip"
)
READY = Check(capability="stacks", ready=True, says="py-spy 0.4.3")
UNTOLD = Check(capability="stacks", ready=None, says="not tried")


def test_equal_answers_are_one_line_and_the_worst_stands_first() -> None:
    told = answers_told([("TP0", READY), ("TP1", MISSING), ("TP2", READY), ("TP3", UNTOLD)])

    assert [(one.who, one.word) for one in told] == [
        ("TP1", "not possible"),
        ("TP3", "not known"),
        ("TP0, TP2", "ready"),
    ]
    assert (told[0].fix, told[0].command) == ("Install it.", "pip")


def test_many_processes_are_counted_and_not_listed() -> None:
    told = answers_told([(f"TP{n}", READY) for n in range(8)])

    assert told[0].who == "TP0, TP1, TP2 and 5 more"


def test_what_could_not_be_told_is_not_counted_as_ready() -> None:
    tally = Tally.of(preflight())

    assert tally.says == "10 of 12 ready, 1 not known"
    assert tally.level == "warn"


def test_nothing_told_is_unknown_and_not_well() -> None:
    assert Tally.of(preflight(host=[], processes=[])).level == "unknown"
    assert capabilities_told(None, {}) == []


def test_a_row_names_processes_as_they_are_called_here() -> None:
    rows = capabilities_told(preflight(ranks=1), {"41871.9001": "TP0 (41871)"})

    stacks = next(row for row in rows if row.name == "Stacks")
    assert stacks.answers[0].who == "TP0 (41871)"
