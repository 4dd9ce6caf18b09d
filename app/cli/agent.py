"""``incident-console agent``: the agent of this host; without a word after it, it serves."""

import platform
from typing import Any

from app.cli.loader import Group
from app.errors import Misconfigured

_SERVE = "serve"


class _AgentGroup(Group):
    """``agent --port 8400`` is ``agent serve --port 8400``."""

    def parse_args(self, ctx: Any, args: list[str]) -> list[str]:  # noqa: ANN401
        named = args and (args[0] == "--help" or args[0] in self.list_commands(ctx))
        parsed: list[str] = super().parse_args(ctx, args if named else [_SERVE, *args])
        return parsed

    def get_command(self, ctx: Any, cmd_name: str) -> Any:  # noqa: ANN401
        if platform.system() != "Linux":  # before anything is imported that only Linux has
            raise Misconfigured("absent: Linux only")
        return super().get_command(ctx, cmd_name)


app = _AgentGroup(
    "agent",
    "The agent of this host. `agent [OPTIONS]` serves: see `agent serve --help`.",
    {
        _SERVE: ("app.cli.agent_serve", "Run the agent; the word may be left out."),
        "key": ("app.cli.agent_key", "Show the key that registers this agent."),
        "hook": ("app.cli.agent_hook", "Take evidence before a restart, within 20 s."),
    },
)
