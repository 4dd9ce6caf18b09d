"""Request dumping: how large a file, what is sent, what an answer means."""

import orjson
import pytest
from hypothesis import given
from hypothesis import strategies as st

from app.domain.recording import (
    CAUTIOUS_THRESHOLD,
    MAX_THRESHOLD,
    RETRY_SECONDS,
    Answered,
    Known,
    body_off,
    body_on,
    check_folder,
    command_off,
    doubts,
    meant,
    pause_seconds,
    refusal,
    sends,
    suggestion,
)
from app.errors import Rejected


@pytest.mark.parametrize(
    ("rate", "threshold"),
    [
        pytest.param(10.0, 50, id="ten-a-second"),
        pytest.param(0.3, 2, id="few"),
        pytest.param(0.01, 1, id="hardly-any"),
        pytest.param(None, CAUTIOUS_THRESHOLD, id="not-known"),
        pytest.param(0.0, CAUTIOUS_THRESHOLD, id="none-seen"),
        pytest.param(float("nan"), CAUTIOUS_THRESHOLD, id="nonsense"),
        pytest.param(1e9, MAX_THRESHOLD, id="absurd"),
    ],
)
def test_a_file_holds_about_five_seconds_of_traffic(rate: float | None, threshold: int) -> None:
    assert suggestion(rate).threshold == threshold


@given(st.floats(min_value=1e-6, max_value=15_000))
def test_a_suggested_file_is_never_written_more_often_than_once_in_five_seconds(
    rate: float,
) -> None:
    assert suggestion(rate).threshold / rate >= 4.999


def test_a_rate_that_is_not_known_is_said() -> None:
    assert "not known" in suggestion(None).why
    assert "no request finish" in suggestion(0.0).why
    assert "cautious" not in suggestion(4.0).why


def test_only_two_keys_are_sent_and_one_for_off() -> None:
    on = {"dump_requests_folder": "/a", "dump_requests_threshold": 5}
    assert orjson.loads(body_on("/a", 5)) == on
    assert orjson.loads(body_off()) == {"dump_requests_folder": ""}


@given(st.text(max_size=40))
def test_a_folder_is_a_plain_absolute_path_or_refused(text: str) -> None:
    try:
        folder = check_folder(text)
    except Rejected:
        return
    assert folder.startswith("/")
    assert folder.isprintable()
    assert ".." not in folder.split("/")


@pytest.mark.parametrize(
    ("answered", "effect"),
    [
        pytest.param(Answered(200), "done", id="200"),
        pytest.param(Answered(401), "refused", id="401"),
        pytest.param(Answered(403), "refused", id="403"),
        pytest.param(Answered(404), "refused", id="404"),
        pytest.param(Answered(400, "2 validation errors"), "refused", id="400"),
        pytest.param(Answered(302), "refused", id="redirect"),
        pytest.param(Answered(500), "not known", id="500"),
        pytest.param(Answered(503), "not known", id="503"),
        pytest.param(Answered(None, nothing_sent=True), "not sent", id="not-connected"),
        pytest.param(Answered(None), "not known", id="lost"),
    ],
)
def test_an_answer_says_no_more_than_it_shows(answered: Answered, effect: str) -> None:
    assert meant(answered).effect == effect


def test_what_speaks_against_it_is_said_before_anything_is_sent() -> None:
    python = Known(frontend="python", tokenizers=1)
    assert doubts(python, admin_token=True) == []
    assert "401" in doubts(python, admin_token=False)[0]
    [told] = doubts(Known(frontend="python", tokenizers=4), admin_token=True)
    assert "4 tokenizers" in told
    assert "sent 32 times" in told
    assert len(doubts(Known(), admin_token=True)) == 2
    assert refusal(python) is None
    assert refusal(Known()) is None
    assert refusal(Known(frontend="rust")) is not None


def test_off_is_tried_with_growing_pauses_and_then_no_more() -> None:
    pauses = [pause_seconds(tries) for tries in range(1, len(RETRY_SECONDS) + 2)]
    assert pauses[-1] is None
    known = [pause for pause in pauses if pause is not None]
    assert known == sorted(known)
    assert 3600 < sum(known) < 3 * 3600


@pytest.mark.parametrize(("tokenizers", "times"), [(0, 1), (1, 1), (2, 16), (4, 32), (100, 64)])
def test_off_reaches_several_tokenizers_by_being_sent_again(tokenizers: int, times: int) -> None:
    assert sends(tokenizers) == times


def test_the_command_by_hand_is_safe_to_paste() -> None:
    assert command_off("http://h/a b';rm").endswith("""'http://h/a b'"'"';rm/configure_logging'""")
