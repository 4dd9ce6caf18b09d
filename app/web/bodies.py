"""How large a request may be that is read into memory whole: forms and JSON.

Files come as multipart or octets; their routes stream them and count by themselves.
"""

from starlette.datastructures import Headers
from starlette.exceptions import HTTPException
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from app.errors import TooLarge

MAX_BYTES = 4 * 1024**2
_STREAMED = ("multipart/form-data", "application/octet-stream", "application/gzip")


class BodyLimit:
    """Refuses a body that is kept in memory and tells or grows to more than ``MAX_BYTES``."""

    def __init__(self, app: ASGIApp) -> None:
        self.app = app

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http" or _is_streamed(Headers(scope=scope)):
            await self.app(scope, receive, send)
            return
        taken = 0

        async def receive_counted() -> Message:
            nonlocal taken
            message = await receive()
            taken += len(message.get("body", b""))
            if taken > MAX_BYTES:  # in the framework's own form, which its parser lets through
                raise HTTPException(413)
            return message

        await self.app(scope, receive_counted, send)


def _is_streamed(headers: Headers) -> bool:
    if headers.get("content-type", "").lower().startswith(_STREAMED):
        return True
    told = headers.get("content-length", "0")
    if told.isdecimal() and int(told[:20]) > MAX_BYTES:
        raise TooLarge(
            f"The request is larger than {MAX_BYTES // 1024**2} MiB.",
            fix="Send files as an upload to an incident.",
        )
    return False
