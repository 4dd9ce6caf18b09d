"""Cursor paging of the API: ``?limit=&cursor=`` → ``{"items", "next_cursor"}``.

A cursor is the place after the last item, so that new rows do not shift the pages. It is
readable by anybody and holds nothing that the items do not.
"""

import base64
import binascii
from collections.abc import Iterable
from typing import Annotated

import orjson
from fastapi import Query

from app.errors import Malformed

Place = str | int | float | None
MAX_LIMIT = 200

Limit = Annotated[int, Query(ge=1, le=MAX_LIMIT, description="At most so many items.")]
Cursor = Annotated[str | None, Query(max_length=400, description="next_cursor of the page before.")]


def encode(place: Iterable[Place]) -> str:
    """A cursor for *place*, the sort keys of the last item of a page."""
    return base64.urlsafe_b64encode(orjson.dumps(list(place))).rstrip(b"=").decode("ascii")


def decode(cursor: str) -> tuple[Place, ...]:
    """The place that ``encode`` was given; raises Malformed. Types are the caller's to check."""
    padded = cursor + "=" * (-len(cursor) % 4)
    try:
        place = orjson.loads(base64.b64decode(padded, altchars=b"-_", validate=True))
    except (binascii.Error, ValueError) as error:
        raise _not_ours() from error
    if not isinstance(place, list) or not all(_is_place(part) for part in place):
        raise _not_ours()
    return tuple(place)


def number(cursor: str | None) -> int | None:
    """The number of the row that *cursor* stands after; None without one. Raises Malformed."""
    match decode(cursor) if cursor else None:
        case None:
            return None
        case (int() as row_id,) if 0 < row_id < 2**63:
            return row_id
    raise _not_ours()


def name(cursor: str | None) -> str:
    """The name that *cursor* stands after; empty without one. Raises Malformed."""
    match decode(cursor) if cursor else None:
        case None:
            return ""
        case (str() as last,):
            return last
    raise _not_ours()


def _is_place(part: object) -> bool:
    return part is None or (isinstance(part, str | int | float) and not isinstance(part, bool))


def _not_ours() -> Malformed:
    return Malformed("The cursor is not one of ours.", fix="Start again without a cursor.")
