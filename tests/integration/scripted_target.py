"""A target on a real port that answers each path as a test wants: well, badly or not at all."""

import asyncio
import threading
from collections.abc import Callable, Coroutine, Iterator, Mapping
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from typing import Any

Behaviour = Callable[[asyncio.StreamWriter], Coroutine[Any, Any, None]]


@dataclass
class ScriptedTarget:
    """Where it listens and what it was asked, as (path, lower-case headers), in order."""

    port: int = 0
    asked: list[tuple[str, dict[str, str]]] = field(default_factory=list)
    bodies: list[tuple[str, bytes]] = field(default_factory=list)  # what was sent, by path

    @property
    def base_url(self) -> str:
        return f"http://127.0.0.1:{self.port}"

    def paths(self) -> list[str]:
        return [path for path, _ in self.asked]


def answers(
    body: bytes = b"{}", *, status: str = "200 OK", headers: str = "", delay: float = 0.0
) -> Behaviour:
    """A whole answer, *delay* seconds late."""

    async def behave(writer: asyncio.StreamWriter) -> None:
        await asyncio.sleep(delay)
        head = f"HTTP/1.1 {status}\r\nContent-Length: {len(body)}\r\n{headers}\r\n"
        writer.write(head.encode() + body)

    return behave


def says(raw: bytes, *, then: bytes = b"", every: float = 0.05) -> Behaviour:
    """*raw* as it stands, then *then* again and again until the other side goes away."""

    async def behave(writer: asyncio.StreamWriter) -> None:
        writer.write(raw)
        while then:
            await writer.drain()
            await asyncio.sleep(every)
            writer.write(then)

    return behave


def waits_for(let: threading.Event, then: Behaviour) -> Behaviour:
    """What *then* does, once the test has set *let*."""

    async def behave(writer: asyncio.StreamWriter) -> None:
        await asyncio.to_thread(let.wait, 100)
        await then(writer)

    return behave


async def hangs(writer: asyncio.StreamWriter) -> None:
    await asyncio.sleep(3600)


async def resets(writer: asyncio.StreamWriter) -> None:
    writer.transport.abort()


class _Server:
    """The event loop of one target, in a thread of its own."""

    def __init__(
        self, behaviours: Mapping[str, Behaviour], otherwise: Behaviour, port: int
    ) -> None:
        self.target = ScriptedTarget(port)
        self._behaviours, self._otherwise = behaviours, otherwise
        self._listens, self._enough = threading.Event(), asyncio.Event()
        self._thread = threading.Thread(target=lambda: asyncio.run(self._serve()))

    def start(self) -> None:
        self._thread.start()
        assert self._listens.wait(60)

    def stop(self) -> None:
        self._loop.call_soon_threadsafe(self._enough.set)
        self._thread.join(60)

    async def _serve(self) -> None:
        self._loop = asyncio.get_running_loop()
        server = await asyncio.start_server(self._answer, "127.0.0.1", self.target.port)
        self.target.port = server.sockets[0].getsockname()[1]
        self._listens.set()
        await self._enough.wait()
        server.close()

    async def _answer(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        with suppress(ConnectionError, asyncio.IncompleteReadError, asyncio.CancelledError):
            head = (await reader.readuntil(b"\r\n\r\n")).decode("latin-1").split("\r\n")
            path = head[0].split(" ")[1]
            pairs = (line.partition(": ") for line in head[1:] if line)
            headers = {name.lower(): value for name, _, value in pairs}
            if size := int(headers.get("content-length", 0)):
                self.target.bodies.append((path, await reader.readexactly(size)))
            self.target.asked.append((path, headers))
            await self._behaviours.get(path.partition("?")[0], self._otherwise)(writer)
            await writer.drain()
        writer.close()


@contextmanager
def scripted_target(
    behaviours: Mapping[str, Behaviour], otherwise: Behaviour | None = None, *, port: int = 0
) -> Iterator[ScriptedTarget]:
    """A target that behaves as *behaviours* says by path (without query), else as *otherwise*."""
    server = _Server(behaviours, otherwise or answers(b"", status="404 Not Found"), port)
    server.start()
    try:
        yield server.target
    finally:
        server.stop()
