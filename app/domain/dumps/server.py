"""What a dump tells of its server: arguments in whichever shape, and its command line.

``server_args`` is an object with its fields in its state (until 0.5.19), a struct that is rebuilt
from a table of fields or from values without names (since 0.5.21), a table (where watermarks are
on), or None (where it could not be pickled). ``resolved_config`` is a table with all defaults
filled in, since 0.5.17.
"""

from collections.abc import Iterator, Mapping
from typing import Any

from app.domain.dumps.recorded import Server
from app.domain.dumps.scalars import escaped, is_figure
from app.domain.figures import whole
from app.domain.launch import flags_of
from app.domain.pickled.values import Global, Inert, attributes, items_of, text_of
from app.domain.redaction import Fingerprint, redact_json

_MOST_ARGUMENTS = 2000
_MOST_COMMAND_CHARACTERS = 20_000
_MOST_PLACES = 200
_SIZES = ("tp_size", "dp_size", "pp_size", "ep_size", "nnodes", "node_rank")
_FEWEST_NAMED = 4  # values without names are taken for arguments only if so many fit by count


def server_of(container: Mapping[str, Any], fingerprint: Fingerprint) -> Server:
    """The server of a dump whose top level is *container*; secrets become marks."""
    resolved = _plain_table(container.get("resolved_config"))
    arguments = {**arguments_of(container.get("server_args"), tuple(resolved)), **resolved}
    command = _one_line(text_of(container.get("launch_command")))
    flags = dict(flags_of(command)) if command else {}
    safe, places = redact_json(
        {
            "server_args": {**arguments},
            "launch_command": command,
        },
        fingerprint=fingerprint,
    )
    known = safe["server_args"]
    return Server(
        sglang_version=_text(known.get("version")),
        model_path=_text(known.get("model_path")) or _text(flags.get("--model-path")),
        topology=_topology(known, flags) if known or flags else None,
        launch_command=_command(safe["launch_command"]),
        redacted=places[:_MOST_PLACES],
    )


def _one_line(command: str | None) -> str | None:
    """*command* with one space between its words, as SGLang joins them: so a key is found."""
    if command is None:
        return None
    start = command[:_MOST_COMMAND_CHARACTERS]
    return " ".join("".join(one if one.isprintable() else " " for one in start).split()) or None


def arguments_of(value: object, names: tuple[str, ...] = ()) -> dict[str, Any]:
    """The plain arguments in *value*, by name; empty where it has none that can be told.

    *names* are those of all fields in their order, for a struct that was written without.
    """
    if isinstance(value, Mapping):
        return _plain_table(value)
    if isinstance(value, Inert):
        return _plain_table(attributes(value)) or _of_struct(value, names)
    return {}


def _of_struct(value: Inert, names: tuple[str, ...]) -> dict[str, Any]:
    """Of ``_rebuild_server_args(cls, fields, bookkeeping)``, or of a class and its values."""
    args = items_of(value.args) or ()
    for one in args:
        if isinstance(one, Mapping) and len(one) >= _FEWEST_NAMED:
            return _plain_table(one)
    for one in (*args, args):
        values = items_of(one)
        if values is not None and len(values) == len(names) >= _FEWEST_NAMED:
            return _plain_table(dict(zip(names, values, strict=True)))
    if isinstance(args, tuple | list) and args and isinstance(args[0], Mapping):
        return _plain_table(args[0])
    return {}


def _plain_table(value: object) -> dict[str, Any]:
    """The entries of a table that are texts, figures or nothing; of text lists, the texts."""
    if not isinstance(value, Mapping):
        return {}
    return dict(_plain_entries(value))


def _plain_entries(value: Mapping[Any, Any]) -> Iterator[tuple[str, Any]]:
    for count, (name, setting) in enumerate(value.items()):
        if count >= _MOST_ARGUMENTS:
            return
        if not isinstance(name, str):
            continue
        text = text_of(setting)
        if text is not None:
            yield name[:200], text[:_MOST_COMMAND_CHARACTERS]
        elif setting is None or is_figure(setting):
            yield name[:200], setting


def _topology(arguments: Mapping[str, Any], flags: Mapping[str, str | bool]) -> dict[str, Any]:
    sizes = {name: _size(name, arguments, flags) for name in _SIZES}
    mode = _text(arguments.get("disaggregation_mode") or flags.get("--disaggregation-mode"))
    return {**sizes, "disaggregation_mode": None if mode == "null" else mode}


def _size(name: str, arguments: Mapping[str, Any], flags: Mapping[str, str | bool]) -> int | None:
    told = whole(arguments.get(name))
    return whole(flags.get(f"--{name.replace('_', '-')}")) if told is None else told


def _text(value: object) -> str | None:
    return escaped(value, 300) if isinstance(value, str) and value else None


def _command(value: object) -> str | None:
    return escaped(value, _MOST_COMMAND_CHARACTERS) if isinstance(value, str) else None


def named_class(value: object) -> str | None:
    """The class that a pickled object is of, by its path; None for plain data."""
    if isinstance(value, Inert):
        value = value.made_from
    return escaped(value.path) if isinstance(value, Global) else None
