"""The command ``incident-console``: a table of groups, each imported only when it is called."""

import sys
from collections.abc import Sequence

from app.cli.loader import Group
from app.errors import ConsoleError

COMMANDS = {
    "serve": ("app.cli.serve", "Run the console and its worker in one process."),
    "worker": ("app.cli.worker", "Run one more worker, on PostgreSQL."),
    "agent": ("app.cli.agent", "Run the agent of a host, or what belongs to it."),
    "bundle": ("app.cli.bundle", "Collect, summarise and compare read-only bundles of a server."),
    "preflight": ("app.cli.preflight", "What can be captured here, and the fix for what cannot."),
    "launch-env": ("app.cli.launch_env", "Environment and flags that leave evidence next time."),
    "stacks": ("app.cli.stacks", "Take the stacks of the processes of a server on this host."),
    "coredump": ("app.cli.coredump", "Take the CUDA coredump of one process, or read one."),
    "dump": ("app.cli.dump", "What is in a request or crash dump; nothing in it is ever run."),
    "replay": ("app.cli.replay", "Send the requests of a recording to a clean target again."),
    "reduce": ("app.cli.reduce", "The fewest requests that still bring a fault about."),
    "bisect": ("app.cli.bisect", "Find the commit that brought a fault in."),
    "migrate": ("app.cli.migrate", "Bring the database to the present schema."),
    "user": ("app.cli.users", "Create, change and disable users."),
    "token": ("app.cli.tokens", "Create, list and revoke API tokens."),
}


def main(arguments: Sequence[str] | None = None) -> None:
    """Run the command line; exit status 0 done, 1 failed with the reason on stderr, 2 usage.

    *arguments* are those of the process unless given.
    """
    root = Group(
        "incident-console",
        "Turns a production incident of an SGLang server into a replayable debugging path.",
        COMMANDS,
    )
    try:
        root.main(arguments, prog_name="incident-console")
    except ConsoleError as error:
        sys.stderr.write(f"{error.detail}\n")
        if error.command:
            sys.stderr.write(f"  {error.command}\n")
        sys.exit(1)
