"""Environment and flags for the next start, so that the next crash or hang leaves evidence.

What is set already is kept as it is: somebody had a reason. Variables of the CUDA driver: CUDA-GDB
manual, "GPU core dump support"; of torch: ProcessGroupNCCL.hpp; of SGLang: 0.4.6 to 0.5.23.
"""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass

from app.domain.crash_dump import DIAGNOSTICS_SINCE, FLAG_SINCE, HOST_NAME_SINCE, Version
from app.domain.launch_warnings import warnings_of

GENERATION_FLAGS = ",".join(
    f"skip_{part}"
    for part in (
        "nonrelocated_elf_images",
        "global_memory",
        "shared_memory",
        "local_memory",
        "constbank_memory",
    )
)
RECORDED_COLLECTIVES = "2000"  # a ring of the last calls of each rank

# One purpose, several names: what is set under one of them is set.
_NAMES = (
    ("TORCH_NCCL_TRACE_BUFFER_SIZE", "TORCH_FR_BUFFER_SIZE"),
    ("TORCH_NCCL_DEBUG_INFO_TEMP_FILE", "TORCH_FR_DUMP_TEMP_FILE"),
)


@dataclass(frozen=True, slots=True)
class LaunchEnv:
    """What to add, what stays, what to make before the start, and what to know."""

    exports: dict[str, str]
    flags: tuple[str, ...]
    kept: dict[str, str]  # set already, ours or the driver's; left as it is
    folders: tuple[str, ...]  # nobody else makes them
    warnings: tuple[str, ...]


def launch_env(
    folder: str,
    existing: Mapping[str, str],
    flags: Mapping[str, str | bool],
    *,
    version: Version | None = None,
    host: str,
) -> LaunchEnv:
    """What the next start needs to leave its evidence in *folder* (an absolute path).

    *existing* is its environment and *flags* its command line as they are, *version* that of
    SGLang, *host* what ``%h`` and ``$HOSTNAME`` will be.
    """
    wanted = _wanted(folder)
    kept = {name: existing[name] for name in _known(wanted) if name in existing}
    exports = {
        name: value
        for name, value in wanted.items()
        if not any(other in existing for other in _same(name))
    }
    effective = {**existing, **exports}
    return LaunchEnv(
        exports=exports,
        flags=tuple(_flags(folder, flags, version)),
        kept=kept,
        folders=tuple(dict.fromkeys(_folders(folder, effective, flags, host))),
        warnings=(
            *_warnings_of_version(version, existing),
            *warnings_of(folder, existing, effective, flags),
        ),
    )


def _wanted(folder: str) -> dict[str, str]:
    stem = f"{folder}/nccl_trace_rank_"
    return {
        "CUDA_ENABLE_COREDUMP_ON_EXCEPTION": "1",
        "CUDA_ENABLE_USER_TRIGGERED_COREDUMP": "1",
        "CUDA_COREDUMP_SHOW_PROGRESS": "1",
        "CUDA_COREDUMP_GENERATION_FLAGS": GENERATION_FLAGS,
        "CUDA_COREDUMP_FILE": f"{folder}/%h/core.cuda.%t.%p",
        "CUDA_COREDUMP_PIPE": "/tmp/corepipe.cuda.%h.%p",  # noqa: S108  (SGLang's own choice)
        "TORCH_NCCL_TRACE_BUFFER_SIZE": RECORDED_COLLECTIVES,
        "TORCH_NCCL_DUMP_ON_TIMEOUT": "1",
        "TORCH_NCCL_DEBUG_INFO_TEMP_FILE": stem,
        "TORCH_NCCL_DEBUG_INFO_PIPE_FILE": stem,
        "SPT_NOENV": "1",  # otherwise the title of a rank is written over its environment
    }


def _known(wanted: Mapping[str, str]) -> Iterator[str]:
    for name in wanted:
        yield from _same(name)


def _same(name: str) -> tuple[str, ...]:
    return next((names for names in _NAMES if name in names), (name,))


def _flags(folder: str, flags: Mapping[str, str | bool], version: Version | None) -> Iterator[str]:
    if "--crash-dump-folder" not in flags and (version is None or version >= FLAG_SINCE):
        yield f"--crash-dump-folder {folder}"
    if "--enable-metrics" not in flags:
        yield "--enable-metrics"


def _folders(
    folder: str, effective: Mapping[str, str], flags: Mapping[str, str | bool], host: str
) -> Iterator[str]:
    """*folder*, and what the driver and torch expect to find; the server makes only its own."""
    yield folder
    crash_folder = flags.get("--crash-dump-folder")
    if isinstance(crash_folder, str) and crash_folder.startswith("/"):
        yield crash_folder
    for name in ("CUDA_COREDUMP_FILE", "CUDA_COREDUMP_PIPE", "TORCH_NCCL_DEBUG_INFO_PIPE_FILE"):
        parent = effective.get(name, "").rpartition("/")[0].replace("%h", host)
        if parent.startswith("/") and "%" not in parent:
            yield parent


def _warnings_of_version(version: Version | None, existing: Mapping[str, str]) -> Iterator[str]:
    if version is None:
        yield (
            "The version of SGLang is not known: --crash-dump-folder exists since 0.4.9; before"
            " that it is an unknown flag and the server does not start."
        )
        return
    if version < FLAG_SINCE:
        yield "Before 0.4.9 there is no --crash-dump-folder: the requests of a crash are lost."
    elif version < HOST_NAME_SINCE and not existing.get("HOSTNAME"):
        yield "Up to 0.5.5 no crash dump is written where HOSTNAME is not exported: export it."
    if version < DIAGNOSTICS_SINCE:
        yield (
            "Before 0.5.13 the server takes no stacks and no coredump before it ends: take them"
            " from outside while it hangs."
        )
