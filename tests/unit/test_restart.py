from dataclasses import replace

import pytest

from app.domain.crash_dump import ServerFacts, crash_dump, crash_path_seconds, version_of
from app.domain.restart import Ending, restart

READY = ServerFacts(
    engine="sglang",
    pid=700,
    port=30000,
    version=(0, 5, 23),
    crash_dump_folder="/dumps",
    rust_ingress=False,
    state="S",
)


def ending(facts: ServerFacts, how: str) -> Ending:
    return next(one for one in restart(facts).endings if one.how == how)


@pytest.mark.parametrize(
    ("facts", "ready", "word"),
    [
        pytest.param(READY, True, "/dumps", id="folder-set"),
        pytest.param(replace(READY, engine="vllm"), None, "vLLM", id="another-engine"),
        pytest.param(replace(READY, rust_ingress=True), False, "Rust", id="rust-ingress"),
        pytest.param(replace(READY, rust_ingress=None), None, "Rust", id="ingress-unknown"),
        pytest.param(replace(READY, node_rank=1), False, "node rank 1", id="second-node"),
        pytest.param(replace(READY, tokenizer_workers=4), False, "4 tokenizer", id="tokenizers"),
        pytest.param(replace(READY, state="T"), False, "stopped", id="root-stopped"),
        pytest.param(replace(READY, starting=True), False, "starting", id="starting"),
        pytest.param(replace(READY, version=(0, 5, 5)), None, "HOSTNAME", id="before-0.5.7"),
        pytest.param(
            replace(READY, crash_dump_folder=None, command_line_known=False),
            None,
            "cannot be read",
            id="command-line-unknown",
        ),
        pytest.param(
            replace(READY, crash_dump_folder=None), False, "--crash-dump-folder", id="no-folder"
        ),
    ],
)
def test_whether_a_crash_saves_the_requests(
    facts: ServerFacts, ready: bool | None, word: str
) -> None:
    outlook = crash_dump(facts)
    assert outlook.ready is ready
    assert word in outlook.says
    assert (outlook.fix is not None) is (ready is False)


def test_a_folder_that_is_missing_can_be_set_while_the_server_runs() -> None:
    outlook = crash_dump(replace(READY, crash_dump_folder=None))
    assert outlook.command is not None
    assert "127.0.0.1:30000/configure_logging" in outlook.command


def test_an_old_version_takes_a_folder_at_its_start_only() -> None:
    outlook = crash_dump(replace(READY, crash_dump_folder=None, version=(0, 4, 9)))
    assert outlook.command is not None
    assert outlook.command.startswith("incident-console launch-env")


def test_sigquit_saves_requests_and_stacks_where_all_is_set_up() -> None:
    said = ending(READY, "SIGQUIT")
    assert said.command == "kill -QUIT 700"
    assert any("last 5 min" in line and "/dumps" in line for line in said.saves)
    assert any("py-spy" in line for line in said.saves)
    assert any("blocked loop" in line for line in said.unknown)


def test_sigkill_saves_nothing_that_is_not_on_disk() -> None:
    said = ending(READY, "SIGKILL")
    assert len(said.saves) == 1
    assert any("no crash dump" in line for line in said.loses)


@pytest.mark.parametrize(
    ("facts", "where"),
    [
        pytest.param(replace(READY, version=(0, 5, 12)), "saves", id="up-to-0.5.12"),
        pytest.param(READY, "loses", id="since-0.5.13"),
        pytest.param(replace(READY, version=None), "unknown", id="version-unknown"),
        pytest.param(
            replace(READY, version=(0, 5, 12), crash_dump_folder=None), "loses", id="no-folder"
        ),
    ],
)
def test_a_drain_ends_with_a_crash_dump_in_old_versions_only(
    facts: ServerFacts, where: str
) -> None:
    said = ending(facts, "SIGTERM")
    told = {"saves": said.saves, "loses": said.loses, "unknown": said.unknown}
    found = [
        name
        for name, lines in told.items()
        if any(
            "drain" in line and "crash dump" in line and "unhealthy" not in line for line in lines
        )
    ]
    assert found == [where]


@pytest.mark.parametrize(
    ("grace", "version", "said"),
    [
        pytest.param(30.0, (0, 5, 23), True, id="thirty-seconds-cut-the-crash-path-off"),
        pytest.param(30.0, (0, 5, 12), False, id="enough-without-diagnostics"),
        pytest.param(90.0, (0, 5, 23), False, id="ninety-seconds-do"),
        pytest.param(30.0, None, True, id="version-unknown-is-taken-for-new"),
        pytest.param(None, (0, 5, 23), False, id="grace-unknown"),
    ],
)
def test_a_short_grace_period_is_a_loss(
    grace: float | None, version: tuple[int, int, int] | None, said: bool
) -> None:
    loses = ending(replace(READY, grace_seconds=grace, version=version), "SIGTERM").loses
    assert any("supervisor sends SIGKILL" in line for line in loses) is said


@pytest.mark.parametrize(
    ("facts", "words"),
    [
        pytest.param(READY, "SIGQUIT rather than SIGKILL, and leave it at least 65 s", id="ready"),
        pytest.param(
            replace(READY, rust_ingress=True),
            "No signal saves the requests: the Rust ingress",
            id="rust",
        ),
        pytest.param(replace(READY, state="T"), "wait until it runs again", id="stopped"),
        pytest.param(replace(READY, engine="vllm"), "not known", id="vllm"),
        pytest.param(
            replace(READY, rust_ingress=None),
            "Whether that saves the requests is not known",
            id="ingress-unknown",
        ),
    ],
)
def test_the_advice_begins_with_stacks(facts: ServerFacts, words: str) -> None:
    advice = restart(facts).advice
    assert advice.startswith("Take stacks and host facts first.")
    assert words in advice


def test_nothing_is_claimed_of_another_engine() -> None:
    assert any("vLLM" in line for line in ending(replace(READY, engine="vllm"), "SIGQUIT").unknown)
    assert not any(
        "drain" in line for line in ending(replace(READY, engine="vllm"), "SIGTERM").loses
    )


@pytest.mark.parametrize(
    ("text", "version"),
    [("0.5.23", (0, 5, 23)), ("0.4.6.post5", (0, 4, 6)), ("unknown", None), ("", None)],
)
def test_a_version_is_compared_by_its_three_numbers(
    text: str, version: tuple[int, int, int] | None
) -> None:
    assert version_of(text) == version


def test_old_versions_end_sooner() -> None:
    assert crash_path_seconds((0, 5, 12)) < crash_path_seconds(None) == 65
