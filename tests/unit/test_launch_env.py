import pytest

from app.domain.existing_env import existing_environment, existing_flags
from app.domain.launch_env import LaunchEnv, launch_env

VERSION = (0, 5, 23)
DRIVER = {
    "CUDA_ENABLE_COREDUMP_ON_EXCEPTION",
    "CUDA_ENABLE_USER_TRIGGERED_COREDUMP",
    "CUDA_COREDUMP_SHOW_PROGRESS",
    "CUDA_COREDUMP_GENERATION_FLAGS",
    "CUDA_COREDUMP_FILE",
    "CUDA_COREDUMP_PIPE",
}


def of(
    existing: dict[str, str] | None = None,
    flags: dict[str, str | bool] | None = None,
    *,
    folder: str = "/dumps",
    version: tuple[int, int, int] | None = VERSION,
) -> LaunchEnv:
    return launch_env(folder, existing or {}, flags or {}, version=version, host="gpu-a")


def test_from_nothing_everything_is_set() -> None:
    made = of()
    assert set(made.exports) >= DRIVER | {"SPT_NOENV", "TORCH_NCCL_DEBUG_INFO_PIPE_FILE"}
    assert made.flags == ("--crash-dump-folder /dumps", "--enable-metrics")
    assert made.folders == ("/dumps", "/dumps/gpu-a", "/tmp")
    assert made.kept == {}


def test_what_is_set_is_kept_and_never_set_again() -> None:
    existing = {"CUDA_COREDUMP_FILE": "/mine/core.%p", "CUDA_ENABLE_USER_TRIGGERED_COREDUMP": "0"}
    made = of(existing, {"--crash-dump-folder": "/other", "--enable-metrics": True})
    assert made.kept == existing
    assert not set(existing) & set(made.exports)
    assert made.flags == ()
    assert made.folders[:3] == ("/dumps", "/other", "/mine")


def test_a_newer_name_of_a_variable_counts_as_set() -> None:
    made = of({"TORCH_FR_BUFFER_SIZE": "500"})
    assert "TORCH_NCCL_TRACE_BUFFER_SIZE" not in made.exports
    assert made.kept == {"TORCH_FR_BUFFER_SIZE": "500"}


def test_secrets_of_the_environment_are_not_repeated() -> None:
    made = of({"HF_TOKEN": "hf_secret", "NCCL_DEBUG": "INFO"})
    assert made.kept == {}
    assert "hf_secret" not in repr(made)


@pytest.mark.parametrize(
    ("existing", "words"),
    [
        pytest.param({"CUDA_COREDUMP_FILE": "/d/%p/core"}, "% other than %h", id="percent-p"),
        pytest.param({"CUDA_COREDUMP_FILE": "| gzip > /d/x"}, "is a command", id="command"),
        pytest.param({"CUDA_COREDUMP_FILE": "core.%p"}, "FILE is relative", id="relative-file"),
        pytest.param({"CUDA_COREDUMP_PIPE": "/tmp/p.%t.%p"}, "has %t", id="time-in-pipe"),
        pytest.param({"CUDA_COREDUMP_PIPE": "/tmp/p"}, "has no %p", id="one-pipe-for-all"),
        pytest.param(
            {"CUDA_COREDUMP_GENERATION_FLAGS": "log_only"}, "log_only: a hang", id="log-only"
        ),
        pytest.param(
            {"CUDA_COREDUMP_GENERATION_FLAGS": "skip_global_memory, faulted_contexts_only"},
            "faulted_contexts_only: a hang",
            id="faulted-only",
        ),
        pytest.param({"CUDA_COREDUMP_GENERATION_FLAGS": "gzip_compress"}, ".gz", id="gzip"),
        pytest.param(
            {"CUDA_COREDUMP_GENERATION_FLAGS": "skip_abort"}, "run on", id="abort-skipped"
        ),
        pytest.param(
            {"CUDA_COREDUMP_GENERATION_FLAGS": "skip_everything"}, "ignore it", id="unknown-flag"
        ),
        pytest.param(
            {"CUDA_COREDUMP_GENERATION_FLAGS": ""}, "as large as the GPU memory", id="whole-memory"
        ),
        pytest.param(
            {"CUDA_ENABLE_USER_TRIGGERED_COREDUMP": "0"}, "no coredump of a hang", id="trigger-off"
        ),
        pytest.param({"CUDA_ENABLE_LIGHTWEIGHT_COREDUMP": "1"}, "deprecated", id="deprecated"),
        pytest.param({"CUDA_DEVICE_WAITS_ON_EXCEPTION": "1"}, "waits", id="waits-for-debugger"),
        pytest.param({"TORCH_FR_BUFFER_SIZE": "0"}, "no collectives", id="recorder-off"),
        pytest.param({"NCCL_RAS_ENABLE": "0"}, "NCCL_RAS_ENABLE is off", id="ras-off"),
        pytest.param({"SGLANG_RUST_SERVER": "1"}, "Rust ingress", id="rust"),
        pytest.param({"SGLANG_CUDA_COREDUMP": "1"}, "these win", id="other-switch"),
        pytest.param(
            {"CUDA_ENABLE_COREDUMP_ON_EXCEPTION": "0"}, "a GPU fault leaves no dump", id="fault"
        ),
        pytest.param({"CUDA_COREDUMP_PIPE": "pipe.%p"}, "PIPE is relative", id="relative-pipe"),
        pytest.param(
            {"SGLANG_PYSPY_DUMP_BEFORE_CRASH": "false"}, "leaves no stacks", id="no-py-spy"
        ),
        pytest.param(
            {"SGLANG_CUDA_COREDUMP_BEFORE_CRASH": "0"}, "triggers no coredump", id="no-trigger"
        ),
        pytest.param({}, "costs speed", id="cost"),
        pytest.param({}, "TimeoutStopSec", id="grace-period"),
    ],
)
def test_what_leaves_less_than_expected_is_told(existing: dict[str, str], words: str) -> None:
    told = [line for line in of(existing).warnings if words in line]
    assert len(told) == 1


def test_several_tokenizers_are_told() -> None:
    made = of(flags={"--tokenizer-worker-num": "4"})
    assert any(line.startswith("--tokenizer-worker-num 4") for line in made.warnings)


def test_without_dumps_of_faults_there_is_no_cost() -> None:
    made = of({"CUDA_ENABLE_COREDUMP_ON_EXCEPTION": "0"})
    assert not any("costs speed" in line for line in made.warnings)


def test_a_default_start_is_told_of_nothing_but_its_cost_and_its_limits() -> None:
    assert len(of().warnings) == 3


def test_a_folder_with_a_percent_sign_is_told() -> None:
    assert any("/d%p" in line for line in of(folder="/d%p").warnings)


@pytest.mark.parametrize(
    ("version", "existing", "flag", "words"),
    [
        pytest.param((0, 4, 8), {}, False, "Before 0.4.9", id="no-flag-yet"),
        pytest.param((0, 5, 5), {}, True, "HOSTNAME", id="host-name-not-exported"),
        pytest.param((0, 5, 5), {"HOSTNAME": "h"}, True, "takes no stacks", id="no-diagnostics"),
        pytest.param(None, {}, True, "is not known", id="version-unknown"),
    ],
)
def test_the_version_decides_about_the_flag(
    version: tuple[int, int, int] | None, existing: dict[str, str], flag: bool, words: str
) -> None:
    made = of(existing, version=version)
    assert ("--crash-dump-folder /dumps" in made.flags) is flag
    assert any(words in line for line in made.warnings)


@pytest.mark.parametrize(
    ("text", "variables"),
    [
        pytest.param("A=1\nB='two words'\n", {"A": "1", "B": "two words"}, id="dot-env"),
        pytest.param('export A="x y" # why\n# B=2\n', {"A": "x y"}, id="shell"),
        pytest.param("docker run -e A=1 --env B=2 image\n", {"A": "1", "B": "2"}, id="docker-run"),
        pytest.param("ENV A=1\n", {"A": "1"}, id="dockerfile"),
        pytest.param("[Service]\nEnvironment=A=1\n", {"A": "1"}, id="systemd"),
        pytest.param("environment:\n  - A=1\n  - B=2\n", {"A": "1", "B": "2"}, id="compose"),
        pytest.param(
            'env:\n- name: A\n  value: "1"\n- name: B\n  valueFrom: {}\n- name: C\n  value: c\n',
            {"A": "1", "C": "c"},
            id="kubernetes",
        ),
        pytest.param('[{"name": "A", "value": "1"}]', {"A": "1"}, id="kubernetes-json"),
        pytest.param('["A=1", "B=x=y"]', {"A": "1", "B": "x=y"}, id="docker-inspect"),
        pytest.param('{"A": "1"}', {"A": "1"}, id="json-object"),
        pytest.param("A=1\0B=2\0", {"A": "1", "B": "2"}, id="proc-environ"),
        pytest.param(
            "A=1 B=2 python -m sglang.launch_server --x C=3", {"A": "1", "B": "2"}, id="prefix"
        ),
        pytest.param("", {}, id="empty"),
        pytest.param("A='unclosed\n", {"A": "'unclosed"}, id="odd-quotes"),
    ],
)
def test_an_environment_is_read_as_people_keep_it(text: str, variables: dict[str, str]) -> None:
    assert existing_environment(text) == variables


def test_flags_are_read_over_broken_lines() -> None:
    text = "set -e\npython -m sglang.launch_server --tp 2 \\\n  --crash-dump-folder /d\n"
    assert existing_flags(text) == {"--tp-size": "2", "--crash-dump-folder": "/d"}
    assert existing_flags("python -m http.server --bind x") == {}
