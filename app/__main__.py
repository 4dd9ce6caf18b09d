"""``python -m app`` is ``incident-console``."""

from app.cli import main

main()
