"""A procfs made up for a test: a tree of files as the kernel shows them."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

PYTHON = "/usr/bin/python3.11"
SERVE = ("python3", "-m", "sglang.launch_server")
SPAWNED = ("python3", "-c", "from multiprocessing.spawn import spawn_main; spawn_main()")
TRACKER = ("python3", "-c", "from multiprocessing.resource_tracker import main;main(6)")
TITLE_LEFT = ("",) * 120  # what setproctitle leaves of the arguments


@dataclass(frozen=True)
class Made:
    """One process; the defaults are a Python process with torch, of root, in no container."""

    pid: int
    parent: int
    arguments: Sequence[str]
    comm: str = "python3"
    state: str = "S"
    start: int = 1000
    session: int = 1
    threads: int = 3
    flags: int = 0
    uid: int = 0
    inner_pids: Sequence[int] = ()
    traced_by: int = 0
    exe: str = PYTHON
    maps: str = "7f00 r-xp 0 08:01 5 /opt/torch/lib/libtorch_cpu.so\n"
    cgroup: str = "0::/\n"
    wchan: str = "0"
    files: Mapping[int, str] = field(default_factory=dict)  # links of its descriptors
    namespaces: Mapping[str, str] = field(default_factory=dict)
    tcp: str = ""


def make(root: Path, *processes: Made, btime: int = 1_700_000_000) -> Path:
    """*root* with those processes, and with ``self`` in the first namespaces."""
    root.mkdir(exist_ok=True)
    (root / "stat").write_text(f"cpu 1 2 3\nbtime {btime}\nprocesses 9\n")
    _namespaces(root / "self", {})
    for process in processes:
        _process(root / str(process.pid), process)
    return root


def title(text: str) -> tuple[str, ...]:
    """The arguments of a process that gave itself a title."""
    return (text, *TITLE_LEFT)


def tcp(*rows: tuple[int, str, int]) -> str:
    """``/proc/PID/net/tcp`` with rows of port, state in hex and inode."""
    lines = ["  sl  local_address rem_address   st tx_queue rx_queue tr tm->when retrnsmt uid"]
    lines += [
        f"   {i}: 0100007F:{port:04X} 00000000:0000 {state} 0:0 00:0 0 0 0 {inode} 1 0 100"
        for i, (port, state, inode) in enumerate(rows)
    ]
    return "\n".join(lines) + "\n"


def _process(folder: Path, made: Made) -> None:
    _namespaces(folder, made.namespaces)
    inner = "\t".join(map(str, made.inner_pids or (made.pid,)))
    texts = {
        "stat": _stat(made),
        "cmdline": "\0".join(made.arguments) + "\0" if made.arguments else "",
        "status": f"Name:\t{made.comm}\nTracerPid:\t{made.traced_by}\n"
        f"Uid:\t{made.uid}\t{made.uid}\t{made.uid}\t{made.uid}\nNSpid:\t{inner}\n",
        "maps": made.maps,
        "cgroup": made.cgroup,
        "wchan": made.wchan,
        "net/tcp": made.tcp,
        "net/tcp6": "",
    }
    for name, text in texts.items():
        (folder / name).parent.mkdir(exist_ok=True)
        (folder / name).write_text(text)
    (folder / "exe").symlink_to(made.exe)
    (folder / "fd").mkdir()
    for number, link in made.files.items():
        (folder / "fd" / str(number)).symlink_to(link)


def _namespaces(folder: Path, others: Mapping[str, str]) -> None:
    (folder / "ns").mkdir(parents=True)
    for kind, number in {"pid": 4026531836, "mnt": 4026531841, "net": 4026531840}.items():
        (folder / "ns" / kind).symlink_to(others.get(kind, f"{kind}:[{number}]"))


def _stat(made: Made) -> str:
    fields = [made.state, made.parent, made.pid, made.session, 0, -1, made.flags, 0, 0, 0, 0]
    fields += [77, 5, 0, 0, 20, 0, made.threads, 0, made.start, 1 << 30, 2500, *[0] * 28]
    return f"{made.pid} ({made.comm}) " + " ".join(map(str, fields)) + "\n"
