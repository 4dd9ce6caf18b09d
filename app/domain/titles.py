"""What a process of SGLang or vLLM says it is, by its title or its command line.

Titles since SGLang 0.4.6 and of vLLM with its default prefix. Anybody can give himself such a
title: what speaks against it is for the reader of the process to find out.
"""

import re
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import Literal

Engine = Literal["sglang", "vllm"]
Role = Literal[
    "server",
    "scheduler",
    "worker",
    "engine core",
    "detokenizer",
    "dp controller",
    "tokenizer worker",
    "router",
    "other",
]


@dataclass(frozen=True, slots=True)
class RankNumbers:
    """Where a process stands in its groups; *label* is how its own logs name it: "DP1_TP3"."""

    label: str
    tp: int | None = None
    pp: int | None = None
    dp: int | None = None
    ep: int | None = None


@dataclass(frozen=True, slots=True)
class Title:
    engine: Engine
    role: Role
    rank: RankNumbers | None = None


UNNAMED = RankNumbers("TP0")  # the only rank of a server has no number in its title

_SHOWN_CHARACTERS = 200
_TITLE = re.compile(r"(sglang|sgl_diffusion|VLLM)::([A-Za-z][A-Za-z/]*(?:_[a-z/]+)*)(\S*)")
# ATTN_CP and MOE_DP are groups of their own and must not be read as CP or DP.
_RANK_TOKEN = re.compile(r"_?((?:[A-Z]{1,8}_)?[A-Z]{1,8})(\d{1,6})(?=_|$)")
_RANK_CHARACTERS = 120
_SGLANG_ROLES: dict[str, Role] = {
    "scheduler": "scheduler",
    "detokenizer": "detokenizer",
    "detokenizer_router": "router",
    "data_parallel_controller": "dp controller",
    "tokenizer_worker": "tokenizer worker",
    "http_server/tokenizer_manager": "server",
    "http_server/multi_tokenizer_router": "server",
}
_VLLM_ROLES: dict[str, Role] = {
    "Worker": "worker",
    "EngineCore": "engine core",
    "DPCoordinator": "dp controller",
    "APIServer": "tokenizer worker",
}
_MAKERS = {"sglang": _SGLANG_ROLES, "sgl_diffusion": _SGLANG_ROLES, "VLLM": _VLLM_ROLES}
_RANKED = ("scheduler", "worker", "engine core")

_PYTHON = re.compile(r"(?:python|pypy)[\d.]*[a-z]*")
_SCRIPT_SERVERS: dict[tuple[str, str], Engine] = {
    ("sglang", "serve"): "sglang",
    ("vllm", "serve"): "vllm",
}
_MODULE_SERVERS: tuple[tuple[re.Pattern[str], Engine], ...] = (
    (re.compile(r"sglang\.(?:launch_server|cli\.main serve)(?: |$)"), "sglang"),
    (re.compile(r"vllm\.entrypoints\.(?:cli\.main serve(?: |$)|(?!cli\.))"), "vllm"),
)
_FILE_SERVER = re.compile(r"(?:.*/)?sglang/launch_server\.py")
_DEFAULT_PORTS: dict[Engine, int] = {"sglang": 30000, "vllm": 8000}
_SPAWNED = "from multiprocessing.spawn import spawn_main"
_TRACKER = "from multiprocessing.resource_tracker import main"


def read_title(arguments: Sequence[str]) -> Title | None:
    """What a title says; None when these are the arguments of an ordinary command.

    setproctitle leaves blanks and empty arguments behind, and a title that fills the whole area
    comes in pieces: only the text as a whole counts.
    """
    match = _TITLE.match(" ".join(arguments).strip())
    if match is None:
        return None
    maker, name, suffix = match.groups()
    role = _MAKERS[maker].get(name, "other")
    rank = read_rank(suffix) or UNNAMED if role in _RANKED else None
    return Title(_engine(maker), role, rank)


def read_comm(comm: str) -> Title | None:
    """What the kernel's name of a dead process says: the title's first 15 bytes, so no rank."""
    for maker, roles in _MAKERS.items():
        for name, role in roles.items():
            full = f"{maker}::{name}"
            if len(comm) > len(maker) + 2 and (full.startswith(comm) or comm.startswith(full)):
                return Title(_engine(maker), role)
    return None


def _engine(maker: str) -> Engine:
    return "vllm" if maker == "VLLM" else "sglang"


def read_rank(suffix: str) -> RankNumbers | None:
    """The numbers in ``_DP0_PP0_ATTN_CP0_MOE_DP0_TP1_EP1``, in any order; None: there are none."""
    tokens = list(_RANK_TOKEN.finditer(suffix[:_RANK_CHARACTERS]))
    if not tokens:
        return None
    numbers = {token[1]: int(token[2]) for token in reversed(tokens)}
    return RankNumbers(
        label="_".join(token[1] + token[2] for token in tokens),
        tp=numbers.get("TP"),
        pp=numbers.get("PP"),
        dp=numbers.get("DP"),
        ep=numbers.get("EP"),
    )


def serves(arguments: Sequence[str]) -> Engine | None:
    """Which server a command line starts, whatever started it: a shell that names one does not."""
    if not arguments or not is_python(arguments[0]):
        return None
    rest = _without_options(arguments[1:])
    match rest:
        case ["-m", module, *more]:
            named = " ".join([module, *more[:1]])
            return next((engine for p, engine in _MODULE_SERVERS if p.match(named)), None)
        case [script, verb, *_] if engine := _SCRIPT_SERVERS.get((_base(script), verb)):
            return engine
        case [script, *_] if _FILE_SERVER.fullmatch(script):
            return "sglang"
    return None


def _without_options(arguments: Sequence[str]) -> list[str]:
    """From the module or the script on: what stands before it is for the interpreter."""
    rest = list(arguments)
    while rest and rest[0].startswith("-") and rest[0] not in ("-m", "-c"):
        del rest[: 2 if rest[0] in ("-X", "-W") else 1]
    return rest


def is_python(program: str) -> bool:
    """Whether the name of *program* is that of a Python interpreter."""
    return bool(_PYTHON.fullmatch(_base(program)))


def is_spawned(arguments: Sequence[str]) -> bool:
    """Whether this is a child of multiprocessing that has no title of its own yet."""
    return any(argument.startswith(_SPAWNED) for argument in arguments[:8])


def is_tracker(arguments: Sequence[str]) -> bool:
    """Whether this is the process in which multiprocessing keeps count of shared memory."""
    return any(argument.startswith(_TRACKER) for argument in arguments[:8])


def declared_port(arguments: Sequence[str], engine: Engine) -> int:
    """The port that a server was told to listen on; else the one it takes by itself."""
    told = None
    for flag, value in pairwise([*arguments, ""]):
        name, equals, joined = flag.partition("=")
        if name == "--port":
            told = joined if equals else value  # the last one counts, as in argparse
    number = int(told) if told and told.isascii() and told.isdigit() and len(told) < 6 else 0
    return number or _DEFAULT_PORTS[engine]


def printable(text: str, characters: int = _SHOWN_CHARACTERS) -> str:
    """*text* on one line and without anything that moves a cursor, at most so long."""
    shown = "".join(c if c.isprintable() else repr(c)[1:-1] for c in text[: characters + 1])
    return shown if len(shown) <= characters else shown[: characters - 1] + "…"


def _base(path: str) -> str:
    return path.rpartition("/")[2]
