"""A target whose answer to a request is told by its prompt: ``replay_target.py PORT [DIES_AFTER]``.

It dies, as a crashed server does, when it has taken so many requests. ``GET /__seen`` tells what
came; ``GET /__running/N`` lets its loads show N running requests.
"""

import asyncio
import json
import os
import socket
import struct
import sys
import time
from asyncio import StreamReader, StreamWriter
from typing import Any

WORDS = [" one", " two", " three", " four"]
SEEN: list[dict[str, Any]] = []
LOADS = {"running": 0}
LISTENS: list[asyncio.Server] = []
DIES_AFTER = int(sys.argv[2]) if len(sys.argv) > 2 else 0
STATUSES = {"unauthorized": 401, "missing": 404, "overloaded": 503, "broken": 500, "wrong": 400}


async def main(port: int) -> None:
    LISTENS.append(await asyncio.start_server(serve, "127.0.0.1", port))
    await asyncio.Event().wait()


async def serve(reader: StreamReader, writer: StreamWriter) -> None:
    try:
        while head := await reader.readuntil(b"\r\n\r\n"):
            lines = head.decode("latin-1").split("\r\n")
            method, path, _ = lines[0].split(" ")
            headers = {
                name.lower(): value.strip()
                for name, _, value in (line.partition(":") for line in lines[1:] if line)
            }
            body = await reader.readexactly(int(headers.get("content-length", 0)))
            if method == "GET":
                get(writer, path)
            else:
                await post(writer, path, headers, body)
            await writer.drain()
    except (asyncio.IncompleteReadError, ConnectionError):
        writer.close()


def get(writer: StreamWriter, path: str) -> None:
    if path.startswith("/__running/"):
        LOADS["running"] = int(path.rpartition("/")[2])
    answers: dict[str, Any] = {
        "/__seen": SEEN,
        "/v1/loads": {"loads": [{"dp_rank": 0, "num_running_reqs": LOADS["running"],
                                 "num_waiting_reqs": 0, "timestamp": time.time()}]},
        "/server_info": {"version": "0.5.23", "model_path": "m", "tp_size": 1},
        "/model_info": {"model_path": "m", "is_generation": True},
    }  # fmt: skip
    known = answers.get(path.partition("?")[0], {})
    say(writer, 200, json.dumps(known).encode())


def say(writer: StreamWriter, status: int, body: bytes, *headers: str) -> None:
    head = [f"HTTP/1.1 {status} X", f"Content-Length: {len(body)}", *headers]
    if not any(header.startswith("Content-Type") for header in headers):
        head.append("Content-Type: application/json")
    writer.write("\r\n".join(head).encode() + b"\r\n\r\n" + body)


async def post(writer: StreamWriter, path: str, headers: dict[str, str], body: bytes) -> None:
    asked = json.loads(body)
    peer = writer.get_extra_info("peername")[1]
    SEEN.append({"path": path, "headers": headers, "body": asked, "at": time.time(), "peer": peer})
    if len(SEEN) == DIES_AFTER:
        os._exit(9)
    kind, _, amount = str(asked.get("text") or asked.get("prompt") or "").partition(" ")
    if kind in STATUSES:
        say(writer, STATUSES[kind], json.dumps({"error": {"message": f"no: {kind}"}}).encode())
    elif kind in ONCE:
        await ONCE[kind](writer)
    elif not asked.get("stream"):
        say(writer, 200, json.dumps(native(4, WORDS, done=True)).encode())
    else:
        await stream(writer, kind, float(amount or 0))


def native(tokens: int, words: list[str], *, done: bool) -> dict[str, Any]:
    finish = {"type": "length", "length": 4} if done else None
    meta = {"prompt_tokens": 7, "completion_tokens": tokens, "cached_tokens": 3}
    ids = [100 + len(word) for word in words]
    return {
        "text": "".join(words),
        "output_ids": ids,
        "meta_info": {**meta, "finish_reason": finish},
    }


async def stream(writer: StreamWriter, kind: str, seconds: float) -> None:
    """Four tokens, *seconds* apart, with what *kind* does to them."""
    begin(writer)
    for count, word in enumerate(WORDS, 1):
        await asyncio.sleep(seconds)
        words = [word] if kind == "incremental" else WORDS[:count]
        if count == 3 and kind in MIDDLE and not await MIDDLE[kind](writer):
            return
        frame(writer, native(count, words, done=count == 4))
    chunk(writer, b"data: [DONE]\n\n")
    writer.write(b"0\r\n\r\n")


def begin(writer: StreamWriter) -> None:
    writer.write(
        b"HTTP/1.1 200 X\r\nContent-Type: text/event-stream\r\nTransfer-Encoding: chunked\r\n\r\n"
    )


def chunk(writer: StreamWriter, data: bytes) -> None:
    writer.write(b"%x\r\n%s\r\n" % (len(data), data))


def frame(writer: StreamWriter, value: Any) -> None:
    chunk(writer, b"data: " + json.dumps(value).encode() + b"\n\n")


async def cut(writer: StreamWriter) -> bool:
    await writer.drain()
    writer.close()
    return False


async def ends(writer: StreamWriter) -> bool:
    writer.write(b"0\r\n\r\n")
    return False


async def stands(writer: StreamWriter) -> bool:
    await asyncio.sleep(3600)
    return False


async def aborts(writer: StreamWriter) -> bool:
    finish = {"type": "abort", "message": "KV cache pool is full.", "status_code": 503}
    frame(writer, {"text": "", "meta_info": {"finish_reason": finish, "completion_tokens": 2}})
    chunk(writer, b"data: [DONE]\n\n")
    writer.write(b"0\r\n\r\n")
    return False


async def errs(writer: StreamWriter) -> bool:
    frame(writer, {"error": {"message": "The input is too long.", "code": 400}})
    chunk(writer, b"data: [DONE]\n\n")
    writer.write(b"0\r\n\r\n")
    return False


async def mumbles(writer: StreamWriter) -> bool:
    chunk(writer, b"data: {not json\n\n")
    return True


async def swells(writer: StreamWriter) -> bool:
    chunk(writer, b"data: " + b"x" * 300_000)
    return True


async def runs_on(writer: StreamWriter) -> bool:
    for _ in range(100_000):
        frame(writer, native(3, WORDS[:3], done=False))
        await writer.drain()
    return True


MIDDLE = {
    "cut": cut, "ends": ends, "stands": stands, "aborts": aborts, "errs": errs,
    "mumbles": mumbles, "swells": swells, "runs-on": runs_on,
}  # fmt: skip


async def hang(writer: StreamWriter) -> None:
    await asyncio.sleep(3600)


async def reset(writer: StreamWriter) -> None:
    own: socket.socket = writer.get_extra_info("socket")
    own.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
    writer.transport.abort()


async def redirect(writer: StreamWriter) -> None:
    say(writer, 302, b"", "Location: http://169.254.169.254/")


async def packed(writer: StreamWriter) -> None:
    say(writer, 200, b"\x1f\x8b\x08", "Content-Encoding: gzip")


async def babble(writer: StreamWriter) -> None:
    writer.write(b"SSH-2.0-OpenSSH_9.2\r\n")


async def other(writer: StreamWriter) -> None:
    say(writer, 200, b'"hello"')


async def foreign(writer: StreamWriter) -> None:
    say(writer, 200, b'{"status": "ok", "model_path": "<script>"}')


async def foreign_stream(writer: StreamWriter) -> None:
    say(
        writer,
        200,
        b'data: {"status": "ok"}\n\ndata: [DONE]\n\n',
        "Content-Type: text/event-stream",
    )


async def empty(writer: StreamWriter) -> None:
    say(writer, 200, b"")


async def echoes(writer: StreamWriter) -> None:
    key = SEEN[-1]["headers"].get("authorization", "")
    say(writer, 401, json.dumps({"error": {"message": f"Not a key: {key}."}}).encode())


async def drip(writer: StreamWriter) -> None:
    begin(writer)
    while True:
        writer.write(b"1\r\nd\r\n")
        await writer.drain()
        await asyncio.sleep(0.1)


async def leaves(writer: StreamWriter) -> None:
    """It listens no more, and the stream that it has begun lives on for some seconds."""
    LISTENS[0].close()
    await stream(writer, "cumulative", 1.0)


async def likely(writer: StreamWriter) -> None:
    """Each token has a probability of a half, and 9 would have been about as likely."""
    told = native(4, WORDS, done=True)
    ids = told["output_ids"]
    told["meta_info"]["output_token_logprobs"] = [[-0.7, one, None] for one in ids]
    told["meta_info"]["output_top_logprobs"] = [
        [[-0.7, one, None], [-0.75, 9, None]] for one in ids
    ]
    say(writer, 200, json.dumps(told).encode())


ONCE = {
    "hang": hang, "reset": reset, "redirect": redirect, "packed": packed, "babble": babble,
    "foreign": foreign, "foreign-stream": foreign_stream, "empty": empty,
    "likely": likely, "other": other, "drip": drip, "echoes": echoes, "leaves": leaves,
}  # fmt: skip

if __name__ == "__main__":
    asyncio.run(main(int(sys.argv[1])))
