"""``incident-console dump``: summarize, export."""

from app.cli.loader import Group

app = Group(
    "dump",
    "Request and crash dumps of SGLang, and other files of requests. Nothing in them is run.",
    {
        "summarize": ("app.cli.dump_summarize", "What is in a dump, and which requests matter."),
        "export": ("app.cli.dump_export", "The requests of a dump as JSON lines, at a tier."),
    },
)
