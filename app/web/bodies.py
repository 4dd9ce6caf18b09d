"""How large a request may be that is read into memory whole: forms and JSON.

Only the routes that take files stream their body and count by themselves: what kind of body it
is says its sender, and a form that is parsed before anybody signed in would fill the disk.
"""

import re

from starlette.datastructures import Headers
from starlette.exceptions import HTTPException
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from app.errors import TooLarge

MAX_BYTES = 4 * 1024**2
_TAKES_FILES = re.compile(r"(/api/v1)?/incidents/[^/]+/artifacts|/api/v1/uploads/[^/]+")


class BodyLimit:
    """Refuses a body that is kept in memory and tells or grows to more than ``MAX_BYTES``."""

    def __init__(self, app: ASGIApp) -> None:
        self.app = app

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http" or _TAKES_FILES.fullmatch(scope["path"]):
            await self.app(scope, receive, send)
            return
        _check_told(Headers(scope=scope))
        taken = 0

        async def receive_counted() -> Message:
            nonlocal taken
            message = await receive()
            taken += len(message.get("body", b""))
            if taken > MAX_BYTES:  # in the framework's own form, which its parser lets through
                raise HTTPException(413)
            return message

        await self.app(scope, receive_counted, send)


def _check_told(headers: Headers) -> None:
    told = headers.get("content-length", "0")
    if told.isdecimal() and int(told[:20]) > MAX_BYTES:
        raise TooLarge(
            f"The request is larger than {MAX_BYTES // 1024**2} MiB.",
            fix="Send files as an upload to an incident.",
        )
