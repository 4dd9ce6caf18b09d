"""``incident-console stacks``: take, compare."""

from app.cli.loader import Group

app = Group(
    "stacks",
    "Stacks of the processes of a server, taken with py-spy, and what they say together.",
    {
        "take": ("app.cli.stacks_take", "Read the stacks of all ranks of this host's server."),
        "compare": ("app.cli.stacks_compare", "Which rank differs, where, and whether it moves."),
    },
)
