"""From a claim's evidence to the page that shows the place it rests on."""

import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any
from urllib.parse import urlencode

from fastapi import Request

from app.domain.report_text import chip as named
from app.web.formats import visible

_ARTIFACT = re.compile(r"(bundle|artifact|job) (\d{1,12})(?:/([\w.-]+))?")
_LONGEST = 80  # characters of a chip; the whole place is in its link


@dataclass(frozen=True)
class Chip:
    """What evidence is called, and where it is shown; plain text where there is no page for it."""

    text: str
    href: str | None


def chip_of(request: Request, evidence: Mapping[str, Any]) -> Chip:
    """The chip of evidence such as ``bundle 219/loads_all_1.json`` at ``/0/running``."""
    text = visible(named(evidence)).replace("\n", " ")
    short = text if len(text) <= _LONGEST else f"{text[: _LONGEST - 1]}…"
    match = _ARTIFACT.fullmatch(str(evidence.get("artifact") or ""))
    return Chip(short, _href(request, match, str(evidence.get("at") or "")) if match else None)


def _href(request: Request, match: re.Match[str], at: str) -> str:
    noun, number, file = match[1], int(match[2]), match[3]
    if noun == "bundle" and file:
        name = file.rpartition(".")[0] or file
        page = request.url_for("capture", bundle_id=number, name=name).path
        return f"{page}?{urlencode({'at': at})}" if at else page
    return request.url_for(noun, **{f"{noun}_id": number}).path
