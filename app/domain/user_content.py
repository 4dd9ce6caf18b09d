"""What a log or an answer may carry of the people served: prompts, schemas, tool definitions."""

import re

_CONTENT = re.compile(
    r"(?<![A-Za-z0-9])(?:json_schema|schema|json|structured_outputs|ebnf|regex|grammar|prompt|messages"
    r"|input_text|text|input_ids|prompt_token_ids|output_ids|tools|image_data)\\?[\"']?"
    r"\s{0,3}[=:]\s{0,3}(?:\\?[\"'{\[]|\w+Params\()"
)


def user_content(text: str) -> tuple[str, ...]:
    """The lines of *text*, as ``line 3``, that hold contents of requests rather than their shape.

    Lengths (``prompt_token_ids_len=70730``) and sampling parameters are shape. This is a flag
    for a person and for the T0 tier, not a filter.
    """
    lines = enumerate(text.split("\n"), start=1)
    return tuple(f"line {number}" for number, line in lines if _CONTENT.search(line))


def without_user_content(text: str) -> tuple[str, tuple[str, ...]]:
    """*text* without what follows such a word in its line, and the lines where that was.

    For logs that leave their host: the shape up to the first content stays.
    """
    lines, places = text.split("\n"), []
    for number, line in enumerate(lines, start=1):
        if found := _CONTENT.search(line):
            lines[number - 1] = f"{line[: found.end()]}‹content masked›"
            places.append(f"line {number}")
    return "\n".join(lines), tuple(places)
