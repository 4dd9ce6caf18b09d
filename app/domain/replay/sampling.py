"""Sampling parameters as a target accepts them: known keys, numbers where they are due, capped."""

from collections.abc import Mapping
from typing import Any

from app.domain.dumps.recorded import RecordedRequest
from app.domain.dumps.redacted import unsayable
from app.domain.replay.accepted import (
    CUSTOM_CODE,
    NOTHING_SAID,
    SAMPLING,
    SAMPLING_NUMBERS,
    knows,
)
from app.domain.replay.options import Options, Version

_STOPS = ("stop", "stop_token_ids", "stop_regex")
_OPENAI_STOPS = (*_STOPS, "min_tokens")
_PINNED = "pinned to the recorded length"
_OPENAI_LENGTHS = ("max_tokens", "max_completion_tokens")


class Sampling:
    """Makes the parameters of one request; *told* says what was done to them."""

    def __init__(self, options: Options, version: Version | None, request: RecordedRequest) -> None:
        self.told: dict[str, None] = {}
        self._options, self._version = options, version
        self._pinned = _pinned_tokens(options, request)

    def of(self, value: Any) -> Any:  # noqa: ANN401  (JSON)
        """What goes into ``sampling_params``: of a batch one table for each prompt."""
        if isinstance(value, list):
            return [self._one(one) for one in value]
        return self._one(value)

    def beside_prompt(self, body: dict[str, Any]) -> dict[str, Any]:
        """*body* of an OpenAI route, with its length capped and its end pinned if asked for."""
        names = [name for name in _OPENAI_LENGTHS if _count(body.get(name)) is not None]
        names = names or ["max_tokens"]
        if self._pinned is not None:
            body = self._without(body, _OPENAI_STOPS, "")
            body = self._with(body, {"ignore_eos": True}, "", "set")
            return self._with(body, dict.fromkeys(names, self._pinned), "", _PINNED)
        most = self._options.most_new_tokens  # without a limit they run to the end of the context
        capped = {name: min(asked, most) for name in names if (asked := _count(body.get(name)))}
        return self._with(body, capped or {"max_tokens": most}, "", f"capped at {most}")

    def _one(self, value: Any) -> dict[str, Any]:  # noqa: ANN401
        given = value if isinstance(value, Mapping) else {}
        kept = {name: one for name, one in given.items() if self._is_kept(name, one)}
        place = "sampling_params."
        if self._pinned is not None:
            kept = self._without(kept, _STOPS, place)
            kept = self._with(kept, {"ignore_eos": True}, place, "set")
            return self._with(kept, {"max_new_tokens": self._pinned}, place, _PINNED)
        asked = _count(kept.get("max_new_tokens"))
        most = self._options.most_new_tokens
        if asked is not None and asked > most:
            return self._with(kept, {"max_new_tokens": most}, place, f"capped at {most}")
        return kept

    def _is_kept(self, name: str, value: object) -> bool:
        if value is None:
            self.told[NOTHING_SAID] = None
            return False  # the same as not there, and old targets refuse some
        since = SAMPLING.get(name)
        place = f"sampling_params.{name}"
        if since is None or (name in CUSTOM_CODE and "custom-code" not in self._options.allow):
            self.told[place] = None
        elif not knows(since, self._version):
            self.told[f"{place}: the target's release does not know it"] = None
        elif name in SAMPLING_NUMBERS and type(value) not in (int, float):
            self.told[f"{place}: it is no number"] = None
        elif unsayable(value):
            self.told[f"{place}: JSON cannot say it"] = None
        else:
            return True
        return False

    def _without(self, table: dict[str, Any], names: tuple[str, ...], place: str) -> dict[str, Any]:
        for name in names:
            if table.get(name):
                self.told[f"{place}{name}: the length is pinned"] = None
        return {name: value for name, value in table.items() if name not in names}

    def _with(
        self, table: dict[str, Any], changes: Mapping[str, Any], place: str, says: str
    ) -> dict[str, Any]:
        """*table* with *changes*; where they change something, that *says* what was done."""
        for name, value in changes.items():
            if table.get(name) != value:
                self.told[f"{place}{name}: {says}"] = None
        return {**table, **changes}


def _pinned_tokens(options: Options, request: RecordedRequest) -> int | None:
    """How many tokens the answer is to have exactly; None where that is not asked or not known."""
    if not options.ignore_eos or request.state != "finished" or not request.completion_tokens:
        return None
    return min(request.completion_tokens, options.most_new_tokens)


def _count(value: object) -> float | None:
    """*value* where it can be a limit; some clients write it as 4096.0."""
    return (
        value if isinstance(value, int | float) and type(value) is not bool and value >= 0 else None
    )
