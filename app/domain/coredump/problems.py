"""What is wrong inside a file, said once each and never without end."""

MOST_TOLD = 24


class Problems:
    """Sentences in the order in which they were found; the rest is counted."""

    def __init__(self) -> None:
        self._told: dict[str, None] = {}
        self._more = 0

    def tell(self, sentence: str) -> None:
        if sentence in self._told:
            return
        if len(self._told) < MOST_TOLD:
            self._told[sentence] = None
        else:
            self._more += 1

    @property
    def told(self) -> list[str]:
        more = [f"And {self._more} more of these."] if self._more else []
        return [*self._told, *more]
