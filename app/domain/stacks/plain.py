"""The bytes of a file as the plain lines that py-spy wrote, whatever they went through.

Editors and shells add marks of byte order, terminals colours, and log collectors a prefix to each
line: Docker's JSON, the runtimes of Kubernetes, `docker compose logs`, `kubectl logs`, journald,
and the servers themselves (SGLang's stamp, vLLM's and Ray's names of processes).
"""

import codecs
import re
from collections.abc import Iterator

import orjson

from app.domain.stacks.text import holds_dump

_MARKS = (
    (codecs.BOM_UTF8, "utf-8"),
    (codecs.BOM_UTF16_LE, "utf-16-le"),
    (codecs.BOM_UTF16_BE, "utf-16-be"),
)
_COLOUR = re.compile(r"\x1b\[[0-9;]*[A-Za-z]")
_MOST_LAYERS = 4
_STAMP = r"\d{4}-\d\d-\d\d[T ]\d\d:\d\d:\d\d\S{0,40}"
_COLLECTED = tuple(
    re.compile(rf"^{prefix}", re.MULTILINE)
    for prefix in (
        rf"{_STAMP} std(?:out|err) [FP] ",  # of Kubernetes' container runtimes
        rf"{_STAMP} (?!std(?:out|err) )",  # --timestamps
        r"\[pod/[^\]\n]{1,300}\] ",  # kubectl logs --prefix
        r"[A-Za-z0-9][\w.-]{0,100} +\| ",  # docker compose
        r"[A-Z][a-z]{2} [ \d]\d \d\d:\d\d:\d\d \S{1,255} [^\s:]{1,100}: ",  # journald, syslog
        r"\([\w:. -]{1,100} pid=\d+[^)\n]{0,100}\) ",  # vLLM, Ray
        r"\[rank\d{1,6}\]: ?",  # torchrun
    )
)
_DUMP = re.compile(
    r"Process \d{1,10}:|\[\d{4}-\d\d-\d\d[^\]\n]{0,80}\] (?:Process \d|Pyspy failed)"
)
# SGLang's own stamp ends a dump, so it is cut only from lines that belong to one.
_OWN_STAMP = re.compile(
    rf"^\[{_STAMP}[^\]\n]{{0,80}}\] "
    r"(?=Process \d{1,10}: |Python v\d|Thread (?:0x[0-9A-Fa-f]|\d)|    \S)",
    re.MULTILINE,
)


def plain_bytes(body: bytes) -> bytes:
    """*body* in UTF-8 and without a mark of byte order, for a reader of JSON."""
    for mark, coding in _MARKS:
        if body.startswith(mark):
            rest = body.removeprefix(mark)
            return rest if coding == "utf-8" else rest.decode(coding, "replace").encode()
    return body


def plain_text(body: bytes) -> str:
    """*body* as lines without colours and without the prefixes of log collectors."""
    text = plain_bytes(body).decode("utf-8", "replace").replace("\r\n", "\n")
    if text.startswith('{"log":'):
        text = "".join(_docker_lines(text))
    if "\x1b[" in text:
        text = _COLOUR.sub("", text)
    if ("Thread " in text or "Pyspy failed" in text) and not holds_dump(text):
        text = _uncollected(text)
    return _OWN_STAMP.sub("", text) if "] Process " in text else text


def _uncollected(text: str) -> str:
    """*text* without the prefixes in front of what py-spy wrote, the outermost first."""
    for _ in range(_MOST_LAYERS):
        prefix = next((one for one in _COLLECTED if _before_a_dump(one, text)), None)
        if prefix is None:
            break
        text = prefix.sub("", text)
    return text


def _before_a_dump(prefix: re.Pattern[str], text: str) -> bool:
    """Whether *prefix* stands before a process of py-spy, a failure of it, or another prefix."""
    ends = (found.end() for found in prefix.finditer(text))
    return any(_DUMP.match(text, at) or _prefixed(text, at) for at in ends)


def _prefixed(text: str, at: int) -> bool:
    line_end = text.find("\n", at)
    line = text[at : line_end if line_end >= 0 else None]
    begins = "Process " in line or "Pyspy failed" in line
    return begins and any(one.match(line) for one in _COLLECTED)


def _docker_lines(text: str) -> Iterator[str]:
    for line in text.splitlines():
        try:
            told = orjson.loads(line)
        except orjson.JSONDecodeError:
            continue
        if isinstance(told, dict) and isinstance(told.get("log"), str):
            yield told["log"]
