"""The command lines that a page shows, and what of them a person has to fill in."""

import shlex
from dataclasses import replace

import pytest

from app.domain.replay.bisecting import BisectSettings, checked, readme, with_free_port
from app.domain.replay.command_lines import Known, bisect_line, check_of, reduce_line
from app.errors import Rejected

KNOWN = Known("dump.pkl", "http://127.0.0.1:30000", "crash")


def test_what_is_known_stands_in_the_line_and_the_rest_in_capitals() -> None:
    line = reduce_line(replace(KNOWN, selection="0:3,7", with_token=True))

    assert line.text == (
        "incident-console reduce dump.pkl --base-url http://127.0.0.1:30000 --select 0:3,7"
        " --check 'curl -fsS -o /dev/null --max-time 30 http://127.0.0.1:30000/health'"
        " --restart RESTART --token-env TARGET_TOKEN --out smallest.jsonl"
    )
    assert line.fill_in == ("RESTART",)


def test_a_line_is_taken_by_a_shell_as_it_is_meant() -> None:
    known = replace(KNOWN, file="-a dump.pkl", selection="-rid='a' $HOME; b")

    words = shlex.split(reduce_line(known).text)

    assert words[2] == "./-a dump.pkl"
    assert "--select=-rid='a' $HOME; b" in words


def test_no_check_is_made_up_for_what_only_a_person_can_judge() -> None:
    assert check_of("output", "http://h") is None
    assert reduce_line(replace(KNOWN, symptom="output")).fill_in == ("CHECK", "RESTART")


@pytest.mark.parametrize(
    ("known", "ends", "fill_in"),
    [
        pytest.param(
            KNOWN,
            "--bad BAD_REV --checkout CHECKOUT --launch LAUNCH --symptom crash --out bisect",
            ("GOOD_REV", "BAD_REV", "CHECKOUT", "LAUNCH"),
            id="crash",
        ),
        pytest.param(
            replace(KNOWN, symptom="latency"),
            "--symptom latency --latency-seconds SECONDS --out bisect",
            ("GOOD_REV", "BAD_REV", "CHECKOUT", "LAUNCH", "SECONDS"),
            id="latency",
        ),
        pytest.param(
            replace(KNOWN, symptom="output", selection="0:3"),
            "--symptom output --select 0:3 --right-output PATTERN --out bisect",
            ("GOOD_REV", "BAD_REV", "CHECKOUT", "LAUNCH", "PATTERN"),
            id="output",
        ),
        pytest.param(
            replace(KNOWN, symptom=None),
            "--launch LAUNCH --check CHECK --out bisect",
            ("GOOD_REV", "BAD_REV", "CHECKOUT", "LAUNCH", "CHECK"),
            id="no symptom to be looked for",
        ),
    ],
)
def test_a_bisection_is_begun_with_what_is_known(
    known: Known, ends: str, fill_in: tuple[str, ...]
) -> None:
    line = bisect_line(known)

    assert line.text.endswith(ends)
    assert line.fill_in == fill_in


@pytest.mark.parametrize(
    ("launch", "with_port"),
    [
        ("serve {port}", "serve {port}"),
        ("serve --port=$PORT", "serve --port=$PORT"),
        ("serve --port 30000 --tp 2", "serve --port {port} --tp 2"),
        ("serve --port=30000", "serve --port={port}"),
        (
            "python -m sglang.launch_server --tp 2",
            "python -m sglang.launch_server --tp 2 --port {port}",
        ),
    ],
)
def test_each_commit_gets_a_port_of_its_own(launch: str, with_port: str) -> None:
    assert with_free_port(launch) == with_port


@pytest.mark.parametrize("launch", ["./serve.sh", "a --port 1 & b --port 2", "serve --port x"])
def test_a_port_is_not_guessed(launch: str) -> None:
    with pytest.raises(Rejected, match="which port"):
        with_free_port(launch)


SETTINGS = BisectSettings("/src", "a" * 40, "b" * 40, "serve {port}")


@pytest.mark.parametrize(
    ("settings", "says"),
    [
        (replace(SETTINGS, symptom="check"), "--check"),
        (replace(SETTINGS, symptom="latency"), "--latency-seconds"),
        (replace(SETTINGS, symptom="output"), "--right-output"),
        (replace(SETTINGS, symptom="output", right_output="("), "no regular expression"),
    ],
    ids=["check", "latency", "output", "pattern"],
)
def test_a_symptom_comes_with_what_it_is_judged_by(settings: BisectSettings, says: str) -> None:
    with pytest.raises(Rejected, match=says):
        checked(settings)


def test_the_readme_says_what_happens_at_each_commit() -> None:
    text = readme(replace(SETTINGS, setup="make", runs=3, port=30001), 2)

    assert "runs `make`, then starts the server on port 30001: `serve {port}`" in text
    assert "sends the 2 requests in `requests.jsonl`, 3 times or until the symptom is seen" in text
    assert "the server ends, or refuses connections" in text
    assert "on a free port" in readme(SETTINGS, 2)
    assert "sends the 1 request in" in readme(SETTINGS, 1)
