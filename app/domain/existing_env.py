"""An environment as people keep it: shell, .env, docker, Kubernetes; and the command line in it.

Nothing is expanded or run: a value with ``$`` stays as it stands.
"""

import re
import shlex
from collections.abc import Iterator

import orjson

from app.domain.launch import flags_of

_NAME = r"[A-Za-z_][A-Za-z0-9_]{0,200}"
_ASSIGNED = re.compile(
    rf"^\s*(?:(?:export|ENV|Environment=|-\s|-e\s|--env[= ])\s*)?[\"']?({_NAME})=(.*)$"
)
_LISTED = re.compile(rf"^\s*-?\s*[\"']?name[\"']?\s*:\s*[\"']?({_NAME})[\"']?\s*,?\s*$")
_VALUE = re.compile(r"^\s*[\"']?value[\"']?\s*:\s*(.*?)\s*,?\s*$")
_SERVER = re.compile(r"sglang\.launch_server|sglang\s+serve|launch_server\.py")
_DOCKER = re.compile(rf"(?:^|\s)(?:-e|--env)[ =]([\"']?)({_NAME})=([^\s\"']*)\1")


def existing_environment(text: str) -> dict[str, str]:
    """The variables that *text* sets; of two of one name the last."""
    return dict(_of_json(text) or _of_lines(text))


def existing_flags(text: str) -> dict[str, str | bool]:
    """The flags of the server's command line in *text*; {} where there is none."""
    for line in _joined(text):
        if _SERVER.search(line):
            return dict(flags_of(line))
    return {}


def _of_json(text: str) -> list[tuple[str, str]]:
    """Of ``docker inspect`` and of a container's ``env``: ["A=1"] or [{"name", "value"}]."""
    try:
        listed = orjson.loads(text)
    except orjson.JSONDecodeError:
        return []
    if isinstance(listed, dict):
        return [(name, value) for name, value in listed.items() if isinstance(value, str)]
    found = []
    for entry in listed if isinstance(listed, list) else ():
        if isinstance(entry, str) and "=" in entry:
            name, _, value = entry.partition("=")
            found.append((name, value))
        elif isinstance(entry, dict) and isinstance(entry.get("name"), str):
            found.append((entry["name"], str(entry.get("value", ""))))
    return found


def _of_lines(text: str) -> Iterator[tuple[str, str]]:
    named = ""
    for line in _joined(text):
        if line.lstrip().startswith("#"):
            continue
        if named and (value := _VALUE.match(line)):
            yield named, _unquoted(value[1])
        named = found[1] if (found := _LISTED.match(line)) else ""
        if docker := _DOCKER.findall(line):
            yield from ((name, value) for _, name, value in docker)
        elif _SERVER.search(line):
            yield from _before_the_command(line)
        elif assigned := _ASSIGNED.match(line):
            yield assigned[1], _unquoted(assigned[2])


def _before_the_command(line: str) -> Iterator[tuple[str, str]]:
    """``A=1 B=2 python -m sglang.launch_server …``"""
    for word in line.split():
        name, equals, value = word.partition("=")
        if not equals or not re.fullmatch(_NAME, name):
            return
        yield name, _unquoted(value)


def _joined(text: str) -> list[str]:
    text = text.replace("\0", "\n")  # a copy of /proc/PID/environ
    return text.replace("\\\r\n", " ").replace("\\\n", " ").splitlines()


def _unquoted(value: str) -> str:
    """*value* as a shell reads one word; as it stands where the quotes do not match."""
    value = value.strip()
    if value[:1] not in ("'", '"'):
        return value.split(" #", 1)[0].rstrip().rstrip("\"'")
    try:
        words = shlex.split(value, comments=True)
    except ValueError:
        return value
    return words[0] if words else ""
