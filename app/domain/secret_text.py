"""Secrets in one line of text: flags, assignments, headers, URLs and values of a known make."""

import re
from collections.abc import Callable

from app.domain.secret_names import is_secret_name, is_secret_parameter

Fingerprint = Callable[[str], str]

_MARK = re.compile(r"‹redacted:[0-9a-f]{8}›|<redacted>|\*{3,}|x{4,}", re.IGNORECASE)
# Only a line with one of these can hold a secret. Searched for in lower-case bytes: most lines
# of an exposition have none, and whole megabytes are passed over at the speed of a few finds.
_HINTS = (
    *(
        word + end
        for word in (b"key", b"keys", b"token", b"tokens")
        for end in (b"=", b'"', b"'", b":", b" ", b"\\", b"]")
    ),
    *b"secret passw passphrase pwd credential authori bearer cookie jwt watermark".split(),
    *b":// hf_ sk- akia asia ghp_ gho_ ghu_ ghs_ ghr_ _pat_ xox glpat- eyj ?sig &sig".split(),
)
_QUOTED = (  # the closing quote may be missing where an answer was cut off
    r'\\"(?:[^"\\\n]|\\[^"])*(?:\\"|$)'  # quoted inside a JSON string
    r'|"(?:[^"\\\n]|\\.)*(?:"|$)'
    r"|'(?:[^'\\\n]|\\.)*(?:'|$)"
)
_VALUE = rf"{_QUOTED}|[^\s,;&\"'<>{{}}()\[\]\\]+"
# As an operating system prints its environment: all of the line is the value.
_ENVIRONMENT = re.compile(r"^((?:export )?[A-Z][A-Z0-9_]{0,80})(=)(\S.*)$")
# On a command line, and in an argument list that Python printed.
_FLAG = re.compile(
    r"(?<![\w-])(--[A-Za-z][\w-]{0,80})(=|\s{1,8}|\\?[\"'],\s{0,3})(?!--)"
    rf"({_QUOTED}|[^\s\"'\\]+)"
)
_ASSIGNED = re.compile(
    rf"(?<![\w.-])([A-Za-z_][\w.-]{{0,80}}(?:\\?[\"'])?\s{{0,3}}[:=]\s{{0,3}})({_VALUE})"
)
_AUTHORIZATION = re.compile(
    r"(?i)(\bauthorization\\?[\"']?\s{0,3}[:=]\s{0,3}\\?[\"']?(?:bearer|basic|token|digest)\s{1,3})"
    r"([^\s\"'\\,;]+)"
)
_BEARER = re.compile(r"(?i)(\bbearer\s{1,3})((?=[^\s\"'\d]{0,200}+\d)[A-Za-z0-9._~+/=-]{6,})")
_USERINFO = re.compile(r"(://)([^\s/?#'\"<>@]{1,256}(?:@[^\s/?#'\"<>@]{1,256}){0,4})(?=@)")
_QUERY = re.compile(r"([?&])([\w.-]{1,64})=([^&\s\"'#<>\\]+)")
_KNOWN_MAKE = re.compile(
    r"(?<![A-Za-z0-9])(?:"
    r"hf_(?=[A-Za-z]{0,60}+\d)[A-Za-z0-9]{8,}|hf_[A-Za-z]{30,}"
    r"|sk-(?=[A-Za-z_-]{0,60}+\d)[\w-]{8,}"
    r"|A(?:KI|SI)A[0-9A-Z]{12,}"
    r"|gh[pousr]_[A-Za-z0-9]{20,}|github_pat_\w{20,}|glpat-[\w-]{16,}|xox[a-z]-[\w-]{10,}"
    r"|eyJ[\w-]{8,}\.[\w-]{8,}\.[\w-]*"
    r")"
)
_NO_SECRETS = frozenset(("", "none", "null", "true", "false", "nil", "bearer", "basic", "digest"))

# "start with --api-key to enable it" tells no secret.
_PROSE = frozenset(
    """
    to is was are and or not for with if in on at as the a an but has can must when which
    should cannot needs requires flag option argument
    """.split()  # noqa: SIM905  (a word list reads best as words)
)


def marked(secret: str, fingerprint: Fingerprint) -> str:
    """What stands in the place of *secret*."""
    return f"‹redacted:{fingerprint(secret)}›"


def is_marked(value: str) -> bool:
    """Whether somebody, we or the server, has put a mark in place of the secret already."""
    return _MARK.fullmatch(value.strip("\"'\\ ")) is not None


def suspect_lines(body: bytes) -> list[tuple[int, int]]:
    """Where the lines begin and end that may hold a secret, in order."""
    lowered = body.lower()  # bytes: keeps every position, which text would not
    found: dict[int, int] = {}
    for hint in _HINTS:
        at = lowered.find(hint)
        while at >= 0:
            end = lowered.find(b"\n", at)
            end = len(lowered) if end < 0 else end
            found[lowered.rfind(b"\n", 0, at) + 1] = end
            at = lowered.find(hint, end)
    return sorted(found.items())


def redact_line(line: str, fingerprint: Fingerprint) -> str:
    """*line* with marks in the place of secrets; time grows with its length, not faster."""

    def mask(value: str) -> str:
        return _mask(value, fingerprint)

    line = _ENVIRONMENT.sub(lambda found: _named(found, found[1], mask), line)
    line = _AUTHORIZATION.sub(lambda found: found[1] + mask(found[2]), line)
    line = _BEARER.sub(lambda found: found[1] + mask(found[2]), line)
    line = _USERINFO.sub(lambda found: found[1] + _userinfo(found[2], mask), line)
    line = _QUERY.sub(lambda found: _parameter(found, mask), line)
    line = _FLAG.sub(lambda found: _named(found, found[1], mask), line)
    line = _ASSIGNED.sub(lambda found: _named(found, _name(found[1]), mask), line)
    return _KNOWN_MAKE.sub(lambda found: marked(found[0], fingerprint), line)


def _mask(value: str, fingerprint: Fingerprint) -> str:
    """*value* as a mark inside the quotes that it came in."""
    quote = next((q for q in ('\\"', '"', "'") if value.startswith(q)), "")
    closing = quote if len(value) >= 2 * len(quote) and value.endswith(quote) else ""
    secret = value[len(quote) : len(value) - len(closing)]
    if secret.lower() in _NO_SECRETS or is_marked(secret):
        return value
    return f"{quote}{marked(secret, fingerprint)}{closing}"


def _userinfo(userinfo: str, mask: Callable[[str], str]) -> str:
    user, colon, password = userinfo.partition(":")
    return f"{user}:{mask(password)}" if colon else mask(user)


def _parameter(found: re.Match[str], mask: Callable[[str], str]) -> str:
    if not is_secret_parameter(found[2]):
        return found[0]
    return f"{found[1]}{found[2]}={mask(found[3])}"


def _named(found: re.Match[str], name: str, mask: Callable[[str], str]) -> str:
    value = found[found.re.groups]
    name = name.removeprefix("export ")
    if not is_secret_name(name) or (name.lower().endswith("token") and value.isdecimal()):
        return found[0]
    if name.startswith("--") and found[2].isspace() and value in _PROSE:
        return found[0]
    return found[0][: -len(value)] + mask(value)


def _name(before: str) -> str:
    return before.rstrip("\\\"' :=")
