"""Which of the captured answers can be read as what, and who gave them."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any

from app.domain.capture import Bundle, Capture, Outcome
from app.domain.plain_json import read_json
from app.errors import Malformed

_JSON_CAPTURES = frozenset(
    (
        "model_info",
        "get_model_info",
        "server_info",
        "get_server_info",
        "loads_all_1",
        "loads_core_1",
        "loads_all_2",
        "get_load",
        "hicache",
    )
)
_PROXY_STATUS = frozenset((502, 504))  # SGLang itself sends neither


@dataclass(frozen=True, slots=True)
class Answers:
    """The JSON answers of a bundle by capture name, and what could not be read."""

    values: Mapping[str, Any]
    problems: tuple[str, ...]

    def first(self, *names: str) -> tuple[str, Any] | None:
        """The first of *names* that was answered with JSON, with its value."""
        return next(((name, self.values[name]) for name in names if name in self.values), None)


def read_answers(bundle: Bundle) -> Answers:
    """Every JSON answer of *bundle*; an answer that is no JSON is a problem, not an exception."""
    values: dict[str, Any] = {}
    problems: list[str] = []
    for capture in bundle.captures:
        if capture.name not in _JSON_CAPTURES or not capture.ok or from_proxy(capture):
            continue
        try:
            values[capture.name] = read_json(capture.body)
        except Malformed as malformed:
            problems.append(f"{capture.name}: {malformed.what}")
    return Answers(values, tuple(problems))


def from_proxy(capture: Capture) -> bool:
    """Whether a proxy in front answered this: a status or a page that SGLang never sends."""
    if capture.outcome not in (Outcome.ANSWERED, Outcome.REJECTED):
        return False
    kind = capture.headers.get("content-type", "")
    page = capture.body[:200].lstrip().startswith(b"<") or kind.startswith("text/html")
    return capture.status in _PROXY_STATUS or page


def in_order_asked(captures: Iterable[Capture]) -> list[Capture]:
    """The captures that were asked, by their start; those without a time keep their place."""
    asked = [one for one in captures if one.outcome is not Outcome.NOT_ASKED]
    if all(one.started_at for one in asked):
        asked.sort(key=lambda one: one.started_at.timestamp() if one.started_at else 0.0)
    return asked
