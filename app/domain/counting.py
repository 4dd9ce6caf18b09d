"""Numbers of things, as they are said."""


def counted(count: int, one: str, many: str | None = None) -> str:
    """``1 sample``, ``1,200 samples``; *many* where an s at the end of *one* does not say it."""
    return f"{count:,} {one if count == 1 else many or f'{one}s'}"
