"""Which layout a pickled dump has: where its records are, and which servers write it like that."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

from app.domain.counting import counted
from app.domain.dumps.containers import list_in, table_in
from app.domain.dumps.records import looks_like_record
from app.domain.dumps.scalars import escaped, kind_of
from app.domain.dumps.server import named_class
from app.domain.pickled.values import Inert

_SINCE_CONFIG = ("config_updates", "resolved_config")
_KEYS = ("server_args", *_SINCE_CONFIG, "requests", "launch_command")
_MOST_KEYS_TOLD = 8
_MOST_LOOKED_AT = 4_000_000  # values of a file that broke off


@dataclass(frozen=True, slots=True)
class Layout:
    """Where things are in a dump. *why_not*: what makes it none, None where it is one."""

    format: str
    records: Sequence[object] = ()
    table: Mapping[str, Any] = field(default_factory=dict)
    why_not: str | None = None

    @property
    def since_config(self) -> bool:
        """Whether it is of SGLang 0.5.17 or later."""
        return any(key in self.table for key in _SINCE_CONFIG)


def layout_of(value: object) -> Layout:
    """The layout of the whole value of a file."""
    if isinstance(value, list):
        return Layout("list of requests, as SGLang 0.4.6 to 0.4.8 writes it", value)
    table = table_in(value)
    if table is None:
        return _of_none("pickle", f"No dump: the file holds {kind_of(value)}.", value)
    if "requests" not in table:
        return _of_none("pickle of a table", _without_requests(table), value)
    requests = table["requests"]
    found = list_in(requests)
    if found is None:
        why = f"The key requests holds {kind_of(requests)}, not a list."
        return replace(_of_none(_table_format(table), why, requests), table=table)
    return Layout(_table_format(table), found, table)


def _of_none(form: str, why: str, value: object) -> Layout:
    """The layout of what is no dump, with the records that lie in it all the same."""
    inside: Iterable[object] = (table_in(value) or {}).values() or list_in(value) or ()
    whole = [one for one in inside if looks_like_record(one)] or (
        [value] if looks_like_record(value) else []
    )
    salvaged = f" Salvaged: {counted(len(whole), 'whole request')}." if whole else ""
    return Layout(form, whole, why_not=why + salvaged)


def broken_layout(rest: Sequence[object]) -> Layout:
    """The layout of a file that broke off, by the values that were complete: *rest*, in order."""
    table: dict[str, Any] = {}
    records: list[object] = []
    key: str | None = None
    for value in rest[:_MOST_LOOKED_AT]:
        if isinstance(value, str) and value in _KEYS:
            key = value
        elif looks_like_record(value):
            records.append(value)
        elif isinstance(value, list) and key in (None, "requests"):
            records += value
        elif isinstance(value, dict):
            records += (
                value.get("requests") or () if isinstance(value.get("requests"), list) else ()
            )
            table = {**value, **table} if key is None else {**table, key: value}
        elif key is not None and key not in table:
            table[key] = value
    return Layout(_table_format(table) if table else "pickle", records, table)


def _without_requests(value: Mapping[Any, Any]) -> str:
    keys = [escaped(str(key), 40) for key in value if isinstance(key, str)][:_MOST_KEYS_TOLD]
    told = f"its keys are {', '.join(keys)}" if keys else "it has no keys"
    return f"No dump: the table has no key requests; {told}."


def _table_format(table: Mapping[str, Any]) -> str:
    return f"table of {_writer(table)}; server_args is {_arguments_format(table)}"


def _writer(table: Mapping[str, Any]) -> str:
    if any(key in table for key in _SINCE_CONFIG):
        return "SGLang 0.5.17 or later"
    if "launch_command" in table:
        return "SGLang 0.5.9 to 0.5.15"
    return "SGLang 0.4.9 to 0.5.15"


def _arguments_format(table: Mapping[str, Any]) -> str:
    """The shape of the server's arguments: how they were pickled differs by version."""
    value = table.get("server_args")
    if "server_args" not in table:
        return "missing"
    if value is None:
        return "None: it could not be pickled, or was left out"
    if isinstance(value, Mapping):
        return "a table, as with watermarks"
    if isinstance(value, Inert):
        made = "made by" if value.state is None and value.args != () else "an object of"
        return f"{made} {named_class(value) or 'something unnamed'}"
    return kind_of(value)
