"""``reduce`` as a process of its own, on a target that really dies and is really started anew."""

import os
import pty
import shlex
import signal
import subprocess
import sys
from dataclasses import replace
from pathlib import Path
from typing import Any

import orjson
import psutil
import pytest

from tests.integration.reducing import CHECK, ENVIRONMENT, Scene, requests, scene
from tests.waiting import until

pytestmark = pytest.mark.slow


def document(done: "subprocess.CompletedProcess[bytes]") -> dict[str, Any]:
    assert done.returncode == 0, done.stderr.decode()
    told: dict[str, Any] = orjson.loads(done.stdout)
    return told


def texts(made: Scene) -> list[str]:
    return [line["payload"]["text"] for line in made.smallest()]


def test_a_planted_crasher_among_500_is_found_and_cut_short(tmp_path: Path) -> None:
    requests(tmp_path, words=40)
    with scene(tmp_path, 343, least=100) as made:
        told = document(made.reduce())

    assert told["smallest"] == 1
    assert told["kept"] == [
        {
            "index": 343,
            "rid": None,
            "prompt": {"from": 206, "to": 100},
            "max_new_tokens": {"from": 64, "to": 1},
        }
    ]
    assert told["probes"] <= 40
    assert (told["complete"], told["again"], told["target_died"]) == (
        True,
        {"failed": 2, "of": 2},
        True,
    )
    assert [line["payload"]["sampling_params"] for line in made.smallest()] == [
        {"max_new_tokens": 1}
    ]
    assert "--symptom crash" in told["next"][0]


def test_a_planted_pair_among_500_is_found_though_the_target_remembers_what_it_was_sent(
    tmp_path: Path,
) -> None:
    with scene(tmp_path, 17, 402) as made:
        told = document(made.reduce(restart=made.supervised))
        starts = made.starts()

    assert told["select"] == "17,402"
    assert told["probes"] <= 150
    assert [text[:5] for text in texts(made)] == ["#17#", "#402#"]
    assert starts >= len(made.steps("fresh"))


def test_the_curl_script_brings_the_fault_about_by_itself(tmp_path: Path) -> None:
    requests(tmp_path, total=8)
    with scene(tmp_path, 5) as made:
        told = document(made.reduce())
        with subprocess.Popen(made.launch) as target:
            until(lambda: is_well(made))

            subprocess.run([told["files"]["curl"]], capture_output=True, timeout=60, check=False)

            assert target.wait(60) == 9


def test_a_target_that_hangs_is_ended_and_started_anew(tmp_path: Path) -> None:
    requests(tmp_path, total=3)
    with scene(tmp_path, 1, kind="hang") as made:
        quick = ["--check", f"{CHECK} 2", "--request-seconds", "3", "--max-probes", "5"]
        told = document(made.reduce(*quick))

    assert (told["select"], told["target_died"]) == ("1", False)
    assert "--check CHECK" in told["next"][0]  # nothing here says how a commit is to be checked


def test_killed_in_the_middle_it_goes_on_from_there_and_leaves_no_target(tmp_path: Path) -> None:
    with scene(tmp_path, 343) as made:
        with subprocess.Popen(made.command(), env=ENVIRONMENT, stderr=subprocess.PIPE) as first:
            until(lambda: len(made.steps("verdict")) >= 4)
            first.kill()
        until(lambda: targets(made) == [])
        before = made.steps("verdict")

        told = document(made.reduce())

    known = {line["requests"] for line in before}
    asked_again = [line for line in made.steps("run")[-told["runs"] :] if line["requests"] in known]
    assert told["select"] == "343"
    assert told["probes"] == len(made.steps("verdict"))
    assert asked_again == []


@pytest.mark.parametrize(
    "sign",
    [signal.SIGINT, signal.SIGTERM, signal.SIGHUP],
    ids=["Ctrl-C", "SIGTERM", "the terminal is closed"],
)
def test_stopped_by_hand_it_keeps_the_smallest_so_far_and_ends_the_target(
    tmp_path: Path, sign: signal.Signals
) -> None:
    with scene(tmp_path, 343) as made:
        stubborn = ["sh", "-c", f"trap '' TERM; {shlex.join(made.launch)} & wait"]
        command = made.command(restart=stubborn)
        with subprocess.Popen(
            command, env=ENVIRONMENT, stdout=subprocess.PIPE, stderr=subprocess.PIPE
        ) as stopped:
            until(lambda: [one for one in made.steps("verdict") if one["says"] == "fails"][1:])
            stopped.send_signal(sign)
            until(lambda: made.steps("end"))
            stopped.send_signal(sign)  # an impatient person, while the target is being ended
            out, err = stopped.communicate(timeout=100)
        told = orjson.loads(out)

        assert stopped.returncode == 1
        assert "goes on from there" in err.decode()
        assert (told["complete"], told["why_stopped"]) == (False, "it was stopped by hand.")
        assert 1 <= len(made.smallest()) < 500
        assert targets(made) == []


def test_a_budget_that_is_used_up_ends_with_the_smallest_so_far(tmp_path: Path) -> None:
    with scene(tmp_path, 343) as made:
        told = document(made.reduce("--max-probes", "3"))

    assert (told["complete"], told["probes"], told["smallest"]) == (False, 3, 375)
    assert "as many as may be" in told["why_stopped"]
    assert len(made.smallest()) == 375


def test_requests_that_do_no_harm_are_no_smallest_set(tmp_path: Path) -> None:
    requests(tmp_path, total=8)
    with scene(tmp_path) as made:
        done = made.reduce()

        again = made.reduce()

    assert (done.returncode, again.returncode) == (1, 1)
    assert "did not bring the fault about" in done.stderr.decode()
    assert "--trials 10" in done.stderr.decode()
    assert orjson.loads(done.stdout)["smallest"] is None
    assert not made.out.exists()
    assert len(made.seen()) == 2 * 3 * 8  # all of them three times, and anew when asked again


def test_all_of_them_are_sent_up_to_three_times_before_nothing_is_found(tmp_path: Path) -> None:
    requests(tmp_path, total=8)
    with scene(tmp_path, 5, spares=2) as made:
        told = document(made.reduce())

    assert told["select"] == "5"
    assert [line["says"] for line in made.steps("run")][:3] == ["passes", "passes", "fails"]


def test_a_smallest_set_that_does_not_always_fail_is_said_to_be_perhaps_too_large(
    tmp_path: Path,
) -> None:
    requests(tmp_path, total=1)
    with scene(tmp_path, 0) as made:
        moody = tmp_path / "moody"
        # The baseline passes, the set fails twice, and then no more.
        moody.write_text(
            f"echo >> {moody}.times; n=$(wc -l < {moody}.times); test $n = 1 -o $n -gt 3"
        )
        command = made.command("--check", f"sh {moody}", restart=harmless(made).launch)
        done = subprocess.run(command, env=ENVIRONMENT, capture_output=True, check=False)

    told = document(done)
    assert told["again"] == {"failed": 0, "of": 2}
    assert "--trials 5" in told["says"]


@pytest.mark.parametrize(
    ("then", "says"),
    [
        pytest.param("exit 125", "the check ended with 125", id="cannot tell"),
        pytest.param("sleep 60", "the check did not end in time", id="hangs"),
    ],
)
def test_what_nobody_could_tell_is_said_to_be_so_and_tried_again_the_next_time(
    tmp_path: Path, then: str, says: str
) -> None:
    requests(tmp_path, total=8)
    check = tmp_path / "check"
    # The baseline passes.
    check.write_text(
        f"test -e {check}.ok && exec {CHECK}; test -e {check}.once && {then}; touch {check}.once"
    )
    with scene(tmp_path, 5) as made:
        first = made.reduce("--check", f"sh {check}", "--check-seconds", "3")
        (tmp_path / "check.ok").touch()
        told = document(made.reduce("--check", f"sh {check}"))

    assert first.returncode == 1
    assert (
        f"Nobody can tell whether 8 requests bring the fault about: {says}" in first.stderr.decode()
    )
    assert told["select"] == "5"


def test_a_check_that_fails_anyway_blames_nothing(tmp_path: Path) -> None:
    requests(tmp_path, total=8)
    with scene(tmp_path) as made:
        done = made.reduce("--check", "false")

    assert done.returncode == 1
    assert "although nothing was sent" in done.stderr.decode()
    assert made.seen() == []


def test_a_check_that_fails_now_and_then_is_not_believed_at_once(tmp_path: Path) -> None:
    requests(tmp_path, total=8)
    moody = tmp_path / "moody"
    moody.write_text(f"echo >> {moody}.times; test $(wc -l < {moody}.times) != 2")
    with scene(tmp_path) as made:
        done = made.reduce("--check", f"sh {moody}")

    assert done.returncode == 1
    assert [line["says"] for line in made.steps("run")] == ["fails", *["passes"] * 4]
    assert [line["says"] for line in made.steps("verdict")] == ["passes"]


@pytest.mark.parametrize(
    ("flags", "says"),
    [
        pytest.param(["--restart", "false"], "restart command ended with 1", id="restart fails"),
        pytest.param(["--restart", "no-such-program"], "there is no program", id="no program"),
        pytest.param(["--check", "sh -c 'exit 127'"], "could not be run", id="check cannot run"),
        pytest.param(["--check", "'"], "is no command", id="torn quotes"),
        pytest.param(
            ["--restart", "sleep 60", "--ready-seconds", "1"], "not ready 1 s after", id="not ready"
        ),
        pytest.param(["--select", "900"], "none was chosen", id="nothing chosen"),
    ],
)
def test_what_cannot_work_is_said_before_anything_is_sent(
    tmp_path: Path, flags: list[str], says: str
) -> None:
    requests(tmp_path, total=8)
    with scene(tmp_path) as made:
        done = made.reduce(*flags)

    assert done.returncode == 1
    assert says in done.stderr.decode()
    assert made.seen() == []


@pytest.mark.parametrize("restart", ["sleep 60", "true"], ids=["goes on", "has ended"])
def test_a_server_that_was_there_before_is_not_taken_for_the_restarted_one(
    tmp_path: Path, restart: str
) -> None:
    requests(tmp_path, total=8)
    with scene(tmp_path) as made, subprocess.Popen(made.launch) as other:
        until(lambda: is_well(made))
        done = made.reduce("--restart", restart, "--ready-seconds", "2")
        other.kill()

    assert done.returncode == 1
    assert "it is the one that was there before" in done.stderr.decode()
    assert made.seen() == []


def test_without_a_restart_command_whoever_else_restarts_the_target_is_waited_for(
    tmp_path: Path,
) -> None:
    requests(tmp_path, total=3)
    with scene(tmp_path, 1) as made:
        command = made.command()
        at = command.index("--restart")
        loop = f"while :; do {shlex.join(made.launch)}; sleep 0.5; done"
        with subprocess.Popen(["sh", "-c", loop], start_new_session=True) as supervisor:
            done = subprocess.run(
                [*command[:at], *command[at + 2 :]],
                env=ENVIRONMENT,
                capture_output=True,
                check=False,
            )
            os.killpg(supervisor.pid, signal.SIGKILL)

    told = document(done)
    assert (told["select"], told["target_died"]) == ("1", True)
    assert {line["fresh"] for line in made.steps("run")} == {True, False, None}


def test_a_target_that_serves_strangers_gets_nothing_whatever_is_confirmed(tmp_path: Path) -> None:
    requests(tmp_path, total=8)
    with scene(tmp_path, running=3) as made, subprocess.Popen(made.launch) as busy:
        until(lambda: is_well(made))
        done = made.reduce()
        assert busy.poll() is None
        busy.kill()

    assert done.returncode == 1
    assert "serving 3 requests of others" in done.stderr.decode()
    assert made.seen() == []


def test_without_a_word_of_a_person_nothing_is_sent(tmp_path: Path) -> None:
    requests(tmp_path, total=8)
    with scene(tmp_path, 5) as made:
        command = [word for word in made.command() if word != "--yes"]
        done = subprocess.run(command, env=ENVIRONMENT, stdin=subprocess.DEVNULL, check=False)
        controller, terminal = pty.openpty()
        os.write(controller, b"some other name\n")
        typed = subprocess.run(command, env=ENVIRONMENT, stdin=terminal, check=False)
        os.close(controller)
        os.close(terminal)

    assert (done.returncode, typed.returncode) == (1, 1)
    assert (made.starts(), made.seen()) == (0, [])


def test_typing_the_name_of_the_target_is_a_word(tmp_path: Path) -> None:
    requests(tmp_path, total=8)
    with scene(tmp_path, 5) as made:
        command = [word for word in made.command() if word != "--yes"]
        controller, terminal = pty.openpty()
        os.write(controller, f"127.0.0.1:{made.port}\n".encode())
        done = subprocess.run(
            command, env=ENVIRONMENT, stdin=terminal, capture_output=True, check=False
        )
        os.close(controller)
        os.close(terminal)

    assert document(done)["select"] == "5"


def test_the_steps_of_another_reduction_are_not_gone_on_with(tmp_path: Path) -> None:
    requests(tmp_path, total=8)
    with scene(tmp_path, 5) as made:
        document(made.reduce())
        other = made.reduce("--select", "0:6")
        made.out.with_suffix(".steps.jsonl").unlink()
        anew = made.reduce()

    assert "another reduction" in other.stderr.decode()
    assert "is there already" in anew.stderr.decode()


def harmless(made: Scene) -> Scene:
    """The same target, which no request harms."""
    return replace(made, rules={"culprits": []})


def is_well(made: Scene) -> bool:
    environment = {**ENVIRONMENT, "BASE_URL": made.base_url}
    return subprocess.run(shlex.split(CHECK), env=environment, check=False).returncode == 0


def targets(made: Scene) -> list[psutil.Process]:
    """Targets that run on the port of the scene; a process that has ended tells no words."""
    return [
        one
        for one in psutil.process_iter(["cmdline"])
        if (one.info["cmdline"] or [])[1:3] == made.launch[1:3]
    ]


def test_what_it_leaves_is_what_replay_and_bisect_read(tmp_path: Path) -> None:
    requests(tmp_path, total=3)
    with scene(tmp_path, 0, 2) as made:
        document(made.reduce())
        summary = subprocess.run(
            [sys.executable, "-m", "app", "dump", "summarize", str(made.out), "--json"],
            env=ENVIRONMENT,
            capture_output=True,
            timeout=60,
            check=True,
        )

    told = orjson.loads(summary.stdout)
    assert (told["requests_total"], told["problems"]) == (2, [])
    assert made.out.stat().st_mode & 0o077 == 0
