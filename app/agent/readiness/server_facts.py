"""What can be seen of a server from outside that decides about its crash dump."""

import os
import re
from collections.abc import Mapping, Sequence
from contextlib import suppress
from itertools import islice
from pathlib import Path

from app.agent.processes.proc import PROC, command_line, environment, lines, pid_of, read_stat
from app.agent.touching.rooted import open_folder
from app.domain.crash_dump import ServerFacts, Version, version_of
from app.domain.launch import flags_of
from app.protocol.messages import Server

_MAPS_BYTES = 8 * 1024 * 1024
_MOST_PACKAGES = 20_000
_PACKAGES = re.compile(rb"(/[^\n]*?/(?:site|dist)-packages)/")
_INSTALLED = re.compile(r"sglang-(\d[^/]*)\.dist-info")
_ON = ("1", "true", "yes", "on")


def server_facts(
    server: Server, *, grace_seconds: float | None = None, root: Path = PROC
) -> ServerFacts:
    """From command line, environment and processes of *server*; what they do not tell is None."""
    pid = pid_of(server.id)
    arguments = command_line(pid, root)
    flags = dict(flags_of(" ".join(arguments)))
    folder = flags.get("--crash-dump-folder")
    stat = read_stat(pid, root)
    return ServerFacts(
        engine=server.engine,
        pid=pid,
        port=server.ports[0] if server.ports else None,
        version=sglang_version(pid, root) if server.engine == "sglang" else None,
        command_line_known=_is_told(arguments, flags),
        crash_dump_folder=folder if isinstance(folder, str) else None,
        rust_ingress=_rust_ingress(server, flags, root),
        tokenizer_workers=_number(flags, "--tokenizer-worker-num", 1),
        node_rank=_number(flags, "--node-rank", 0),
        starting=server.starting,
        state=stat.state if stat else None,
        grace_seconds=grace_seconds,
    )


def sglang_version(pid: int, root: Path = PROC) -> Version | None:
    """As its package is installed where *pid* loads its libraries from; None: not found."""
    for folder in _package_folders(pid, root):
        with suppress(OSError):
            descriptor = open_folder(pid, folder)
            try:
                if version := _installed(descriptor):
                    return version
            finally:
                os.close(descriptor)
    return None


def _package_folders(pid: int, root: Path) -> list[str]:
    found = (_PACKAGES.search(line) for line in lines(f"{root}/{pid}/maps", _MAPS_BYTES))
    return list(dict.fromkeys(os.fsdecode(match[1]) for match in found if match))


def _installed(descriptor: int) -> Version | None:
    with os.scandir(descriptor) as entries:
        for entry in islice(entries, _MOST_PACKAGES):
            if found := _INSTALLED.fullmatch(entry.name):
                return version_of(found[1])
    return None


def _is_told(arguments: Sequence[str], flags: Mapping[str, str | bool]) -> bool:
    """Whether all flags are in the command line: no title over it, no file of flags beside it."""
    return bool(arguments) and not arguments[0].startswith("sglang::") and "--config" not in flags


def _rust_ingress(server: Server, flags: Mapping[str, str | bool], root: Path) -> bool | None:
    """By the detokenizer, which only the Python ingress has, else by the environment."""
    roles = {process.role for process in server.processes}
    if "detokenizer" in roles:
        return False
    told = environment(pid_of(server.id), root)
    if told is not None:
        return told.get("SGLANG_RUST_SERVER", "").lower() in _ON
    second_node = _number(flags, "--node-rank", 0) > 0  # which has no detokenizer either
    return None if server.starting or second_node or "scheduler" not in roles else True


def _number(flags: Mapping[str, str | bool], name: str, default: int) -> int:
    told = flags.get(name)
    return int(told) if isinstance(told, str) and told.isascii() and told.isdigit() else default
