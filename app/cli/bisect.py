"""``incident-console bisect …``."""

from app.cli.loader import Group

app = Group(
    "bisect",
    "Finds the commit that brought a fault in.",
    {"init": ("app.cli.bisect_init", "Write a script for git bisect run.")},
)
