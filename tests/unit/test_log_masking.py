"""What is masked in a log before it leaves its host."""

import pytest

from app.agent.evidence.redacting import MAX_PLACES, safe_log
from app.domain.user_content import without_user_content

WORDS = "the patient says"


@pytest.mark.parametrize(
    "line",
    [
        f"Receive: obj=GenerateReqInput(rid='7', text='{WORDS}', sampling_params={{}})",
        f"Finish: out={{'text': '{WORDS}', 'meta_info': {{}}}}",
        f'POST body: {{"messages": [{{"role": "user", "content": "{WORDS}"}}]}}',
        f"prompt: '{WORDS}', params: SamplingParams(n=1)",
        f'a json.dumps\'d body: {{\\"prompt\\": \\"{WORDS}\\"}}',
    ],
)
def test_contents_of_requests_are_masked_to_the_end_of_their_line(line: str) -> None:
    masked, places = without_user_content(f"before\n{line}\nafter {WORDS!r} of somebody")
    assert WORDS not in masked.split("\n")[1]
    assert masked.startswith("before\n")
    assert places == ("line 2",)


def test_a_log_of_shape_alone_is_kept_as_it_is() -> None:
    log = "[2026-01-01 TP0] Decode batch. #running-req: 3, token usage: 0.52\nText: plain\n"
    assert safe_log(log) == (log, [])


def test_what_was_masked_is_listed_up_to_a_limit() -> None:
    log = "\n".join(["prompt='x'"] * (MAX_PLACES + 5))
    _, masked = safe_log(log)
    assert masked[0] == "content, line 1"
    assert masked[-1] == "and 5 more"
    assert len(masked) == MAX_PLACES + 1


def test_a_hostile_log_of_one_long_line_is_masked_quickly() -> None:
    text, masked = safe_log("prompt=" * 30_000 + "'x'")
    assert text.endswith("‹content masked›")
    assert masked == ["content, line 1"]
