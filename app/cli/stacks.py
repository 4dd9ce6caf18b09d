"""``incident-console stacks``: take."""

from app.cli.loader import Group

app = Group(
    "stacks",
    "Stacks of the processes of a server, taken with py-spy.",
    {"take": ("app.cli.stacks_take", "Read the stacks of all ranks of this host's server.")},
)
