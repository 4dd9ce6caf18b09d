"""The part of the schema that speaks of dumps, their requests and unfinished uploads.

See ``tables``. A row of a request holds its shape (T0); its text is read from the file again.
"""

from datetime import datetime
from typing import Any

from sqlalchemy import BigInteger, Column, Index, Text, text
from sqlmodel import Field, SQLModel

from app.store.columns import json_column as _json
from app.store.columns import key_column as _key


def _big() -> Any:  # noqa: ANN401
    return Field(default=None, sa_column=Column(BigInteger))


def _text() -> Any:  # noqa: ANN401
    return Field(default="", sa_column=Column(Text, nullable=False))


class Dump(SQLModel, table=True):
    """A file of recorded requests on an incident, and what reading it told."""

    id: int | None = _key()
    incident_id: int = Field(foreign_key="incident.id", index=True)
    artifact_id: int = Field(foreign_key="artifact.id", unique=True)
    job_id: int | None = Field(default=None, foreign_key="job.id", index=True)
    sha256: str
    name: str  # of the file, shown only
    # waiting, reading, ready, unreadable, failed, cancelled, purged: nothing of a file that was
    # not read to its end is shown.
    state: str = "waiting"
    kind: str | None = None  # "request dump", "crash dump", "requests"; None: not known
    says: str = ""  # what it holds in a sentence, or why it cannot be read
    added_by: str
    added_at: datetime
    read_at: datetime | None = None
    requests_total: int | None = None
    finished: int | None = None
    unfinished: int | None = None
    aborted: int | None = None
    sglang_version: str | None = None
    model_path: str | None = None
    first_at: float | None = None  # epoch seconds of the first and last moment in it
    last_at: float | None = None
    document: dict[str, Any] | None = _json(nullable=True)  # dump summarize, without "requests"
    spread: dict[str, Any] | None = _json(nullable=True)  # of lengths and arrivals: its pictures


class DumpRequest(SQLModel, table=True):
    """One request of a dump by its shape; None is what the file does not tell."""

    __tablename__ = "dump_request"

    dump_id: int = Field(foreign_key="dump.id", primary_key=True)
    position: int = Field(primary_key=True, sa_type=BigInteger)  # "index": its order in the file
    rid: str | None = None
    state: str | None = None  # finished, unfinished, aborted; None: nobody recorded it
    endpoint: str
    prompt_tokens: int | None = _big()
    completion_tokens: int | None = _big()
    cached_tokens: int | None = _big()
    prompt_characters: int | None = _big()
    stream: bool | None = None
    started_at: float | None = None  # epoch seconds, as recorded
    finished_at: float | None = None
    elapsed_seconds: float | None = None
    finish_reason: str | None = None
    # JSON as it came, and words between commas: writing thousands of rows must stay cheap.
    sampling: str = _text()
    features: str = _text()  # ",lora,multimodal,"
    problems: str = _text()
    suspect_rank: int | None = None  # its place among the suspects, from 0; None: it is none

    __table_args__ = (
        Index("ix_dump_request_state", "dump_id", "state", "position"),
        Index("ix_dump_request_prompt", "dump_id", "prompt_tokens", "position"),
        Index("ix_dump_request_completion", "dump_id", "completion_tokens", "position"),
        Index("ix_dump_request_started", "dump_id", "started_at", "position"),
        Index("ix_dump_request_elapsed", "dump_id", "elapsed_seconds", "position"),
        Index("ix_dump_request_rid", "dump_id", "rid"),
        Index(
            "ix_dump_request_suspect",
            "dump_id",
            "suspect_rank",
            sqlite_where=text("suspect_rank IS NOT NULL"),
            postgresql_where=text("suspect_rank IS NOT NULL"),
        ),
    )


class Upload(SQLModel, table=True):
    """A file that comes in pieces. How much of it is here, the file itself tells."""

    id: int | None = _key()
    incident_id: int = Field(foreign_key="incident.id", index=True)
    file: str = Field(unique=True)  # where the pieces go, in the folder of uploads
    name: str
    size_bytes: int = Field(sa_type=BigInteger)
    media_type: str = "application/octet-stream"
    tier: str = "T2"
    sha256: str | None = None  # as its sender told, or as it was sealed; None: not told
    sealed_at: datetime | None = None  # whole, and its bytes on their way into the store
    artifact_id: int | None = Field(default=None, foreign_key="artifact.id")  # what became of it
    begun_by: str  # "user:mira"
    begun_at: datetime
    touched_at: datetime = Field(index=True)
