import pytest

from app.domain.cuda_settings import CudaSettings, cuda_settings, folder_of, name_pattern, path_of

FOLDER = ["python", "-m", "sglang.launch_server", "--crash-dump-folder", "/dumps/"]


def test_nothing_is_known_where_every_environment_is_wiped() -> None:
    assert cuda_settings([None, None], ["python"]) == CudaSettings()


def test_a_readable_environment_without_the_variable_says_not_enabled() -> None:
    assert cuda_settings([{"PATH": "/bin"}], []).enabled is False
    assert cuda_settings([None, {"PATH": "/bin"}], []).enabled is None
    assert cuda_settings([{"CUDA_ENABLE_USER_TRIGGERED_COREDUMP": "1"}], []).enabled is True


def test_the_crash_folder_of_sglang_sets_what_no_environment_shows() -> None:
    found = cuda_settings([None], FOLDER)

    assert (found.enabled, found.skips_memory) == (True, True)
    assert found.file == "/dumps/%h/core.cuda.%t.%p"


def test_a_variable_of_the_process_goes_before_its_server_and_the_crash_folder() -> None:
    own, server = {"CUDA_COREDUMP_FILE": "own"}, {"CUDA_COREDUMP_FILE": "server"}

    assert cuda_settings([own, server], FOLDER).file == "own"
    assert cuda_settings([None, server], FOLDER).file == "server"
    assert cuda_settings([None], ["x", "--crash-dump-folder=/d"]).file == "/d/%h/core.cuda.%t.%p"


@pytest.mark.parametrize(
    ("told", "skips", "useless"),
    [
        pytest.param({}, False, None, id="unknown"),
        pytest.param({"CUDA_ENABLE_LIGHTWEIGHT_COREDUMP": "1"}, True, None, id="lightweight"),
        pytest.param(
            {"CUDA_COREDUMP_GENERATION_FLAGS": "skip_abort, log_only"}, False, "log_only", id="log"
        ),
        pytest.param(
            {"CUDA_COREDUMP_GENERATION_FLAGS": "skip_global_memory"}, True, None, id="no-memory"
        ),
    ],
)
def test_flags_tell_what_a_dump_would_hold(
    told: dict[str, str], skips: bool, useless: str | None
) -> None:
    found = cuda_settings([told], [])
    assert (found.skips_memory, found.writes_no_file) == (skips, useless)


@pytest.mark.parametrize(
    ("file", "command"), [("| gzip > f", True), (" |cat", True), ("a|b", False)]
)
def test_a_command_is_told_from_a_path(file: str, command: bool) -> None:
    assert CudaSettings(file=file).to_a_command is command


@pytest.mark.parametrize(
    ("template", "host", "name", "fits"),
    [
        ("/d/core.%h.%p", "a.b", "core.a.b.7", True),
        ("/d/core.%h.%p", "a.b", "core.aXb.7", False),
        ("/d/core.%h.%p", "a.b", "core.a.b.77", False),
        ("/d/core.%h.%p", None, "core.any.7", True),
        ("/d/core.%t", "a", "core.1772532000", True),
        ("/d/core.%t", "a", "core.x", False),
        ("/d/(.*)%p", "a", "(.*)7", True),
        ("/d/(.*)%p", "a", "x7", False),
    ],
)
def test_a_template_fits_the_names_that_the_driver_would_make(
    template: str, host: str | None, name: str, fits: bool
) -> None:
    found = name_pattern(template, host=host, pid=7).fullmatch(name)
    assert (found is not None) is fits


@pytest.mark.parametrize(
    ("template", "host", "path", "folder"),
    [
        ("/d/%h/core.%p", "a", "/d/a/core.7", "/d/a"),
        ("/d/%h/core.%p", None, None, None),
        ("/d/core.%t", "a", None, "/d"),
        ("core.%p", "a", "core.7", ""),
        ("x/core.%p", None, "x/core.7", "x"),
    ],
)
def test_a_template_means_one_path_unless_it_holds_what_is_not_known(
    template: str, host: str | None, path: str | None, folder: str | None
) -> None:
    assert path_of(template, host=host, pid=7) == path
    assert folder_of(template, host=host, pid=7) == folder
