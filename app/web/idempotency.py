"""``Idempotency-Key`` on POST: the same key and the same request give the same answer.

Only JSON bodies are compared byte for byte. An upload is compared by path and length: its
bytes are streamed once and the same file is stored once anyway.
"""

import hashlib
from collections.abc import Callable, Coroutine
from datetime import UTC, datetime
from typing import Any

from fastapi import Request, Response
from fastapi.routing import APIRoute
from starlette.concurrency import run_in_threadpool

from app.errors import Malformed
from app.store import idempotency
from app.store.audit import Actor
from app.store.database import writing
from app.store.idempotency import KeptAnswer, KeyedRequest
from app.store.stores import Stores
from app.web.access import bearer_token

HEADER = "Idempotency-Key"
_LONGEST_KEY = 200
Handler = Callable[[Request], Coroutine[Any, Any, Response]]


class IdempotentRoute(APIRoute):
    """A route whose POST may be sent again safely."""

    def get_route_handler(self) -> Handler:
        act = super().get_route_handler()

        async def act_once(request: Request) -> Response:
            key = request.headers.get(HEADER)
            actor: Actor | None = request.state.actor
            if key is None or actor is None or request.method != "POST":
                return await act(request)
            return await _once(request, await _keyed(request, key, actor), act)

        return act_once


async def _once(request: Request, keyed: KeyedRequest, act: Handler) -> Response:
    stores: Stores = request.app.state.stores
    if kept := await run_in_threadpool(_begin, stores, keyed):
        return _again(kept)
    answer = None
    try:
        acted = await act(request)
        # Commits what the endpoint wrote: FastAPI would do so only after this route, and keeping
        # the answer would wait for that transaction. A commit that fails leaves no answer.
        await request.scope["fastapi_function_astack"].aclose()
        answer = acted
    finally:
        await run_in_threadpool(_end, stores, keyed, answer)
    return answer


async def _keyed(request: Request, key: str, actor: Actor) -> KeyedRequest:
    if not 0 < len(key) <= _LONGEST_KEY:
        raise Malformed(f"An Idempotency-Key has 1 to {_LONGEST_KEY} characters.")
    told = hashlib.sha256(f"{request.url.path}?{request.url.query}\n".encode())
    # A later token may bear the same name; it must not be told what the earlier one was.
    told.update((bearer_token(request) or "").encode())
    if request.headers.get("content-type", "").startswith("multipart/"):
        told.update(request.headers.get("content-length", "").encode())
    else:
        told.update(await request.body())
    return KeyedRequest(actor.told, key, told.hexdigest())


def _begin(stores: Stores, keyed: KeyedRequest) -> KeptAnswer | None:
    with writing(stores.engine) as session:
        return idempotency.begin(session, stores.vault, keyed, at=datetime.now(UTC))


def _end(stores: Stores, keyed: KeyedRequest, answer: Response | None) -> None:
    """Keep an answer that says something was done; anything else may be tried again."""
    with writing(stores.engine) as session:
        if answer is None or answer.status_code >= 400:
            idempotency.forget(session, keyed)
        else:
            idempotency.keep(session, stores.vault, keyed, _kept(answer))


def _kept(answer: Response) -> KeptAnswer:
    return KeptAnswer(
        status=answer.status_code,
        body=bytes(answer.body).decode(),
        location=answer.headers.get("location"),
    )


def _again(kept: KeptAnswer) -> Response:
    headers = {"Idempotent-Replayed": "true"}
    if kept.location:
        headers["Location"] = kept.location
    return Response(kept.body, kept.status, headers, media_type="application/json")
