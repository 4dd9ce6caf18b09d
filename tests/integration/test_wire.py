"""HTTP as servers really speak it, and as they should not, on the connections of a replay."""

import asyncio
import time

import pytest

from app.clients.answering import Sent
from app.clients.generate import Line
from app.clients.target import TargetAddress
from app.domain.replay.limits import Limits
from tests.integration.scripted_target import Behaviour, says, scripted_target
from tests.replaying import replay_target
from tests.waiting import until

LIMITS = Limits(connect_seconds=20, request_seconds=20)
JSON = (
    b'{"text": "hello", "meta_info": {"completion_tokens": 1, "finish_reason": {"type": "stop"}}}'
)
HEAD = b"HTTP/1.1 200 OK\r\nContent-Type: application/json\r\n"
CHUNKED = b"Transfer-Encoding: chunked\r\n\r\n%x\r\n%s\r\n0\r\n\r\n" % (len(JSON), JSON)
WHOLE = HEAD + b"Content-Length: %d\r\n\r\n" % len(JSON) + JSON


def sent_to(*behaviours: Behaviour) -> list[Sent]:
    """One request to each path, one after another, over the connections of one line."""
    paths = {f"/{n}": one for n, one in enumerate(behaviours)}
    with scripted_target(paths) as target:
        return asyncio.run(_send(target.base_url, list(paths)))


async def _send(base_url: str, paths: list[str], *, apart_seconds: float = 0.0) -> list[Sent]:
    async with Line(TargetAddress(base_url), LIMITS) as line:
        sent = [Sent(began_at=time.monotonic()) for _ in paths]
        for path, one in zip(paths, sent, strict=True):
            await line.send(path, b"{}", one)
            await asyncio.sleep(apart_seconds)
    return sent


def slowly(raw: bytes) -> Behaviour:
    """*raw* byte by byte, as far as the network lets it."""

    async def behave(writer: asyncio.StreamWriter) -> None:
        for one in raw:
            writer.write(bytes([one]))
            await writer.drain()
            await asyncio.sleep(0)

    return behave


@pytest.mark.parametrize(
    "behaviour",
    [
        says(WHOLE),
        slowly(WHOLE),
        says(b"HTTP/1.1 100 Continue\r\n\r\n" + WHOLE),
        says(b"HTTP/1.1 103 Early Hints\r\nLink: </x>\r\n\r\n" + WHOLE),
        says(HEAD + b"\r\n" + JSON),
        says(HEAD + CHUNKED),
        says(WHOLE.replace(b"Content-Type", b"CONTENT-TYPE")),
        says(WHOLE + b"HTTP/1.1 200 OK\r\n\r\n"),
    ],
    ids=["whole", "byte by byte", "100", "103", "until it closes", "chunked", "capitals", "more"],
)
def test_an_answer_is_read_however_it_is_framed(behaviour: Behaviour) -> None:
    [one] = sent_to(behaviour)
    assert (one.status, one.error, one.answer.text) == (200, None, "hello")


@pytest.mark.parametrize(
    ("raw", "error"),
    [
        (b"HTTP/1.1 200 OK\r\nX: " + b"x" * 500_000, "malformed-answer"),
        (b"HTTP/1.1 200 OK\r\n" + b"X: y\r\n" * 50_000 + b"\r\n", "malformed-answer"),
        (b"HTTP/1.1 200 OK\r\nContent-Length: -1\r\n\r\n", "malformed-answer"),
        (b"HTTP/9.9 999\r\n\r\n", "malformed-answer"),
        (HEAD + b"Transfer-Encoding: chunked\r\n\r\nnot a number\r\n", "malformed-answer"),
        (HEAD + b"Content-Length: 1000\r\n\r\n" + JSON, "stream-cut"),
        (HEAD[:20], "connection-reset"),
        (b"", "connection-reset"),
        (b"HTTP/1.1 100 Continue\r\n\r\n", "connection-reset"),
        (b"HTTP/1.1 100 Continue\r\n\r\n" * 20_000, "malformed-answer"),
        (b"HTTP/1.1 101 Upgrade\r\nConnection: Upgrade\r\nUpgrade: x\r\n\r\nabc",
         "malformed-answer"),
        (HEAD + b"Transfer-Encoding: chunked\r\n\r\n0\r\n" + b"X: y\r\n" * 50_000,
         "malformed-answer"),
        (HEAD + b"Transfer-Encoding: chunked\r\n\r\n1;" + b"x" * 500_000, "malformed-answer"),
    ],
    ids=["long header", "many headers", "length", "status line", "chunk", "short", "cut head",
         "nothing", "only 100", "many 100", "101", "trailers", "chunk extension"],
)  # fmt: skip
def test_an_answer_that_is_not_one_is_told(raw: bytes, error: str) -> None:
    [one] = sent_to(says(raw))
    assert one.error == error


def test_a_server_that_speaks_first_and_leaves_is_told_at_once() -> None:
    async def run() -> Sent:
        async def greet(_: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
            writer.write(b"220 mail\r\n")
            writer.close()

        async with await asyncio.start_server(greet, "127.0.0.1", 0) as server:
            port = server.sockets[0].getsockname()[1]
            async with Line(TargetAddress(f"http://127.0.0.1:{port}"), LIMITS) as line:
                sent = Sent(began_at=time.monotonic())
                await line.send("/generate", b"{}", sent)
                return sent

    sent = asyncio.run(run())
    assert sent.error in ("connection-reset", "malformed-answer")
    assert sent.ended_at - sent.began_at < LIMITS.request_seconds / 2


def test_more_than_was_asked_for_ends_the_connection() -> None:
    sent = sent_to(says(WHOLE + b"HTTP/1.1 200 OK\r\nX"), says(WHOLE))
    assert [(one.error, one.kept_line) for one in sent] == [(None, False), (None, False)]


def test_a_broken_connection_is_not_used_for_the_next_request() -> None:
    closing = WHOLE.replace(b"\r\n\r\n", b"\r\nConnection: close\r\n\r\n")
    sent = sent_to(says(b"nonsense\r\n\r\n"), says(closing), says(closing))
    assert [one.error for one in sent] == ["malformed-answer", None, None]
    assert not any(one.kept_line for one in sent)


def test_a_server_that_closes_a_kept_connection_without_a_word_is_told_as_that() -> None:
    async def answers_and_waits(writer: asyncio.StreamWriter) -> None:
        writer.write(WHOLE)
        await writer.drain()
        await asyncio.sleep(2.0)  # then the target closes, whatever came meanwhile

    first, second = sent_to(answers_and_waits, answers_and_waits)
    assert first.error is None
    assert (second.error, second.kept_line) == ("connection-reset", True)
    assert "kept from before" in (second.says or "")


def test_a_connection_is_kept_for_the_next_request() -> None:
    with replay_target() as target:
        sent = asyncio.run(_send(target.base_url, ["/generate"] * 5))
        assert [one.error for one in sent] == [None] * 5
        assert len({one["peer"] for one in target.seen()}) == 1


def test_a_cancelled_request_keeps_what_was_measured_and_gives_no_connection_back() -> None:
    async def run(base_url: str) -> Sent:
        async with Line(TargetAddress(base_url), LIMITS) as line:
            sent = Sent(began_at=time.monotonic())
            body = b'{"text": "stands", "stream": true}'
            task = asyncio.create_task(line.send("/generate", body, sent))
            await asyncio.to_thread(until, lambda: sent.answer.completion_tokens == 2)
            task.cancel()
            with pytest.raises(asyncio.CancelledError):
                await task
            again = Sent(began_at=time.monotonic())
            await line.send("/generate", b"{}", again)
            assert again.error is None
            return sent

    with replay_target() as target:
        sent = asyncio.run(run(target.base_url))
    assert (sent.status, sent.error, sent.answer.completion_tokens) == (200, None, 2)
    assert sent.ended_at > sent.began_at
