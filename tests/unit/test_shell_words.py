"""A pasted command line is split as a shell would, and nothing in it is expanded."""

import shlex
import string
import subprocess
from contextlib import suppress

import pytest
from hypothesis import given
from hypothesis import strategies as st

from app.domain.shell_words import split
from app.errors import ConsoleError, Malformed, Rejected

WORDS = st.lists(st.text(alphabet=st.characters(codec="utf-8"), max_size=20))
ANY = st.text(alphabet=st.sampled_from(string.printable + "é\u2028\x00"), max_size=60)


@given(WORDS)
def test_what_was_quoted_for_a_shell_comes_back(words: list[str]) -> None:
    assert split(shlex.join(words)) == words


@given(ANY)
def test_any_text_is_words_or_a_reason(text: str) -> None:
    with suppress(Malformed, Rejected):
        assert all(isinstance(word, str) for word in split(text))


@given(st.text(alphabet="ab '\"\\\n", max_size=30))
def test_what_needs_no_expansion_is_split_as_bash_does(text: str) -> None:
    try:
        words = split(text)
    except ConsoleError:
        return
    if "\n" in _outside_quotes(text):
        return  # there a shell would begin another command
    script = f"printf '%s\\0' _ {text}"
    told = subprocess.run(["bash", "-c", script], capture_output=True, text=True, check=True)
    assert told.stdout.split("\0")[1:-1] == words


def _outside_quotes(text: str) -> str:
    """*text* without its quoted and escaped parts; good enough for so few characters."""
    outside, quote, at = [], "", 0
    while at < len(text):
        sign = text[at]
        if quote:
            at += 1 if sign == "\\" and quote == '"' else 0
            quote = "" if sign == quote else quote
        elif sign == "\\":
            at += 1
        elif sign in "'\"":
            quote = sign
        else:
            outside.append(sign)
        at += 1
    return "".join(outside)


@pytest.mark.parametrize(
    ("text", "words"),
    [
        pytest.param("a \\\n  b", ["a", "b"], id="line-goes-on"),
        pytest.param("a \\\r\n  b", ["a", "b"], id="windows-line-goes-on"),
        pytest.param(r"$'it\'s\n\u00e9'", ["it's\né"], id="ansi-c-quotes"),
        pytest.param("'it'\\''s'", ["it's"], id="quote-in-quotes"),
        pytest.param('"a \\"b\\" \\$c \\x"', ['a "b" $c \\x'], id="double-quotes"),
        pytest.param("'$HOME `id` $(id)'", ["$HOME `id` $(id)"], id="literal-in-single-quotes"),
        pytest.param("5$", ["5$"], id="a-dollar-alone"),
    ],
)
def test_quotes_mean_what_they_mean_to_a_shell(text: str, words: list[str]) -> None:
    assert split(text) == words


@pytest.mark.parametrize(
    ("text", "kind"),
    [
        pytest.param("a; b", Rejected, id="two-commands"),
        pytest.param("a | b", Rejected, id="pipe"),
        pytest.param("a > b", Rejected, id="into-a-file"),
        pytest.param("a $HOME", Rejected, id="variable"),
        pytest.param('"$(id)"', Rejected, id="command-in-quotes"),
        pytest.param("`id`", Rejected, id="backticks"),
        pytest.param("'open", Malformed, id="open-quote"),
        pytest.param('"open', Malformed, id="open-double-quote"),
        pytest.param("open\\", Malformed, id="open-escape"),
        pytest.param(r"$'\ud800'", Malformed, id="half-a-character"),
        pytest.param(r"$'\xe9'", Malformed, id="a-byte"),
        pytest.param("a" * (4 * 1024**2 + 1), Rejected, id="too-long"),
    ],
)
def test_what_is_not_plain_words_is_refused(text: str, kind: type[ConsoleError]) -> None:
    with pytest.raises(kind):
        split(text)
