"""``incident-console coredump``: trigger, inspect."""

from app.cli.loader import Group

app = Group(
    "coredump",
    "CUDA coredumps: what the GPUs of a process were doing.",
    {
        "trigger": ("app.cli.coredump_trigger", "Ask the driver of one process for its coredump."),
        "inspect": ("app.cli.coredump_inspect", "What the GPUs were doing, by a coredump."),
    },
)
