"""The twins of a report: hostile text in them stays text."""

from datetime import UTC, datetime
from pathlib import Path

import pytest

from app.domain.markdown import escaped, fenced
from app.domain.report import Document, draft
from app.domain.report_edits import Strike, Write, changed
from app.domain.report_parts import Source, Subject
from app.domain.report_text import Line, as_markdown, as_text

NOON = datetime(2026, 11, 30, 12, tzinfo=UTC)
ATTACKS = Path(__file__).parents[3] / "shared" / "attacks" / "text"


def report(title: str = "decode-a hangs", claim: str = "The overlap schedule.") -> Document:
    subject = Subject(142, title, "sev1", "open", NOON, targets=("decode-a",))
    source = Source(219, "decode-a", "/bundles/219", NOON, {})
    edits = changed({}, Write("best_guess", claim), {}, by="mira", at=NOON)
    return draft(subject, [source], {}, edits, at=NOON)


@pytest.mark.parametrize(
    ("hostile", "shown"),
    [
        pytest.param("![x](http://evil/?c=1)", r"\!\[x\](http\://evil/?c=1)", id="image"),
        pytest.param("[ok](javascript:alert(1))", r"\[ok\](javascript\:alert(1))", id="link"),
        pytest.param("www.evil.example", r"www\.evil.example", id="bare-host"),
        pytest.param("a|b", r"a\|b", id="table-cell"),
        pytest.param("<script>", r"\<script\>", id="tag"),
        pytest.param("a\n# b", r"a \# b", id="heading"),
        pytest.param("&lt;", r"\&lt;", id="entity"),
        pytest.param("x\x1b[31mred", r"x\\x1b\[31mred", id="terminal-escape"),
        pytest.param("a\u202eb", r"a\\u202eb", id="direction-override"),
        pytest.param("a@evil.example", r"a\@evil.example", id="mail-and-mention"),
        pytest.param("$x$ ~y~ *z* _w_", r"\$x\$ \~y\~ \*z\* \_w\_", id="math-and-emphasis"),
    ],
)
def test_hostile_text_is_escaped(hostile: str, shown: str) -> None:
    assert escaped(hostile) == shown


@pytest.mark.parametrize("ticks", [0, 2, 3, 7], ids=lambda count: f"{count}-backticks")
def test_a_fence_is_longer_than_any_run_of_backticks_inside(ticks: int) -> None:
    first, *inside, last = fenced(f"a\n{'`' * ticks}\nb").split("\n")

    assert last == "`" * max(3, ticks + 1)
    assert first == f"{last}text"
    assert inside == ["a", "`" * ticks, "b"]


def test_a_note_of_several_lines_stands_in_a_fence_and_cannot_leave_it() -> None:
    note = Line(NOON, "mira", "before\n```\n# heading\n[x](http://evil)")

    text = as_markdown(report(), [note])

    assert "  ````text\n  before\n  ```\n  # heading\n  [x](http://evil)\n  ````\n" in text


def test_a_hostile_claim_takes_one_line_and_no_life_in_both_twins() -> None:
    document = report(title="a|b\n# c", claim="[x](http://evil)\n\n## Ruled out\n- no")

    markdown, text = as_markdown(document, []), as_text(document, [])

    assert markdown.startswith("# Incident 142: a\\|b \\# c\n")
    assert markdown.count("\n## Ruled out\n") == 1
    assert "http://evil" not in markdown
    assert text.count("\n  hypothesis   [x](http://evil) ## Ruled out - no (written by mira") == 1


def test_saved_attacks_on_markdown_come_out_inert() -> None:
    file = ATTACKS / "markdown_injection.md"
    if not file.exists():
        pytest.skip("../shared/attacks is not beside this checkout")

    line = escaped(file.read_text())

    assert "\n" not in line
    assert "http://" not in line
    assert "javascript:" not in line
    assert all(line[at - 1] == "\\" for at, char in enumerate(line) if char in "[]<>|`")


def test_the_twins_tell_the_fields_the_inputs_and_the_timeline() -> None:
    line = Line(NOON, "mira", "Acknowledged.")

    markdown, text = as_markdown(report(), [line]), as_text(report(), [line])

    assert "| bundle 219 | bundle | /bundles/219 | 2026-11-30T12:00:00Z |" in markdown
    assert "- 2026-11-30T12:00:00Z mira: Acknowledged." in markdown
    assert "- **unknown** Not decided." in markdown
    assert "BEST GUESS\n  hypothesis   The overlap schedule. (written by mira" in text
    assert "  2026-11-30T12:00:00Z  mira: Acknowledged." in text


def test_the_twins_show_what_was_struck_its_reason_and_what_a_step_risks() -> None:
    subject = Subject(142, "decode-a hangs", "sev1", "open", NOON)
    found = {
        "checked": [
            {
                "what": "rank-skew",
                "result": "equal",
                "evidence": [{"artifact": "bundle 219/loads_all_1.json", "at": "/loads"}],
            }
        ],
        "next_steps": [{"text": "Take stacks.", "why": "They tell.", "risk": "A pause."}],
    }
    fields = draft(subject, [], found, {}, at=NOON)["fields"]
    strike = Strike(fields["next_steps"][0]["key"], "Too | late.")
    edits = changed({}, strike, fields, by="mira", at=NOON)
    document = draft(subject, [], found, edits, at=NOON)

    markdown, text = as_markdown(document, []), as_text(document, [])

    assert (
        "- **hypothesis** ~~Take stacks.~~ struck by mira: Too \\| late. They tell. Risk: A pause."
    ) in markdown
    assert r"rank-skew: Equal \[bundle 219 loads\_all\_1.json /loads\]" in markdown
    assert "(struck by mira: Too | late.) Take stacks. They tell. Risk: A pause." in text
    assert "rank-skew: Equal [bundle 219 loads_all_1.json /loads]" in text
    assert "No evidence has been collected yet." in markdown
