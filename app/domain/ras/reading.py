"""Bytes that NCCL's RAS answered → a status, by what is in them."""

import re

from app.domain.ras.json_status import read_json_status
from app.domain.ras.status import Status
from app.domain.ras.text_status import read_text_status
from app.errors import Malformed

MOST_BYTES = 64 * 1024 * 1024
_OBJECT = re.compile(rb"\s*\{")
_JSON = re.compile(rb'\s*\{\s*"nccl_version"\s*:.{0,2000}?"communicators"\s*:', re.DOTALL)
_TEXT = re.compile(rb"\s*NCCL version \S.{0,2000}?\n(?:Job summary|Communicators)", re.DOTALL)


def read_status(body: bytes) -> Status:
    """What *body* tells; raises Malformed, and nothing else, where it is not from NCCL RAS."""
    if len(body) > MOST_BYTES:
        raise Malformed(f"More than {MOST_BYTES >> 20} MiB: no answer of NCCL RAS is that large.")
    if _OBJECT.match(body):
        return read_json_status(body)
    return read_text_status(body)


def is_ras(body: bytes) -> bool:
    """Whether *body* begins as NCCL's answers do."""
    head = body[:4_000]
    return bool(_JSON.match(head) or _TEXT.match(head))
