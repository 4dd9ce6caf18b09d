"""What of an environment and a command line would leave less evidence than one expects."""

from collections.abc import Iterator, Mapping
from itertools import chain

from app.domain.crash_dump import CRASH_PATH_SECONDS

Variables = Mapping[str, str]
Flags = Mapping[str, str | bool]

# CUDA driver API, "Coredump Attributes Control"; what a driver does not know it ignores.
_GENERATION_FLAGS = frozenset(
    """
    skip_nonrelocated_elf_images skip_global_memory skip_shared_memory skip_local_memory
    skip_abort skip_constbank_memory gzip_compress faulted_contexts_only no_errbar_at_exit log_only
    """.split()  # noqa: SIM905  (a word list reads best as words)
)
USELESS_ON_A_HANG = ("log_only", "faulted_contexts_only")
_ON = ("1", "true", "yes", "on")
_OFF = ("0", "false", "no", "off")
_DEPRECATED = ("CUDA_ENABLE_LIGHTWEIGHT_COREDUMP", "CUDA_ENABLE_CPU_COREDUMP_ON_EXCEPTION")


def generation_flags(variables: Variables) -> list[str]:
    """What CUDA_COREDUMP_GENERATION_FLAGS lists, in its order; [] where it is not set."""
    listed = variables.get("CUDA_COREDUMP_GENERATION_FLAGS", "")
    return [flag for part in listed.split(",") if (flag := part.strip().lower())]


def goes_to_a_command(template: str | None) -> bool:
    """Whether CUDA_COREDUMP_FILE is a shell command that eats the dump."""
    return template is not None and template.lstrip().startswith("|")


def warnings_of(
    folder: str, existing: Variables, effective: Variables, flags: Flags
) -> tuple[str, ...]:
    """One sentence for each; *existing* is what was set before, *effective* what will be."""
    return tuple(
        chain(
            _of_switches(existing),
            _of_content(effective),
            _of_file(effective),
            _of_pipe(effective),
            _of_percent_signs(folder, effective),
            _of_recorder(existing, effective),
            _of_server(existing, flags),
            _of_cost(effective),
        )
    )


def _of_switches(existing: Variables) -> Iterator[str]:
    if _is_off(existing, "CUDA_ENABLE_USER_TRIGGERED_COREDUMP"):
        yield (
            "CUDA_ENABLE_USER_TRIGGERED_COREDUMP is off and stays so: no coredump of a hang can"
            " be had."
        )
    if _is_off(existing, "CUDA_ENABLE_COREDUMP_ON_EXCEPTION"):
        yield "CUDA_ENABLE_COREDUMP_ON_EXCEPTION is off and stays so: a GPU fault leaves no dump."
    if _is_on(existing, "CUDA_DEVICE_WAITS_ON_EXCEPTION"):
        yield (
            "CUDA_DEVICE_WAITS_ON_EXCEPTION is on: after a fault the GPU waits for a debugger"
            " instead of writing a file."
        )
    for name in _DEPRECATED:
        if name in existing:
            yield f"{name} is deprecated since CUDA 12.5: CUDA_COREDUMP_GENERATION_FLAGS instead."
    if _is_on(existing, "SGLANG_CUDA_COREDUMP"):
        yield (
            "SGLANG_CUDA_COREDUMP is on: it chooses file and flags only where the variables here"
            " are not set; these win."
        )
    if _is_off(existing, "NCCL_RAS_ENABLE"):
        yield "NCCL_RAS_ENABLE is off and stays so: NCCL's own view of a hang cannot be asked."


def _of_content(effective: Variables) -> Iterator[str]:
    listed = generation_flags(effective)
    for flag in USELESS_ON_A_HANG:
        if flag in listed:
            yield f"Coredump flag {flag}: a hang leaves no usable file."
    if "skip_abort" in listed:
        yield "Coredump flag skip_abort: the process may run on after an illegal access."
    if "gzip_compress" in listed:
        yield (
            "Coredump flag gzip_compress: the file gets .gz, and whether it is whole can be told"
            " only at its end."
        )
    if "skip_global_memory" not in listed and "log_only" not in listed:
        yield (
            "No coredump flag skip_global_memory: a dump is as large as the GPU memory in use,"
            " and holds model and user data."
        )
    for flag in listed:
        if flag not in _GENERATION_FLAGS:
            yield f"Coredump flag {flag!a} is not a known one: drivers ignore it."


def _of_file(effective: Variables) -> Iterator[str]:
    template = effective.get("CUDA_COREDUMP_FILE", "")
    if goes_to_a_command(template):
        yield "CUDA_COREDUMP_FILE is a command: where its dump goes cannot be told from outside."
    elif not template.startswith("/"):
        yield "CUDA_COREDUMP_FILE is relative: it lands in the directory that the server is in."


def _of_pipe(effective: Variables) -> Iterator[str]:
    template = effective.get("CUDA_COREDUMP_PIPE", "")
    if not template.startswith("/"):
        yield "CUDA_COREDUMP_PIPE is relative: only its open descriptor can be found for certain."
    if "%p" not in template:
        yield "CUDA_COREDUMP_PIPE has no %p: the ranks of a host get one and the same pipe."
    if "%t" in template:
        yield "CUDA_COREDUMP_PIPE has %t: SGLang's own trigger never finds it; the agent does."


def _of_percent_signs(folder: str, effective: Variables) -> Iterator[str]:
    if "%" in folder:
        yield f"{folder} has a % sign: the driver takes %h, %p and %t in it for its own."
    parent = effective.get("CUDA_COREDUMP_FILE", "").rpartition("/")[0]
    if "%" in parent.replace("%h", "") and not goes_to_a_command(parent):
        yield (
            "The folder of CUDA_COREDUMP_FILE has a % other than %h: nobody can make it before,"
            " and the driver makes no folder, so no dump is written."
        )


def _of_recorder(existing: Variables, effective: Variables) -> Iterator[str]:
    for name in ("TORCH_NCCL_TRACE_BUFFER_SIZE", "TORCH_FR_BUFFER_SIZE"):
        if existing.get(name, "").strip() == "0":
            yield f"{name} is 0 and stays so: torch records no collectives."
    if effective.get("TORCH_NCCL_DEBUG_INFO_PIPE_FILE"):
        yield (
            "Two servers of one host need two folders: the second one would take over the"
            " flight-recorder pipes of the first."
        )


def _of_server(existing: Variables, flags: Flags) -> Iterator[str]:
    if _is_on(existing, "SGLANG_RUST_SERVER"):
        yield "SGLANG_RUST_SERVER is on: the Rust ingress writes no crash dump, whatever is set."
    workers = flags.get("--tokenizer-worker-num")
    if isinstance(workers, str) and workers.isdigit() and int(workers) > 1:
        yield f"--tokenizer-worker-num {workers}: SIGQUIT to the main process writes no crash dump."
    if _is_off(existing, "SGLANG_PYSPY_DUMP_BEFORE_CRASH"):
        yield "SGLANG_PYSPY_DUMP_BEFORE_CRASH is off and stays so: a crash leaves no stacks."
    if _is_off(existing, "SGLANG_CUDA_COREDUMP_BEFORE_CRASH"):
        yield "SGLANG_CUDA_COREDUMP_BEFORE_CRASH is off and stays so: a crash triggers no coredump."
    yield (
        f"A crash takes {CRASH_PATH_SECONDS} s: terminationGracePeriodSeconds, TimeoutStopSec or"
        " docker stop -t must be longer, 90 s for example."
    )


def _of_cost(effective: Variables) -> Iterator[str]:
    if _is_on(effective, "CUDA_ENABLE_COREDUMP_ON_EXCEPTION"):
        yield (
            "CUDA_ENABLE_COREDUMP_ON_EXCEPTION costs speed even without a fault: measure it before"
            " production, or set it to 0 and keep the user trigger."
        )


def _is_on(variables: Variables, name: str) -> bool:
    return variables.get(name, "").strip().lower() in _ON


def _is_off(variables: Variables, name: str) -> bool:
    return variables.get(name, "").strip().lower() in _OFF
