"""Requests that set themselves apart from all the others of a file: by a feature, or by length."""

from collections import Counter
from collections.abc import Iterator

from app.domain.dumps.recorded import Row

_ONLY_ONES = {
    "multimodal": "the only one with an image, a video or audio",
    "lora": "the only one with a LoRA adapter",
    "session": "the only one of a session",
    "structured": "the only one with a grammar or a schema",
    "logprobs": "the only one that asks for log probabilities",
    "batch": "the only batch",
    "embedding": "the only one for an embedding",
    "several-samples": "the only one that asks for several samples",
    "custom-processor": "the only one with a custom logit processor, which is code",
    "input-embeds": "the only one with embeddings in the place of text",
    "hidden-states": "the only one that asks for hidden states",
    "bootstrap": "the only one with a bootstrap room",
}
_FEWEST_AROUND = 3  # requests in all: one of two is no odd one out


class Oddities:
    """Sees every row once; names the only ones and the longest."""

    def __init__(self) -> None:
        self._total = 0
        self._features: Counter[str] = Counter()
        self._first_with: dict[str, Row] = {}
        self._tokens = _Longest("tokens")
        self._characters = _Longest("characters")

    def see(self, row: Row) -> None:
        """Take *row* into account."""
        self._total += 1
        self._tokens.see(row, row["prompt_tokens"])
        self._characters.see(row, row["prompt_characters"])
        for feature in row["features"]:
            self._features[feature] += 1
            self._first_with.setdefault(feature, row)

    def only_ones(self) -> Iterator[tuple[Row, str]]:
        """The rows that alone have a feature, and which."""
        if self._total >= _FEWEST_AROUND:
            for feature, why in _ONLY_ONES.items():
                if self._features[feature] == 1:
                    yield self._first_with[feature], why

    def longest(self) -> Iterator[tuple[Row, str]]:
        """The row with the longest prompt, if there is one longest; tokens before characters.

        An unfinished request often has a text and no count of tokens: where that text is the
        longest of all, the request is named as well.
        """
        if self._total < _FEWEST_AROUND:
            return
        by_tokens, by_characters = self._tokens.alone(), self._characters.alone()
        if by_tokens:
            yield by_tokens
        if by_characters and (not by_tokens or by_characters[0]["prompt_tokens"] is None):
            yield by_characters


class _Longest:
    """The row with the largest count so far, and how many rows have that count."""

    def __init__(self, unit: str) -> None:
        self._unit = unit
        self._row: Row | None = None
        self._count = 0
        self._alike = 0

    def see(self, row: Row, count: int | None) -> None:
        if count is None or count < self._count:
            return
        if count > self._count:
            self._row, self._count, self._alike = row, count, 0
        self._alike += 1

    def alone(self) -> tuple[Row, str] | None:
        if self._row is None or self._alike > 1:
            return None
        return self._row, f"the longest prompt, {self._count} {self._unit}"
