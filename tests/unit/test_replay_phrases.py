"""The words of a target that refuses: what everybody may read of them."""

from dataclasses import replace

import pytest

from app.domain.replay.outcomes import ERROR_CLASSES
from app.domain.replay.phrases import at_t0, phrase, redirected, without_words
from tests.replays import FINISHED, outcome

PROMPT = "My name is Ada, my card 4111"


@pytest.mark.parametrize(
    "says",
    [
        f"Invalid request: {PROMPT}",
        PROMPT,
        f"The request queue is full. {PROMPT}",
        f"The input (9 tokens) is longer than the model's context length (4 tokens). {PROMPT}",
        f"unknown field `{PROMPT}` at line 1",
        f"LoRA adapter {PROMPT} is not loaded",
        f"session {PROMPT} does not exist",
        f"Failed to load image {PROMPT}",
        f"abort: {PROMPT}",
        f"  Not found: {PROMPT}",
        f"\N{RIGHT-TO-LEFT OVERRIDE}{PROMPT}",
    ],
)
@pytest.mark.parametrize(
    ("error", "status"),
    [
        ("bad-request", 400),
        ("server-error", 500),
        ("aborted", 200),
        ("unauthorized", 403),
        ("not-found", 404),
        ("redirected", 302),
        ("too-many", 429),
        ("overloaded", 503),
        ("malformed-answer", 101),
    ],
)
def test_no_word_of_a_prompt_is_in_it(error: str, status: int, says: str) -> None:
    told = phrase(error, status, says)

    assert told is not None
    assert not [word for word in PROMPT.split() if len(word) > 2 and word.strip(",") in told]


@pytest.mark.parametrize(
    ("says", "told"),
    [
        ("The request queue is full.", "It says that its queue is full."),
        ("KV cache pool is full. …", "It says that its KV cache is full."),
        (
            "The input (9000 tokens) is longer than the model's context length (4096 tokens).",
            "It says that the prompt has 9000 tokens and its context 4096.",
        ),
        ("Unauthorized", "It says that the key is missing or wrong."),
        ("Hello", "It says why in 5 characters, kept with the raw outcomes."),
        ("   ", None),
        ("", None),
        (None, None),
    ],
)
def test_what_is_known_is_told_in_our_words(says: str | None, told: str | None) -> None:
    assert phrase("bad-request", 400, says) == told


@pytest.mark.parametrize("says", [None, "", "<html>Moved</html>", redirected("http://h/x")])
def test_of_a_redirect_all_may_read_that_it_is_one_and_no_more(says: str | None) -> None:
    told = "It redirects elsewhere; no redirect is followed."

    assert phrase("redirected", 302, says) == redirected() == told


def test_where_a_redirect_leads_is_told_without_what_may_be_a_key() -> None:
    told = "It redirects to https://sso.example/login; no redirect is followed."

    assert redirected("https://sso.example/login?ticket=S3CRET#a") == told
    assert redirected("?ticket=S3CRET") == "It redirects elsewhere; no redirect is followed."


@pytest.mark.parametrize(
    ("error", "status", "says"),
    [
        ("connection-refused", None, "Nothing listens there."),
        ("no-first-token", None, "Not one token in 600 s."),
        ("malformed-answer", 200, "A part of the answer is no JSON."),
        ("cancelled", None, "The replay was stopped while it ran."),
    ],
)
def test_our_own_words_stay(error: str, status: int | None, says: str) -> None:
    assert phrase(error, status, says) == says


def test_every_class_is_told_somehow_and_figures_stay() -> None:
    for error in ERROR_CLASSES:
        one = outcome(3, error, status=200, says=PROMPT, completion_tokens=7)
        told = without_words(one)
        assert told.says
        assert (told.index, told.error, told.completion_tokens) == (3, error, 7)


@pytest.mark.parametrize("why", ["stop", "length", "abort", "tool_calls", "content_filter", None])
def test_why_an_answer_ended_stays_where_it_is_a_word_for_that(why: str | None) -> None:
    told, recorded = at_t0(outcome(finish_reason=why), replace(FINISHED, finish_reason=why))

    assert (told.finish_reason, recorded.finish_reason) == (why, why)


@pytest.mark.parametrize("why", [PROMPT, "stop: Ada", "Stop", "ada"])
def test_any_other_word_for_it_is_counted(why: str) -> None:
    told, recorded = at_t0(outcome(finish_reason=why), replace(FINISHED, finish_reason=why))

    assert told.finish_reason == recorded.finish_reason == f"other ({len(why)} characters)"
