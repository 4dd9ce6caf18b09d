"""What is asked of the table of a dump's requests, and the links that ask it."""

from collections.abc import Sequence
from typing import Annotated
from urllib.parse import urlencode

from fastapi import Depends, Query
from pydantic import BaseModel, Field

from app.errors import Malformed
from app.store.dump_rows import SORTS, STATES, Place, Sort, Wanted
from app.web import paging
from app.web.dependencies import Reader
from app.web.views.dumps import Column

PAGE_ROWS = 50
_LARGEST = 2**63  # beyond it a database cannot look
_COLUMNS: tuple[tuple[str, Sort | None, bool], ...] = (
    ("Request", "index", False),
    ("State", None, False),
    ("Prompt", "prompt_tokens", True),
    ("Answer", "completion_tokens", True),
    ("Took", "elapsed_seconds", True),
    ("Arrived", "started_at", True),
    ("What sets it apart", None, False),
)  # fmt: skip


class TypedQuery(BaseModel):
    """The form above the table. What is empty, or not known here, does not restrict."""

    state: Annotated[str, Field(max_length=20)] = ""
    feature: Annotated[str, Field(max_length=60)] = ""
    suspect: bool = False
    rid: Annotated[str, Field(max_length=200)] = ""
    sort: Annotated[str, Field(max_length=40)] = "index"
    after: Annotated[str, Field(max_length=400)] = ""
    again: bool = False  # the same bytes were just sent once more; they are kept and read once

    @property
    def figure(self) -> Sort:
        """What is sorted by."""
        name = self.sort.removeprefix("-")
        return next((one for one in SORTS if one == name), "index")

    @property
    def descending(self) -> bool:
        return self.sort.startswith("-")

    @property
    def wanted(self) -> Wanted:
        return Wanted(
            state=self.state if self.state in STATES else None,
            feature=self.feature or None,
            suspect=self.suspect,
            rid_part=self.rid.strip() or None,
        )

    @property
    def restricts(self) -> bool:
        return self.wanted != Wanted()

    def link(self, **changes: str) -> str:
        """The query that asks the same but for *changes*, from its first page on."""
        asked = {**self.model_dump(exclude={"after", "again"}), **changes}
        asked["suspect"] = "1" if asked["suspect"] else ""
        usual = {"sort": "index"}
        given = {name: value for name, value in asked.items() if value not in ("", usual.get(name))}
        return f"?{urlencode(given)}"

    def columns(self) -> Sequence[Column]:
        """The heads of the table; one that sorts links to its other direction."""
        return [self._column(*one) for one in _COLUMNS]

    def _column(self, name: str, sort: Sort | None, is_number: bool) -> Column:  # noqa: FBT001
        if sort is None:
            return Column(name, None, "", is_number=is_number)
        here = sort == self.figure
        first = sort if sort in ("index", "started_at") else f"-{sort}"
        other = sort if self.descending else f"-{sort}"
        direction = ("descending" if self.descending else "ascending") if here else ""
        return Column(
            name, self.link(sort=other if here else first), direction, is_number=is_number
        )


async def _typed(actor: Reader, typed: Annotated[TypedQuery, Query()]) -> TypedQuery:
    return typed


AskedRequests = Annotated[TypedQuery, Depends(_typed)]


def place_of(cursor: str) -> Place | None:
    """Where a page begins; None for an empty *cursor*, Malformed for one that is not ours."""
    match paging.decode(cursor) if cursor else None:
        case None:
            return None
        case (None, int() as index) if 0 <= index < _LARGEST:
            return None, index
        case (int() | float() as figure, int() as index) if 0 <= index < _LARGEST:
            if -_LARGEST < figure < _LARGEST:
                return figure, index
    raise Malformed("The cursor is not one of ours.", fix="Start again without a cursor.")
