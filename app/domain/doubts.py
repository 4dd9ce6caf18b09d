"""Why the title of a process may lie: anybody can call a process a scheduler."""

from collections.abc import Set as AbstractSet
from pathlib import PurePosixPath

from app.domain.titles import is_python, printable

LIBRARIES = ("libcuda", "libtorch")  # one of them is mapped in whatever runs a model


def doubts(
    *,
    program: str | None,
    uid: int | None,
    server_uid: int | None,
    libraries: AbstractSet[str] | None = None,
    server_gone: bool = False,
) -> list[str]:
    """What speaks against a title, as short sentences; what is None is not known and says nothing.

    *libraries* are those of ``LIBRARIES`` that it has mapped.
    """
    found = []
    if program is not None and not is_python(program := program.removesuffix(" (deleted)")):
        found.append(f"it runs {printable(PurePosixPath(program).name, 60)}, not Python")
    if uid is not None and server_uid is not None and uid != server_uid:
        found.append(f"it belongs to user {uid}, its server to user {server_uid}")
    if libraries is not None and not libraries:
        found.append("it has neither CUDA nor torch loaded")
    if server_gone:
        found.append("its server is gone, or it never had one")
    return found
