"""A ``curl`` command read as the request that it would send. It is never run.

Of its many options those are known that say what is sent; what only says how (``-s``, ``-k``) is
passed over, and any other is refused rather than guessed at.
"""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from types import MappingProxyType

from app.domain import shell_words
from app.errors import Malformed, Rejected

MAX_WORDS = 1000
_DATA = frozenset(("-d", "--data", "--data-ascii", "--data-raw", "--data-binary", "--json"))
_WITH_VALUE = _DATA | {"-X", "--request", "-H", "--header", "-u", "--user", "--url"}
_PASSED_OVER = frozenset(
    """
    -s --silent -S --show-error -k --insecure -v --verbose -i --include -L --location -N --no-buffer
    --compressed -f --fail --fail-with-body -g --globoff --http1.1 --http2 -# --progress-bar -q
    -0 --http1.0 -4 --ipv4 -6 --ipv6 --no-progress-meter --raw --path-as-is --tcp-nodelay
    """.split()  # noqa: SIM905  (a word list reads best as words)
)
_PASSED_OVER_WITH_VALUE = frozenset(
    """
    -m --max-time --connect-timeout -A --user-agent -e --referer -o --output -w --write-out
    --retry --retry-delay -b --cookie --cacert --resolve -x --proxy
    """.split()  # noqa: SIM905
)
_NOT_RAW = frozenset(("-d", "--data", "--data-ascii", "--json", "--data-binary"))


@dataclass(frozen=True, slots=True)
class Curl:
    """What it would send. *headers* and *user* may be secrets."""

    method: str
    url: str
    headers: Mapping[str, str] = field(default_factory=lambda: MappingProxyType({}), repr=False)
    user: str | None = field(default=None, repr=False)
    body: str | None = field(default=None, repr=False)


def is_curl(text: str) -> bool:
    """Whether *text* is meant as such a command."""
    return text.lstrip("$ \t\r\n").startswith(("curl ", "curl\t", "curl\\", "curl.exe "))


def read_curl(text: str) -> Curl:
    """The request in *text*; raises Malformed and Rejected."""
    words = shell_words.split(text.lstrip("$ \t\r\n"))
    if not words or words[0] not in ("curl", "curl.exe"):
        raise Malformed("This is no curl command.")
    if len(words) > MAX_WORDS:
        raise Rejected(f"The command has more than {MAX_WORDS} words.")
    given = list(_options(words[1:]))
    urls = [value for name, value in given if name == "--url"]
    if len(urls) != 1:
        raise Malformed(f"The command names {len(urls)} URLs; one is needed.")
    return Curl(
        method=_last(given, "-X", "--request") or ("POST" if _has_body(given) else "GET"),
        url=urls[0],
        headers=dict(_header(value) for name, value in given if name in ("-H", "--header")),
        user=_last(given, "-u", "--user"),
        body=_body(given),
    )


def _options(words: list[str]) -> Iterator[tuple[str, str]]:
    """Each option with its value; a bare word is a ``--url``."""
    left = iter(words)
    for word in left:
        if not word.startswith("-") or word == "-":
            yield "--url", word
            continue
        name, value = _parted(word)
        if name in _WITH_VALUE | _PASSED_OVER_WITH_VALUE:
            value = next(left, None) if value is None else value
            if value is None:
                raise Malformed(f"{name} needs a value.")
            if name in _WITH_VALUE:
                yield name, value
        elif value is not None or not _harmless(word):
            raise Rejected(
                f"The option {name[:40]} is not known here.",
                fix="Keep -X, -H, -u, -d, --data-raw, --data-binary, --json and the URL.",
            )


def _parted(word: str) -> tuple[str, str | None]:
    """The option and the value that is written on to it: ``-XPOST``, ``--data=…`` too."""
    if word.startswith("--"):
        name, equals, value = word.partition("=")
        return name, value if equals else None
    name = word[:2]
    if len(word) > 2 and name in _WITH_VALUE | _PASSED_OVER_WITH_VALUE:
        return name, word[2:]
    return word, None


def _harmless(word: str) -> bool:
    """Also several short ones in one word: ``-sS``."""
    together = not word.startswith("--") and len(word) > 2
    return word in _PASSED_OVER or (together and all(f"-{one}" in _PASSED_OVER for one in word[1:]))


def _last(given: list[tuple[str, str]], *names: str) -> str | None:
    return next((value for name, value in reversed(given) if name in names), None)


def _has_body(given: list[tuple[str, str]]) -> bool:
    return any(name in _DATA for name, _ in given)


def _header(line: str) -> tuple[str, str]:
    if line.startswith("@"):
        raise _from_file(line)
    name, _, value = line.partition(":")
    return name.strip().lower(), value.strip()


def _body(given: list[tuple[str, str]]) -> str | None:
    """Several ``-d`` are joined by "&", several ``--json`` are not; ``-d`` drops line ends."""
    parts = [(name, value) for name, value in given if name in _DATA]
    for name, value in parts:
        if name in _NOT_RAW and value.startswith("@"):
            raise _from_file(value)
    joined = "" if all(name == "--json" for name, _ in parts) else "&"
    return joined.join(value for _, value in parts) if parts else None


def _from_file(value: str) -> Rejected:
    return Rejected(
        f"The command reads a file, {value[:80]}, which is not here.",
        fix="Paste what is in that file in its place, or paste the JSON alone.",
    )
