"""Where a server puts its dumps: as its command line, its environment and its open files say.

Folders set while a server runs (``POST /configure_logging``) show only while it writes to them;
who set them names them.
"""

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import pairwise
from pathlib import PurePosixPath

from app.agent.processes.proc import command_line, environment, links, pid_of
from app.protocol.messages import Server

MAX_FOLDERS = 8  # of one server
_FLAG = "--crash-dump-folder"
_FOLDER, _FILE = "SGLANG_CUDA_COREDUMP_DIR", "CUDA_COREDUMP_FILE"
DUMP_NAME = re.compile(
    r"(?P<crash>crash_dump_[\w.-]{1,200}\.pkl)"
    r"|(?P<request>\d{4}-\d\d-\d\d_\d\d-\d\d-\d\d\.pkl)"
    r"|(?P<gpu>core\.cuda\.[\w.-]{1,200}|cuda_coredump_[\w.-]{1,200}|core_[\w.-]{1,200}\.nvcudmp)",
    re.ASCII,
)


@dataclass(frozen=True, slots=True)
class ServerFolder:
    """A folder as process *pid* knows it; a relative *path* begins at its working folder."""

    pid: int
    path: str
    requests_only: bool = False  # the console named it: nothing else in it is for its eyes

    def holds(self, below: str, name: str) -> bool:
        """Whether the file *name* in the folder *below* is by its name a dump that counts here."""
        found = DUMP_NAME.fullmatch(name)
        if found is None or not self.requests_only:
            return found is not None
        return not below and found.lastgroup == "request"

    @property
    def shown(self) -> str:
        """The path as text that any reader can take: names are bytes and need not be text."""
        return self.path.encode("utf-8", "replace").decode()


def server_folders(server: Server, named: Sequence[str] = ()) -> list[ServerFolder]:
    """Each folder once, at most eight, then those that the console *named*.

    A server that was told to write somewhere shows it only while it writes.
    """
    pid = pid_of(server.id)
    found = list(dict.fromkeys([*_told(pid), *_written_to(server)]))[:MAX_FOLDERS]
    known = {folder.path.rstrip("/") for folder in found}
    plain = (path for path in named if ".." not in PurePosixPath(path).parts)
    more = [
        ServerFolder(pid, one, requests_only=True) for one in plain if one.rstrip("/") not in known
    ]
    return [*found, *more]


def _told(pid: int) -> Iterator[ServerFolder]:
    arguments, variables = command_line(pid), environment(pid) or {}
    for argument, following in pairwise([*arguments, ""]):
        name, _, value = argument.partition("=")
        if name == _FLAG and (value or following):
            yield ServerFolder(pid, value or following)
    if _FOLDER in variables:
        yield ServerFolder(pid, variables[_FOLDER])
    template = variables.get(_FILE, "|")
    if not template.lstrip().startswith("|"):  # else its dumps go into a command
        yield ServerFolder(pid, _fixed_part(template))


def _fixed_part(template: str) -> str:
    """The folders of *template* before the first one whose name is made by the driver."""
    fixed = []
    for part in PurePosixPath(template).parent.parts:
        if "%" in part:
            break
        fixed.append(part)
    return str(PurePosixPath(*fixed))


def _written_to(server: Server) -> Iterator[ServerFolder]:
    for process in server.processes:
        for link in (links(process.pid) or {}).values():
            path = PurePosixPath(link)
            if path.is_absolute() and DUMP_NAME.fullmatch(path.name):
                yield ServerFolder(process.pid, str(path.parent))
