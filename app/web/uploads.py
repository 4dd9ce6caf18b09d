"""Uploads: the file of a form goes to the spool piece by piece, never whole into memory."""

from dataclasses import dataclass
from typing import Annotated

from fastapi import Depends, Request
from python_multipart import MultipartParser
from python_multipart.exceptions import FormParserError
from python_multipart.multipart import parse_options_header
from starlette.concurrency import run_in_threadpool

from app.errors import Malformed, Rejected
from app.store.artifacts import Spool, StoredFile
from app.web.dependencies import AppStores, Operator

MULTIPART = b"multipart/form-data"
FILE_FIELD = "file"
LONGEST_BOUNDARY = 70  # RFC 2046 §5.1.1
LONGEST_NAME = 200
LONGEST_FIELD_BYTES = 1000
MOST_PARTS = 10
PIECE_BYTES = 1024 * 1024  # what is written at once; each write is one trip to a thread


@dataclass(frozen=True, slots=True)
class Upload:
    """A file that is safely stored; nothing speaks of it yet."""

    name: str  # as given, without folders; shown only, never a path
    media_type: str
    stored: StoredFile
    fields: dict[str, str]  # the other fields of the form


class UploadForm:
    """Reads a multipart body as it comes; the bytes of the file go to *spool*."""

    def __init__(self, boundary: bytes, spool: Spool) -> None:
        self.name: str | None = None  # of the file; None until there is one
        self.media_type = "application/octet-stream"
        self.fields: dict[str, bytearray] = {}
        self.ended = False
        self._spool = spool
        self._parts = 0
        self._label, self._value = bytearray(), bytearray()
        self._headers: dict[str, bytes] = {}
        self._field: bytearray | None = None  # where the part's data goes; None: to the spool
        self._parser = MultipartParser(
            boundary,
            {
                "on_part_begin": self._begin,
                "on_header_field": lambda data, start, end: self._label.extend(data[start:end]),
                "on_header_value": lambda data, start, end: self._value.extend(data[start:end]),
                "on_header_end": self._keep_header,
                "on_headers_finished": self._open_part,
                "on_part_data": self._take,
                "on_end": self._finish,
            },
        )

    def write(self, data: bytes) -> None:
        """Take the next piece of the body; raises Malformed, TooLarge or NoSpace."""
        try:
            self._parser.write(data)
        except FormParserError as error:
            raise Malformed(f"The form is broken: {error}.") from error

    def _begin(self) -> None:
        self._parts += 1
        self._headers = {}
        if self._parts > MOST_PARTS:
            raise Rejected(f"The form has more than {MOST_PARTS} parts.")

    def _keep_header(self) -> None:
        self._headers[self._label.decode("latin-1").lower()] = bytes(self._value)
        self._label.clear()
        self._value.clear()

    def _open_part(self) -> None:
        _, options = parse_options_header(self._headers.get("content-disposition", b""))
        field = options.get(b"name", b"").decode(errors="replace")
        if field != FILE_FIELD:
            self._field = self.fields.setdefault(field, bytearray())
            return
        if self.name is not None:
            raise Rejected("The form has two files.", fix="Attach them one after the other.")
        self._field = None
        self.name = plain_name(options.get(b"filename", b"").decode(errors="replace"))
        given = self._headers.get("content-type", b"").decode("latin-1").strip()
        self.media_type = given[:100] or self.media_type

    def _take(self, data: bytes, start: int, end: int) -> None:
        if self._field is None:
            self._spool.write(data[start:end])
            return
        self._field.extend(data[start:end])
        if len(self._field) > LONGEST_FIELD_BYTES:
            raise Rejected(f"A field of the form is longer than {LONGEST_FIELD_BYTES} bytes.")

    def _finish(self) -> None:
        self.ended = True


def plain_name(given: str) -> str:
    """The last part of a file name of any system, at most 200 characters; "unnamed" for none."""
    last = given.replace("\\", "/").rsplit("/", 1)[-1].strip()
    return last[:LONGEST_NAME] if last not in ("", ".", "..") else "unnamed"


async def _upload(request: Request, actor: Operator, stores: AppStores) -> Upload:
    """The file of the form, stored. Asks for the role first, so that a reader sends nothing."""
    kind, options = parse_options_header(request.headers.get("content-type", ""))
    boundary = options.get(b"boundary", b"")
    if kind != MULTIPART or not 0 < len(boundary) <= LONGEST_BOUNDARY:
        raise Malformed(
            "This is no multipart form.", fix=f"Send the file as the field {FILE_FIELD}."
        )
    with stores.artifacts.spool() as spool:
        form = UploadForm(boundary, spool)
        await _read(request, form)
        if form.name is None or not form.ended:
            raise Malformed(
                "The form has no file, or was cut off before its end.",
                fix=f"Send the file as the field {FILE_FIELD}.",
            )
        stored = await run_in_threadpool(stores.artifacts.keep, spool)
    fields = {name: bytes(text).decode(errors="replace") for name, text in form.fields.items()}
    return Upload(form.name, form.media_type, stored, fields)


async def _read(request: Request, form: UploadForm) -> None:
    waiting = bytearray()
    async for data in request.stream():
        waiting += data
        if len(waiting) >= PIECE_BYTES:
            await run_in_threadpool(form.write, bytes(waiting))
            waiting.clear()
    await run_in_threadpool(form.write, bytes(waiting))


Uploaded = Annotated[Upload, Depends(_upload)]
