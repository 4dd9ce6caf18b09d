"""What is wrong with a file, bounded: a file may be wrong in every record."""

_MOST_TOLD = 20


class Problems:
    """What is wrong with a file, in sentences: the first ones, and how many there were."""

    def __init__(self) -> None:
        self._told: list[str] = []
        self._more = 0

    def add(self, sentence: str) -> None:
        if len(self._told) < _MOST_TOLD:
            self._told.append(sentence)
        else:
            self._more += 1

    def told(self) -> tuple[str, ...]:
        more = (f"And {self._more} more like these.",) if self._more else ()
        return (*self._told, *more)
