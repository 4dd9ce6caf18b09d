"""Command groups that import a command only when it is called: the only lazy imports there are.

So ``bundle summarize`` starts without database, web and HTTP client, and ``--help`` without
any of the commands that it names.
"""

from collections.abc import Mapping
from importlib import import_module
from typing import Any

import typer
from typer.core import TyperGroup


class Group(TyperGroup):
    """A group of commands from a table: name → (module, one line of help).

    The module has ``app``: a ``typer.Typer``, or a ``Group`` again.
    """

    def __init__(self, name: str, help_text: str, table: Mapping[str, tuple[str, str]]) -> None:
        super().__init__(name=name, help=help_text, no_args_is_help=True, rich_markup_mode=None)
        self._table = table

    def list_commands(self, ctx: Any) -> list[str]:  # noqa: ANN401  (typer's own types moved)
        return list(self._table)

    def get_command(self, ctx: Any, cmd_name: str) -> Any:  # noqa: ANN401
        if cmd_name not in self._table:
            return None
        app = import_module(self._table[cmd_name][0]).app
        return app if isinstance(app, Group) else typer.main.get_command(app)

    def format_commands(self, ctx: Any, formatter: Any) -> None:  # noqa: ANN401
        with formatter.section("Commands"):
            formatter.write_dl([(name, line) for name, (_, line) in self._table.items()])
