"""The player against a real target: every way in which a request can go, and how a replay ends."""

import os
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path

import orjson
import pytest

from app.clients.player import Played, play
from app.clients.target import TargetAddress
from app.domain.replay.limits import Limits
from app.domain.replay.options import Options
from app.domain.replay.outcomes import Outcome
from app.domain.replay.planned import Recorded, Sending
from app.errors import Rejected, Unreachable
from tests.integration.shared_tools import tool
from tests.ports import free_port
from tests.replaying import ReplayTarget, replay_target, sending
from tests.waiting import BUSY, until

pytestmark = pytest.mark.slow

ROOT = Path(__file__).parents[2]
AS_RECORDED = Options()
LIMITS = Limits(
    connect_seconds=20, request_seconds=4, total_seconds=100, frame_bytes=200_000, frames=500
)


@pytest.fixture(scope="module")
def target() -> Iterator[ReplayTarget]:
    with replay_target() as one:
        yield one


def played(
    address: TargetAddress | str,
    *sendings: Sending,
    options: Options = AS_RECORDED,
    limits: Limits = LIMITS,
) -> list[Outcome]:
    """The outcomes, in the order of their indexes."""
    where = TargetAddress(address) if isinstance(address, str) else address
    outcomes: list[Outcome] = []
    play(sendings, where, options, take=outcomes.extend, limits=limits)
    return sorted(outcomes, key=lambda one: one.index)


@pytest.mark.parametrize("kind", ["cumulative", "incremental"])
def test_a_stream_is_read_to_its_end_whether_it_repeats_itself_or_not(
    target: ReplayTarget, kind: str
) -> None:
    before = time.time()
    [one] = played(target.base_url, sending(7, f"{kind} 0.3"))

    assert (one.index, one.rid, one.status, one.error) == (7, "rid-7", 200, None)
    assert (one.prompt_tokens, one.completion_tokens, one.cached_tokens) == (7, 4, 3)
    assert (one.finish_reason, one.frames) == ("length", 4)
    assert one.output_characters == len(" one two three four")
    assert one.ttft_seconds is not None
    assert one.e2e_seconds is not None
    assert 0.3 <= one.ttft_seconds < one.e2e_seconds - 0.1
    assert one.inter_token_p50_ms is not None
    assert 100 < one.inter_token_p50_ms < 300 * BUSY
    assert one.sent_at is not None
    assert before < one.sent_at < time.time()
    assert one.lateness_ms is not None
    assert one.lag_ms is not None


def test_both_kinds_of_streams_and_a_whole_answer_have_one_hash(target: ReplayTarget) -> None:
    three = played(target.base_url, sending(0), sending(1, "incremental"), sending(2, stream=False))
    assert len({one.output_hash for one in three}) == 1
    assert three[2].ttft_seconds is None
    assert three[2].completion_tokens == 4


ENDS = [
    ("unauthorized", 401, "unauthorized", "no: unauthorized"),
    ("missing", 404, "not-found", "no: missing"),
    ("wrong", 400, "bad-request", "no: wrong"),
    ("broken", 500, "server-error", "no: broken"),
    ("overloaded", 503, "overloaded", "no: overloaded"),
    ("redirect", 302, "redirected", "It redirects to http://169.254.169.254/; no redirect is"),
    ("aborts", 200, "overloaded", "KV cache pool is full."),
    ("errs", 200, "bad-request", "The input is too long."),
    ("cut", 200, "stream-cut", "The connection ended in the middle of the answer."),
    ("ends", 200, "stream-cut", "The stream ended before it said that it was done."),
    ("stands", 200, "timeout", "It answered, and had not ended after 4 s."),
    ("hang", None, "no-first-token", "No token in 4 s."),
    ("drip", 200, "no-first-token", "No token in 4 s."),
    ("reset", None, "connection-reset", "answered nothing"),
    ("swells", 200, "too-large", "The answer has more than is taken in."),
    ("runs-on", 200, "too-large", "The answer has more than is taken in."),
    ("mumbles", 200, "malformed-answer", "A part of the answer is no JSON."),
    ("packed", 200, "malformed-answer", "Compressed"),
    ("other", 200, "malformed-answer", "It answered 200 with JSON that is no answer."),
    ("foreign", 200, "malformed-answer", "It answered 200 with JSON that is no answer."),
    ("foreign-stream", 200, "malformed-answer", "It answered 200 with JSON that is no answer."),
    ("empty", 200, "malformed-answer", "It answered 200 without an answer."),
    ("babble", None, "malformed-answer", "Not proper HTTP"),
]


@pytest.fixture(scope="module")
def ends(target: ReplayTarget) -> dict[str, Outcome]:
    """How one request of each kind went, all sent at once."""
    kinds = [kind for kind, *_ in ENDS]
    outcomes = played(target.base_url, *[sending(n, kind) for n, kind in enumerate(kinds)])
    return dict(zip(kinds, outcomes, strict=True))


@pytest.mark.parametrize(("kind", "status", "error", "says"), ENDS, ids=[kind for kind, *_ in ENDS])
def test_how_a_request_can_end(
    ends: dict[str, Outcome], kind: str, status: int | None, error: str, says: str
) -> None:
    one = ends[kind]
    assert (one.status, one.error) == (status, error)
    assert says in (one.says or "")
    assert one.e2e_seconds is not None


@pytest.mark.parametrize("mode", ["ok", "xss"])
def test_json_of_a_hostile_server_is_no_answer(mode: str) -> None:
    with tool("hostile_server.py", mode) as base_url:
        [one] = played(base_url, sending())

    assert (one.status, one.error, one.output_characters) == (200, "malformed-answer", None)
    assert one.says == "It answered 200 with JSON that is no answer."


def test_what_was_measured_before_a_failure_is_told_with_it(target: ReplayTarget) -> None:
    [one] = played(target.base_url, sending(0, "cut 0.02"))
    assert one.error == "stream-cut"
    assert (one.frames, one.completion_tokens, one.finish_reason) == (2, 2, None)
    assert one.ttft_seconds is not None


def test_nothing_listening_is_a_refusal_and_no_second_try() -> None:
    [one] = played(f"http://127.0.0.1:{free_port()}", sending())
    assert (one.status, one.error, one.says) == (
        None,
        "connection-refused",
        "Nothing listens there.",
    )
    assert one.sent_at is not None


def test_nothing_is_ever_sent_twice_and_no_redirect_followed() -> None:
    with replay_target() as target:
        kinds = ["reset", "cut", "redirect", "overloaded", "babble", "hang"]
        played(target.base_url, *[sending(n, kind) for n, kind in enumerate(kinds)])
        assert sorted(one["body"]["text"] for one in target.seen()) == sorted(kinds)


def test_keys_and_headers_go_to_the_target_and_nothing_comes_from_the_environment(
    target: ReplayTarget, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("HTTP_PROXY", f"http://127.0.0.1:{free_port()}")
    address = TargetAddress(target.base_url, token="sk-FAKE-1", headers={"X-Team": "blue"})
    [one] = played(address, sending(0, "cumulative", mark="keys"))
    [seen] = [one for one in target.seen() if one["body"].get("mark") == "keys"]

    assert one.error is None
    assert seen["path"] == "/generate"
    assert seen["headers"]["authorization"] == "Bearer sk-FAKE-1"
    assert seen["headers"]["x-team"] == "blue"
    assert seen["headers"]["accept-encoding"] == "identity"
    assert "cookie" not in seen["headers"]


def test_a_key_that_the_target_says_back_is_not_told(target: ReplayTarget) -> None:
    outcomes: list[Outcome] = []
    address = TargetAddress(target.base_url, token="a-key-of-ours")
    play([sending(0, "echoes")], address, Options(), take=outcomes.extend)
    assert outcomes[0].error == "unauthorized"
    assert outcomes[0].says == "Not a key: Bearer ‹redacted:ours›."


def test_requests_go_out_at_their_time_whatever_earlier_ones_do(target: ReplayTarget) -> None:
    hanging = [sending(n, "hang", due=0.0) for n in range(20)]
    timely = [sending(20 + n, due=0.1 * n) for n in range(10)]
    outcomes = played(target.base_url, *hanging, *timely)
    held_up, sent = outcomes[:20], [one.sent_at or 0 for one in outcomes[20:]]

    assert [one.error for one in outcomes[20:]] == [None] * 10
    assert sent == sorted(sent)
    assert sent[9] - min(one.sent_at or 0 for one in held_up) > 0.8
    assert sent[9] < min((one.sent_at or 0) + (one.e2e_seconds or 0) for one in held_up)


def test_a_closed_loop_keeps_so_many_in_flight_and_no_more(target: ReplayTarget) -> None:
    sendings = [sending(n, "cumulative 0.02") for n in range(20)]
    outcomes = played(target.base_url, *sendings, options=Options(mode="closed", parallel=4))
    ends = sorted(
        change
        for one in outcomes
        for change in (
            ((one.sent_at or 0), 1),
            ((one.sent_at or 0) + (one.e2e_seconds or 0) - 0.001, -1),
        )
    )
    now = most = 0
    for _, change in ends:
        now += change
        most = max(most, now)
    assert most == 4
    assert all((one.lateness_ms or 0) < 500 * BUSY for one in outcomes)


def test_answers_are_compared_with_the_recorded_tokens(target: ReplayTarget) -> None:
    same = Recorded(output_ids=(104, 104, 106, 105))
    other = Recorded(output_ids=(104, 104, 9, 9, 9))
    outcomes = played(
        target.base_url, sending(0, recorded=same), sending(1, recorded=other), sending(2)
    )
    told = [(one.compared_tokens, one.first_divergent_token) for one in outcomes]
    assert told == [(4, None), (4, 2), (0, None)]


def test_it_is_told_how_far_apart_the_first_other_tokens_were(target: ReplayTarget) -> None:
    near, far = (104, 104, 9, 9), (104, 104, 8, 9)
    sure = Recorded(output_ids=near, output_logprobs=(0.0, 0.0, -0.1, 0.0))
    outcomes = played(
        target.base_url,
        sending(0, "likely", recorded=Recorded(output_ids=near)),
        sending(1, "likely", recorded=Recorded(output_ids=far)),
        sending(2, "likely", recorded=sure),
        sending(3, "cumulative", recorded=sure),
        sending(4, "cumulative", recorded=Recorded(output_ids=near)),
    )
    assert [one.first_divergent_token for one in outcomes] == [2] * 5
    assert [one.logprob_gap for one in outcomes[:1]] == [0.05]
    assert outcomes[1].logprob_gap == pytest.approx(2.77, abs=0.01)  # what the two leave of 1
    assert [one.logprob_gap for one in outcomes[2:4]] == [pytest.approx(2.25, abs=0.01)] * 2
    assert outcomes[4].logprob_gap is None


def test_several_processes_share_the_requests_and_one_start(target: ReplayTarget) -> None:
    limits = Limits(processes=3, request_seconds=20)
    outcomes = played(target.base_url, *[sending(n, due=n / 50) for n in range(100)], limits=limits)
    start = min((one.sent_at or 0) - one.due_seconds for one in outcomes)
    assert [one.index for one in outcomes] == list(range(100))
    assert [one.error for one in outcomes] == [None] * 100
    assert max((one.sent_at or 0) - one.due_seconds - start for one in outcomes) < 1.0 * BUSY


def test_a_target_that_dies_is_told_by_who_was_cut_off_and_who_was_refused() -> None:
    sendings = [sending(n, "cumulative 0.05", due=0.1 * n) for n in range(40)]
    with replay_target(dies_after=20) as target:
        outcomes = played(target.base_url, *sendings)
    errors = [one.error for one in outcomes]

    assert errors[0] is None
    assert errors[19] == "connection-reset"
    assert errors[39] == "connection-refused"
    assert {"stream-cut", "connection-reset"} >= set(errors[12:20]) - {None}


@pytest.mark.parametrize(
    ("url", "error"),
    [
        ("http://169.254.169.254:80", Rejected),
        ("http://no-such-host.invalid:30000", Unreachable),
    ],
    ids=["metadata service", "unknown name"],
)
def test_an_address_that_cannot_be_asked_is_said_before_anything_is_sent(
    url: str, error: type[Exception]
) -> None:
    with pytest.raises(error):
        played(url, sending())


def test_only_allowed_targets_are_asked(target: ReplayTarget) -> None:
    address = TargetAddress(target.base_url, allowed=("10.0.0.0/8",))
    before = len(target.seen())
    with pytest.raises(Rejected):
        played(address, sending())
    assert len(target.seen()) == before


def test_told_to_stop_it_breaks_off_within_a_second_and_says_what_was_not_sent(
    target: ReplayTarget,
) -> None:
    stop, outcomes, ended = threading.Event(), list[Outcome](), list[Played]()
    sendings = [sending(0), sending(1, "hang"), sending(2, "hang", due=30.0)]
    limits = Limits(request_seconds=60)

    def run() -> None:
        address = TargetAddress(target.base_url)
        options = Options()
        ended.append(
            play(sendings, address, options, take=outcomes.extend, stop=stop.is_set, limits=limits)
        )

    thread = threading.Thread(target=run)
    thread.start()
    until(lambda: outcomes)
    stop.set()
    since = time.monotonic()
    thread.join(100)
    took = time.monotonic() - since

    assert took < 1.0 * BUSY
    assert ended[0].stopped
    by_index = {one.index: one for one in outcomes}
    assert [by_index[n].error for n in range(3)] == [None, "cancelled", "not-sent"]
    assert by_index[2].sent_at is None


def test_when_the_time_for_all_is_up_the_rest_is_not_sent(target: ReplayTarget) -> None:
    limits = Limits(request_seconds=60, total_seconds=3.0)
    outcomes = played(target.base_url, sending(0, "hang"), sending(1, due=30.0), limits=limits)
    assert [one.error for one in outcomes] == ["cancelled", "not-sent"]


def test_what_the_taker_raises_ends_the_replay(target: ReplayTarget) -> None:
    def refuse(outcomes: object) -> None:
        raise LookupError

    sendings = [sending(0), sending(1, due=60.0)]
    with pytest.raises(LookupError):
        play(sendings, TargetAddress(target.base_url), Options(), take=refuse)


KILLED = """
import sys
from app.clients.player import play
from app.clients.target import TargetAddress
from app.domain.replay.options import Options
from app.domain.replay.limits import Limits
from tests.replaying import sending

def take(outcomes):
    for one in outcomes:
        sys.stdout.write(f"{one.index}\\n")
    sys.stdout.flush()

play([sending(n, due=0.05 * n) for n in range(2000)], TargetAddress(sys.argv[1]),
     Options(), take=take, limits=Limits(processes=2))
"""


def test_kill_nine_of_the_player_ends_its_processes_and_loses_nothing_handed_on() -> None:
    command = [sys.executable, "-c", KILLED]
    with (
        replay_target() as target,
        subprocess.Popen([*command, target.base_url], cwd=ROOT, stdout=subprocess.PIPE) as player,
    ):
        assert player.stdout is not None
        handed_on = [int(player.stdout.readline()) for _ in range(20)]
        children = _children(player.pid)
        os.kill(player.pid, signal.SIGKILL)
        handed_on += [int(line) for line in player.stdout.read().split()]
        until(lambda: not any(Path(f"/proc/{pid}").exists() for pid in children))

        assert len(children) == 2
        assert len(set(handed_on)) == len(handed_on) >= 20
        assert until(target.seen_at_last) < 400


def test_a_process_that_ends_by_itself_leaves_its_requests_told(target: ReplayTarget) -> None:
    outcomes: list[Outcome] = []
    killed: list[int] = []

    def take(batch: list[Outcome]) -> None:
        outcomes.extend(batch)
        for pid in _children(os.getpid()) if not killed else ():
            if b"play_process" in Path(f"/proc/{pid}/cmdline").read_bytes():
                killed.append(pid)
                os.kill(pid, signal.SIGKILL)

    sendings = [sending(0), sending(1, "cumulative", due=20.0)]
    ended = play(sendings, TargetAddress(target.base_url), Options(), take=take)  # type: ignore[arg-type]

    assert killed
    assert not ended.stopped
    assert [(one.index, one.error) for one in outcomes] == [(0, None), (1, "cancelled")]
    assert "signal 9" in (outcomes[1].says or "")


def test_bodies_lie_in_a_file_without_a_name_and_are_asked_for_once(target: ReplayTarget) -> None:
    asked: list[int] = []

    def lazily() -> Iterator[Sending]:
        for n in range(50):
            asked.append(n)
            yield sending(n, more="x" * 100_000, due=0.0)

    outcomes: list[Outcome] = []
    play(lazily(), TargetAddress(target.base_url), Options(), take=outcomes.extend)
    assert asked == list(range(50))
    assert [one.error for one in outcomes] == [None] * 50


def test_the_key_is_in_no_argument_and_no_environment_of_what_it_starts(
    target: ReplayTarget,
) -> None:
    found: list[bytes] = []

    def take(batch: object) -> None:
        for pid in _children(os.getpid()) if not found else ():
            folder = Path(f"/proc/{pid}")
            found.append((folder / "cmdline").read_bytes() + (folder / "environ").read_bytes())

    address = TargetAddress(target.base_url, token="sk-FAKE-SECRET-1")
    play([sending(0), sending(1, due=1.0)], address, Options(), take=take)
    assert any(b"play_process" in one for one in found)
    assert not any(b"sk-FAKE-SECRET-1" in one for one in found)


def test_outcomes_fit_into_json(target: ReplayTarget) -> None:
    assert orjson.loads(orjson.dumps(played(target.base_url, sending())))[0]["index"] == 0


def _children(pid: int) -> list[int]:
    found = []
    for task in Path(f"/proc/{pid}/task").iterdir():
        with suppress(OSError):  # a thread that has ended meanwhile
            found += [int(one) for one in (task / "children").read_text().split()]
    return found
