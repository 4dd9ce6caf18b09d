"""How many tokens an answer may have at most by a body, and the body that asks for fewer."""

from collections.abc import Mapping
from typing import Any

_LIMITS = ("max_completion_tokens", "max_tokens")  # of the routes like OpenAI's; the first counts


def most_new_tokens(body: Mapping[str, Any]) -> int:
    """What *body* asks for at most; 0 where it does not say, or asks for several answers."""
    place, name = _place(body)
    value = place.get(name) if name else None
    return value if type(value) is int and value > 0 else 0


def with_answer_cut(body: Mapping[str, Any], most: int) -> dict[str, Any]:
    """*body* asking for at most *most* tokens; one that does not say how many stays as it is."""
    if not most_new_tokens(body):
        return dict(body)
    place, name = _place(body)
    shorter = {**place, str(name): most}
    if "min_new_tokens" in place:
        shorter["min_new_tokens"] = min(place["min_new_tokens"], most)
    return shorter if place is body else {**body, "sampling_params": shorter}


def _place(body: Mapping[str, Any]) -> tuple[Mapping[str, Any], str | None]:
    """The table with the limit, and what it is called there."""
    parameters = body.get("sampling_params")
    if isinstance(parameters, Mapping):
        return parameters, "max_new_tokens"
    return body, next((name for name in _LIMITS if name in body), None)
