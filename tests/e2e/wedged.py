"""A wedged server on a real port, and one that answers slowly but well."""

from collections.abc import Iterable, Iterator
from contextlib import contextmanager

from app.domain.capture import Capture
from tests.bundles import SERVER_INFO, answered
from tests.integration.scripted_target import (
    Behaviour,
    ScriptedTarget,
    answers,
    hangs,
    scripted_target,
)
from tests.situations import stuck

A_TOKEN_SECONDS = 1.1  # a probe that made one takes a second at least


def _behaviours(captures: Iterable[Capture]) -> dict[str, Behaviour]:
    """Answers as they were captured; what was never answered hangs."""
    return {
        one.path.partition("?")[0]: answers(one.body, status=f"{one.status} Told")
        if one.status
        else hangs
        for one in captures
    }


@contextmanager
def wedged() -> Iterator[ScriptedTarget]:
    """Work is inside and nothing moves: /ready is green, and /server_info is never answered."""
    with scripted_target(_behaviours(stuck())) as target:
        yield target


@contextmanager
def slow_to_tell(seconds: float) -> Iterator[ScriptedTarget]:
    """It works. /server_info takes *seconds*, and no counter is offered to look at twice."""
    info = answered("server_info", SERVER_INFO).body
    behaviours = {
        "/ready": answers(b"OK"),
        "/server_info": answers(info, delay=seconds),
        "/health_generate": answers(b"", delay=A_TOKEN_SECONDS),
    }
    with scripted_target(behaviours) as target:
        yield target
