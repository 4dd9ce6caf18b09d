"""``incident-console bundle``: collect, summarize, diff."""

from app.cli.loader import Group

app = Group(
    "bundle",
    "Read-only bundles: what a server's endpoints say in one window, two scrapes apart.",
    {
        "collect": ("app.cli.bundle_collect", "Ask a live server, without harming it."),
        "summarize": ("app.cli.bundle_summarize", "What a bundle says, on one screen."),
        "diff": ("app.cli.bundle_diff", "What changed from one bundle to another."),
    },
)
