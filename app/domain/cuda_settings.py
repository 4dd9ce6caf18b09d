"""What a CUDA process was told about coredumps: where the pipe, where the file, which contents.

Names, defaults and templates are those of NVIDIA's CUDA-GDB manual, "GPU core dump support"; what
SGLang adds is in its ``arg_groups/serving_hook.py`` and ``debug_utils/cuda_coredump.py``.
"""

import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise
from pathlib import PurePosixPath

DEFAULT_PIPE = "corepipe.cuda.%h.%p"
SGLANG_PIPE = "/tmp/corepipe.cuda.%h.%p"  # noqa: S108  (of --crash-dump-folder, since 0.5.13)
ENABLE = "CUDA_ENABLE_USER_TRIGGERED_COREDUMP"
_PIPE, _FILE = "CUDA_COREDUMP_PIPE", "CUDA_COREDUMP_FILE"
_FLAGS, _LIGHT = "CUDA_COREDUMP_GENERATION_FLAGS", "CUDA_ENABLE_LIGHTWEIGHT_COREDUMP"
_WORDS = re.compile(r"%[hpt]")


@dataclass(frozen=True, slots=True)
class CudaSettings:
    """What is known of them; None is not known, as titles wipe the environment of a process."""

    pipe: str | None = None  # a template with %h %p %t
    file: str | None = None  # a template, or "|command"
    flags: frozenset[str] | None = None
    enabled: bool | None = None  # the user trigger

    @property
    def writes_no_file(self) -> str | None:
        """The flag for which a dump on demand leaves nothing."""
        useless = (self.flags or frozenset()) & {"log_only", "faulted_contexts_only"}
        return min(useless, default=None)

    @property
    def skips_memory(self) -> bool:
        """Whether GPU memory is known to be left out; if not, a dump is as large as it."""
        return self.flags is not None and "skip_global_memory" in self.flags

    @property
    def to_a_command(self) -> bool:
        """Whether dumps go into a command: no file of it can be watched."""
        return bool(self.file and self.file.lstrip().startswith("|"))


def cuda_settings(
    environments: Iterable[Mapping[str, str] | None], arguments: Sequence[str]
) -> CudaSettings:
    """From the environments that can be read, the process's own first, and its server's arguments.

    A variable of the environment goes before what SGLang would set for ``--crash-dump-folder``.
    """
    given = list(environments)
    known: dict[str, str] = {}
    for environment in [*given, _of_crash_folder(arguments)]:
        known = {**(environment or {}), **known}
    enabled = known.get(ENABLE)
    own_is_readable = bool(given) and given[0] is not None
    return CudaSettings(
        pipe=known.get(_PIPE),
        file=known.get(_FILE),
        flags=_flags(known),
        enabled=enabled == "1" if enabled is not None or own_is_readable else None,
    )


def _flags(known: Mapping[str, str]) -> frozenset[str] | None:
    flags = {flag.strip() for flag in known.get(_FLAGS, "").split(",") if flag.strip()}
    if known.get(_LIGHT) == "1":
        flags.add("skip_global_memory")
    return frozenset(flags) if flags or _FLAGS in known else None


def _of_crash_folder(arguments: Sequence[str]) -> dict[str, str]:
    """What ``--crash-dump-folder`` makes SGLang set at run time, where no environment shows it."""
    folder = _value_of("--crash-dump-folder", arguments)
    if not folder:
        return {}
    return {
        ENABLE: "1",
        _PIPE: SGLANG_PIPE,
        _FILE: f"{folder.rstrip('/')}/%h/core.cuda.%t.%p",
        _FLAGS: "skip_nonrelocated_elf_images,skip_global_memory,skip_shared_memory,"
        "skip_local_memory,skip_constbank_memory",
    }


def _value_of(flag: str, arguments: Sequence[str]) -> str | None:
    for argument, following in pairwise([*arguments, ""]):
        if argument == flag:
            return following
        if argument.startswith(f"{flag}="):
            return argument.removeprefix(f"{flag}=")
    return None


def name_pattern(template: str, *, host: str | None, pid: int) -> re.Pattern[str]:
    """What the last part of *template* becomes: %p is *pid*, %h *host* (any if None), %t digits."""
    name = PurePosixPath(template).name
    fixed = _WORDS.split(name)
    words = _WORDS.findall(name)
    host_pattern = re.escape(host) if host else r"[^/]+"
    values = {"%h": host_pattern, "%p": str(pid), "%t": r"\d+"}
    filled = [re.escape(fixed[0])]
    for word, after in zip(words, fixed[1:], strict=True):
        filled += [values[word], re.escape(after)]
    return re.compile("".join(filled))


def path_of(template: str, *, host: str | None, pid: int) -> str | None:
    """The path that *template* means; None where it holds a time, or a host that is not known."""
    if "%t" in template or ("%h" in template and host is None):
        return None
    return template.replace("%h", host or "").replace("%p", str(pid))


def folder_of(template: str, *, host: str | None, pid: int) -> str | None:
    """The folder in which *template* puts its file, as ``path_of`` tells it; "" is the present."""
    folder = str(PurePosixPath(template).parent)
    return path_of("" if folder == "." else folder, host=host, pid=pid)
