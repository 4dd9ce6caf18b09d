"""The flags of a launch command, as /server_info tells it: argv joined by single blanks."""

from collections.abc import Iterable

# Short forms that SGLang accepts, by what they stand for (server_args.py).
_ALIASES = {
    "--tp": "--tp-size",
    "--tensor-parallel-size": "--tp-size",
    "--dp": "--dp-size",
    "--data-parallel-size": "--dp-size",
    "--pp": "--pp-size",
    "--pipeline-parallel-size": "--pp-size",
    "--ep": "--ep-size",
    "--expert-parallel-size": "--ep-size",
    "--model": "--model-path",
}
_MOST_WORDS = 2000


def flags_of(command: str) -> Iterable[tuple[str, str | bool]]:
    """Each flag with its values as one text, or True where it has none, in their order.

    Quoting is lost when argv is joined, so a value with blanks, such as JSON, is put together
    again up to the next word that begins with two dashes.
    """
    name, values = "", list[str]()
    for word in command.split(maxsplit=_MOST_WORDS)[:_MOST_WORDS]:
        if word.startswith("--"):
            if name:
                yield name, " ".join(values) or True
            flag, _, value = word.partition("=")
            name, values = _ALIASES.get(flag, flag), [value] if value else []
        elif name:
            values.append(word)
    if name:
        yield name, " ".join(values) or True
