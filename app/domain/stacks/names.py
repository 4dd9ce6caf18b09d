"""What the name of a file of stacks tells: whose they are, which sample, how they were taken.

Names as ``stacks take`` gives them (``TP0-41878-1.pyspy.json``), as SGLang's titles do
(``sglang_scheduler_TP0.19358.native.json``), and as people do (``tp0.txt``, ``rank07.txt``).
"""

import re
from dataclasses import dataclass
from pathlib import PurePosixPath

from app.domain.titles import RankNumbers, Role, Title, read_title

_OURS = re.compile(r"(?P<label>[A-Za-z0-9_.]+)-(?P<pid>\d{1,10})-(?P<sample>\d{1,4})")
_TITLED = re.compile(r"(?P<title>(?:sglang|sgl_diffusion|VLLM)_.+?)[.-](?P<pid>\d{2,10})(?=\D|$)")
_NUMBERED = re.compile(r"(?P<word>[A-Za-z]\w*?)\.(?P<pid>\d{3,10})(?=\.|$)")  # tp0.2: a sample
_TOKEN = re.compile(r"(?<![A-Za-z])(tp|pp|dp|ep|rank|gpu)[-_]?(\d{1,6})(?!\d)", re.IGNORECASE)
_LABEL = re.compile(r"((tp|pp|dp|ep|rank)[-_]?\d{1,6}[-_]?)+", re.IGNORECASE)
_ENDINGS = re.compile(
    r"(\.(stdout|stderr|out|err|txt|json|log|native|locals|nonblocking|pyspy|dump))+$",
    re.IGNORECASE,
)
_STREAM = re.compile(r"\.(stdout|stderr)(\.\w+)?$|\.err$", re.IGNORECASE)
_ERROR = re.compile(r"\.stderr(\.\w+)?$|\.err$", re.IGNORECASE)
_NODE = re.compile(
    r"(node|host)[-_.].+|(node|host|machine|pod|gpu)\w*[-_.]?\d.*"
    r"|(ip[-_])?\d{1,3}([-_.]\d{1,3}){3}"  # an address
    r"|[a-z][a-z\d-]*-[a-z\d]{8,10}-[a-z\d]{5}"  # of a Deployment of Kubernetes
    r"|(?!.*(stack|sample|dump|py-?spy|hang|capture|take|try|round))"
    r"[a-z\d-]*(sglang|vllm|worker|server|prefill|decode|leader|[abhl]\d\d\d?|[dh]gx)[a-z\d-]*"
    r"[-_.]?\d+([-.][a-z\d.-]+)?",
    re.IGNORECASE,
)
_NUMBERS = ("tp", "pp", "dp", "ep")
_OTHER_ROLES: dict[str, Role] = {
    "main": "server",
    "server": "server",
    "detokenizer": "detokenizer",
    "router": "router",
    "dp_controller": "dp controller",
    "tokenizer_worker": "tokenizer worker",
}


@dataclass(frozen=True, slots=True)
class FileName:
    """What a path says; None: nothing. *stem* is shared by an answer and its error text."""

    stem: str
    label: str | None
    numbers: RankNumbers | None
    role: Role | None
    pid: int | None
    sample: int | None
    error: bool
    mode: str  # "plain", "native", "nonblocking"
    with_locals: bool

    @property
    def folder(self) -> str:
        return str(PurePosixPath(self.stem).parent)


def read_file_name(path: str) -> FileName:
    """What *path* tells of the stacks in it."""
    base = PurePosixPath(path).name
    parts = base.lower().split(".")
    mode = "native" if "native" in parts else "plain"
    mode = "nonblocking" if "nonblocking" in parts else mode
    title, pid, sample = _whose(base)
    title = title or _by_folder(path)
    rank = title.rank if title else None
    return FileName(
        stem=_STREAM.sub("", path),
        label=rank.label if rank else None,
        numbers=rank,
        role=title.role if title else None,
        pid=pid,
        sample=sample,
        error=bool(_ERROR.search(base)),
        mode=mode,
        with_locals="locals" in parts,
    )


def names_a_node(folder: str) -> str | None:
    """The innermost part of *folder* that names a machine; None where none does."""
    parts = reversed(PurePosixPath(folder).parts)
    return next((part for part in parts if _NODE.fullmatch(part)), None)


def in_order(path: str) -> list[tuple[int, str]]:
    """A key that puts ``sample10`` after ``sample2``."""
    pieces = re.split(r"(\d+)", path)
    return [(int(piece[:18]), "") if piece.isdigit() else (-1, piece) for piece in pieces]


def _whose(base: str) -> tuple[Title | None, int | None, int | None]:
    bare = _ENDINGS.sub("", base)
    if ours := _OURS.fullmatch(bare):
        return _title(ours["label"]), int(ours["pid"]), int(ours["sample"])
    if titled := _TITLED.match(bare):
        full = re.sub(r"^(sglang|sgl_diffusion|VLLM)_+", r"\1::", titled["title"])
        return read_title([full]), int(titled["pid"]), None
    if numbered := _NUMBERED.match(bare):
        return _title(numbered["word"]), int(numbered["pid"]), None
    return _title(bare), None, None


def _by_folder(path: str) -> Title | None:
    """The rank that a folder is named after, and nothing else: ``tp3/dump.json``."""
    folders = reversed(PurePosixPath(path).parent.parts)
    return next((_title(folder) for folder in folders if _LABEL.fullmatch(folder)), None)


def _title(words: str) -> Title | None:
    """What *words* name: a rank (``tp0``, ``DP1_TP3``, ``rank07``), or another part of a server."""
    tokens = [(name.upper(), int(number)) for name, number in _TOKEN.findall(words)]
    if not tokens:
        role = _OTHER_ROLES.get(words)
        return Title("sglang", role) if role else None
    numbers = {name.lower(): number for name, number in reversed(tokens)}
    label = "_".join(f"{name}{number}" for name, number in tokens if name.lower() in _NUMBERS)
    bare = numbers.get("rank", numbers.get("gpu"))
    rank = RankNumbers(label or f"rank{bare}", **{name: numbers.get(name) for name in _NUMBERS})
    return Title("sglang", "scheduler", rank)
