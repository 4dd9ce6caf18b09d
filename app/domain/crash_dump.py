"""Whether SGLang writes the requests of its last minutes when it is told to crash.

Read in managers/tokenizer_manager.py of SGLang 0.4.6 to 0.5.23: what follows holds for these.
"""

import re
from dataclasses import dataclass
from typing import Literal

Version = tuple[int, int, int]

FLAG_SINCE: Version = (0, 4, 9)  # --crash-dump-folder
SETTABLE_SINCE: Version = (0, 5, 2)  # crash_dump_folder of POST /configure_logging
HOST_NAME_SINCE: Version = (0, 5, 7)  # before, an unset HOSTNAME made the dump fail
DIAGNOSTICS_SINCE: Version = (0, 5, 13)  # py-spy and coredump before the crash, and their wait

CRASH_PATH_SECONDS = 65  # 5 s of sleep, then 60 s for the coredump
SHORT_CRASH_PATH_SECONDS = 10  # of versions without diagnostics
KEPT_SECONDS = 300  # of finished requests

_NUMBERS = re.compile(r"(\d{1,4})\.(\d{1,4})\.(\d{1,4})")
_SUGGESTED_FOLDER = "/var/tmp/sglang-crash"  # noqa: S108  (an example for a person)


@dataclass(frozen=True, slots=True)
class ServerFacts:
    """What is known of one server from outside; None is not known."""

    engine: Literal["sglang", "vllm"]
    pid: int  # of its root
    port: int | None = None
    version: Version | None = None
    command_line_known: bool = True
    crash_dump_folder: str | None = None  # of its command line
    rust_ingress: bool | None = None
    tokenizer_workers: int = 1
    node_rank: int = 0
    starting: bool = False
    state: str | None = None  # letter of /proc/PID/stat of the root
    grace_seconds: float | None = None  # from the supervisor's stop to its SIGKILL


@dataclass(frozen=True, slots=True)
class Outlook:
    """Whether SIGQUIT to the root would write the requests, and the one fix where not."""

    ready: bool | None
    says: str
    fix: str | None = None
    command: str | None = None


def version_of(text: str) -> Version | None:
    """The three numbers that *text* begins with; None where it does not."""
    found = _NUMBERS.match(text)
    return (int(found[1]), int(found[2]), int(found[3])) if found else None


def crash_path_seconds(version: Version | None) -> int:
    """How long the server needs from its crash to its end; the longer where it is not known."""
    old = version is not None and version < DIAGNOSTICS_SINCE
    return SHORT_CRASH_PATH_SECONDS if old else CRASH_PATH_SECONDS


def crash_dump(facts: ServerFacts) -> Outlook:
    """The first reason against a crash dump; ready when all that it needs is in place."""
    return _never(facts) or _not_set(facts) or _not_now(facts) or _set_up(facts)


def _never(facts: ServerFacts) -> Outlook | None:
    if facts.engine != "sglang":
        return Outlook(None, "What vLLM writes when it crashes is not known here.")
    if facts.rust_ingress:
        return Outlook(
            ready=False,
            says="The Rust ingress writes no crash dump.",
            fix="Start it without SGLANG_RUST_SERVER: the Python ingress writes one.",
        )
    if facts.node_rank > 0:
        return Outlook(
            ready=False,
            says=f"This is node rank {facts.node_rank}: only node rank 0 writes a crash dump.",
            fix="Look at the host of node rank 0.",
        )
    if facts.tokenizer_workers > 1:
        return Outlook(
            ready=False,
            says=f"{facts.tokenizer_workers} tokenizer workers: SIGQUIT to the root writes none.",
            fix="Start it with --tokenizer-worker-num 1.",
        )
    return None


def _not_set(facts: ServerFacts) -> Outlook | None:
    if not facts.command_line_known:
        return Outlook(None, "Its command line cannot be read: the crash dump folder is unknown.")
    if facts.crash_dump_folder:
        return None
    if facts.version is not None and facts.version < SETTABLE_SINCE:
        return Outlook(
            ready=False,
            says="No crash dump folder, and this version takes one only at its start.",
            fix=f"Start it with --crash-dump-folder (SGLang {_dotted(FLAG_SINCE)} or later).",
            command=f"incident-console launch-env --crash-dump-folder {_SUGGESTED_FOLDER}",
        )
    return Outlook(
        ready=False,
        says="No --crash-dump-folder in its command line. Unless one was set since, none is kept.",
        fix="Set one while it runs; it needs the admin key where there is one.",
        command=_set_folder(facts),
    )


def _set_folder(facts: ServerFacts) -> str:
    port = facts.port or "PORT"
    return (
        f"curl -m 10 -X POST http://127.0.0.1:{port}/configure_logging"
        f" -H 'Content-Type: application/json'"
        f' -d \'{{"crash_dump_folder": "{_SUGGESTED_FOLDER}"}}\''
    )


def _not_now(facts: ServerFacts) -> Outlook | None:
    if facts.state in ("T", "t"):
        return Outlook(
            ready=False,
            says="Its root is stopped and handles no signal.",
            fix="Find out who stopped it; it goes on after SIGCONT.",
            command=f"kill -CONT {facts.pid}",
        )
    if facts.starting:
        return Outlook(
            ready=False,
            says="It is still starting: a crash before the first request writes nothing.",
            fix="Ask again once it serves.",
        )
    if facts.version is not None and facts.version < HOST_NAME_SINCE:
        return Outlook(
            None, f"{_dotted(facts.version)} writes none where HOSTNAME is not set; not known here."
        )
    return None


def _set_up(facts: ServerFacts) -> Outlook:
    folder = facts.crash_dump_folder
    if facts.rust_ingress is None:
        return Outlook(None, f"Set up for {folder}; none is written if its ingress is Rust.")
    return Outlook(
        ready=True,
        says=f"Set up: a crash writes to {folder}, unless the root's event loop is blocked.",
    )


def _dotted(version: Version) -> str:
    return ".".join(map(str, version))
