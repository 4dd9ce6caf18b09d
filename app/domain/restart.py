"""If a server must be restarted: what each way to end it would save and lose.

Nothing here sends a signal. Read in SGLang 0.4.6 to 0.5.23 (managers/tokenizer_manager.py) and
seen on a real 0.5.23 server; of vLLM only what holds for every process is said.
"""

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Literal

from app.domain.crash_dump import (
    CRASH_PATH_SECONDS,
    DIAGNOSTICS_SINCE,
    KEPT_SECONDS,
    Outlook,
    ServerFacts,
    crash_dump,
    crash_path_seconds,
)

Signal = Literal["SIGTERM", "SIGQUIT", "SIGKILL"]

_STACKS_FIRST = "Stacks, GPU state and host facts: none of these outlives it. Take them first."
_IN_MEMORY = "Request-dump records still in memory (up to 1000 unless the threshold says else)."
_KEPT_FILES = "What is on disk already: its log, dumps and coredumps that are whole."
_HOLDS_ITSELF_UNHEALTHY = (
    "Whether it holds itself for unhealthy. Then it does not drain; it writes the crash dump"
    " if one is set up, and may still not end by itself."
)
_MINUTES = KEPT_SECONDS // 60
_COMMON = frozenset(("The", "This", "No", "Its", "It", "Set", "What"))


@dataclass(frozen=True, slots=True)
class Ending:
    """What one signal to the root saves and loses; *unknown* decides between them."""

    how: Signal
    command: str
    saves: tuple[str, ...]
    loses: tuple[str, ...]
    unknown: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Restart:
    """The advice in one or two sentences, and the endings, the gentlest first."""

    advice: str
    endings: tuple[Ending, ...]


def restart(facts: ServerFacts) -> Restart:
    """What to know before *facts*' server is ended."""
    outlook = crash_dump(facts)
    endings = (_term(facts), _quit(facts, outlook), _kill(facts))
    return Restart(_advice(facts, outlook), endings)


def _advice(facts: ServerFacts, outlook: Outlook) -> str:
    first = "Take stacks and host facts first."
    if facts.state in ("T", "t"):
        return f"{first} The root is stopped: SIGTERM and SIGQUIT wait until it runs again."
    if facts.engine != "sglang":
        return f"{first} Whether vLLM keeps its requests is not known: save what you need before."
    if outlook.ready is False:
        return f"{first} No signal saves the requests: {_lower(outlook.says)}"
    seconds = crash_path_seconds(facts.version)
    said = f"Then SIGQUIT rather than SIGKILL, and leave it at least {seconds} s."
    if outlook.ready is None:
        return f"{first} {said} Whether that saves the requests is not known."
    return f"{first} {said}"


def _term(facts: ServerFacts) -> Ending:
    if facts.engine != "sglang":
        return _ending("SIGTERM", facts, [_KEPT_FILES], [_STACKS_FIRST], [])
    saves = [_KEPT_FILES, "Running requests, as long as they still move: it drains first."]
    loses = [_STACKS_FIRST, _IN_MEMORY]
    loses.append("A hung request is waited for, and the wait may never end.")
    loses += _cut_off(facts)
    unknown = [_HOLDS_ITSELF_UNHEALTHY]
    match _writes_at_the_end_of_a_drain(facts):
        case True:
            saves.append("A crash dump, at the end of the drain.")
        case False:
            loses.append("A crash dump: a drain that ends in order writes none.")
        case None:
            unknown.append("Its version: up to 0.5.12 a drain ends with a crash dump.")
    return _ending("SIGTERM", facts, saves, loses, unknown)


def _writes_at_the_end_of_a_drain(facts: ServerFacts) -> bool | None:
    if crash_dump(facts).ready is False:
        return False
    return None if facts.version is None else facts.version < DIAGNOSTICS_SINCE


def _cut_off(facts: ServerFacts) -> Iterator[str]:
    needed, grace = crash_path_seconds(facts.version), facts.grace_seconds
    if grace is not None and grace < needed:
        yield (
            f"What takes longer than {grace:g} s: then its supervisor sends SIGKILL. The crash"
            f" path needs {needed} s."
        )


def _quit(facts: ServerFacts, outlook: Outlook) -> Ending:
    if facts.engine != "sglang":
        unread = ["What vLLM does on SIGQUIT."]
        return _ending("SIGQUIT", facts, [_KEPT_FILES], [_STACKS_FIRST], unread)
    saves = [_KEPT_FILES]
    loses = ["Running requests: they fail at once.", _IN_MEMORY]
    unknown = ["Whether its event loop runs: a blocked loop handles no signal. Stacks tell."]
    requests = f"Unfinished requests and those finished in the last {_MINUTES} min"
    if outlook.ready is False:
        loses.append(f"{requests}: {_lower(outlook.says)}")
    elif outlook.ready is None:
        unknown.append(f"{requests}: {_lower(outlook.says)}")
    else:
        saves.append(f"{requests}, below {facts.crash_dump_folder}.")
    _diagnostics(facts, saves, loses, unknown)
    return _ending("SIGQUIT", facts, saves, loses, unknown)


def _diagnostics(
    facts: ServerFacts, saves: list[str], loses: list[str], unknown: list[str]
) -> None:
    """What the server takes of itself before it ends, and how long that lasts."""
    if facts.rust_ingress or facts.tokenizer_workers > 1:
        loses.append(_STACKS_FIRST)
    elif facts.version is None:
        unknown.append(
            f"Its version: since 0.5.13 it runs py-spy and the coredump trigger on each rank"
            f" first, and takes at least {CRASH_PATH_SECONDS} s."
        )
        loses.append(_STACKS_FIRST)
    elif facts.version < DIAGNOSTICS_SINCE:
        loses.append(_STACKS_FIRST)
    else:
        saves.append("py-spy text of each rank in its log, where py-spy is there and may trace.")
        unknown.append(
            f"Whether a liveness probe ends it earlier: it answers nothing for"
            f" {CRASH_PATH_SECONDS} s."
        )


def _kill(facts: ServerFacts) -> Ending:
    loses = [_STACKS_FIRST]
    if facts.engine == "sglang":
        loses += [
            f"Unfinished requests and those of the last {_MINUTES} min: no crash dump is written.",
            _IN_MEMORY,
        ]
    loses.append("Whatever is being written: a coredump that still grows stays cut off.")
    return _ending("SIGKILL", facts, [_KEPT_FILES], loses, [])


def _ending(
    how: Signal, facts: ServerFacts, saves: list[str], loses: list[str], unknown: list[str]
) -> Ending:
    command = f"kill -{how.removeprefix('SIG')} {facts.pid}"
    return Ending(how, command, tuple(saves), tuple(loses), tuple(unknown))


def _lower(sentence: str) -> str:
    """*sentence* to go on after a colon; names and abbreviations keep their capitals."""
    first = sentence.split(" ", 1)[0]
    return sentence[:1].lower() + sentence[1:] if first in _COMMON else sentence
