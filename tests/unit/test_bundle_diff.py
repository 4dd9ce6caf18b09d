"""What changed between two bundles, most suspect first."""

from typing import Any

import orjson
import pytest

from app.domain.bundle_diff import diff
from app.domain.capture import Bundle
from app.domain.launch import flags_of
from tests.bundles import answered, bundle, silent
from tests.captured import captured

BASE: dict[str, Any] = {
    "model_path": "/models/r1",
    "version": "0.5.21",
    "launch_command": "--model-path /models/r1 --tp 8 --api-key ‹redacted:aaaa1111›",
    "tp_size": 8,
    "api_key": "‹redacted:aaaa1111›",
    "moe_a2a_backend": "none",
    "max_running_requests": 256,
    "log_level": "info",
    "random_seed": 1,
    "startup_time": {"load_weight": 3.1},
    "internal_states": [{"last_gen_throughput": 10.0}],
}


def told(**changes: Any) -> Bundle:
    return bundle(answered("server_info", {**BASE, **changes}))


def names(entries: list[dict[str, Any]]) -> list[str]:
    return [one["name"] for one in entries]


def test_a_bundle_does_not_differ_from_itself() -> None:
    found = diff(told(), told())
    assert (found["changes"], found["low_suspicion"], found["volatile"]) == ([], [], [])
    assert found["alike"] > 8


def test_the_most_suspect_change_stands_first() -> None:
    after = told(
        version="0.5.23",
        max_running_requests=384,
        moe_a2a_backend="deepep",
        launch_command=f"{BASE['launch_command']} --enable-two-batch-overlap",
    )
    assert names(diff(told(), after)["changes"]) == [
        "version",
        "--enable-two-batch-overlap",
        "moe_a2a_backend",
        "max_running_requests",
    ]


def test_an_identity_that_one_bundle_did_not_tell_has_not_gone_away() -> None:
    model = {"model_path": "/models/r1", "weight_version": "0413"}
    hung = bundle(answered("model_info", model), silent("server_info"))
    found = diff(told(weight_version="0412"), hung)
    assert names(found["changes"]) == ["weight_version"]
    assert "settings" in found["not_compared"]


def test_each_change_says_before_after_and_why_it_stands_there() -> None:
    [entry] = diff(told(), told(moe_a2a_backend="deepep"))["changes"]
    assert (entry["before"], entry["after"]) == ("none", "deepep")
    assert entry["why"] == "communication among ranks"


def test_what_differs_between_any_two_starts_is_folded() -> None:
    found = diff(told(), told(random_seed=2, startup_time={"load_weight": 2.9}, log_level="debug"))
    assert found["changes"] == []
    assert names(found["low_suspicion"]) == ["log_level"]
    assert set(names(found["volatile"])) == {"random_seed", "startup_time.load_weight"}


def test_a_changed_key_is_said_to_have_changed_and_nothing_more() -> None:
    mark = "‹redacted:bbbb2222›"
    after = told(api_key=mark, launch_command=f"--model-path /models/r1 --tp 8 --api-key {mark}")
    found = diff(told(), after)
    assert names(found["changes"]) == ["--api-key"]
    assert "bbbb2222" not in str(found)
    assert "aaaa1111" not in str(found)


def test_a_flag_and_the_setting_that_it_sets_are_one_change() -> None:
    after = told(
        tp_size=4, launch_command=str(BASE["launch_command"]).replace("--tp 8", "--tp-size 4")
    )
    assert names(diff(told(), after)["changes"]) == ["--tp-size"]


def test_a_flag_that_is_gone_is_not_set() -> None:
    [entry] = diff(told(launch_command="--trust-remote-code"), told(launch_command="--a"))[
        "changes"
    ][1:]
    assert (entry["name"], entry["before"], entry["after"]) == (
        "--trust-remote-code",
        True,
        "not set",
    )


def test_what_one_bundle_does_not_tell_is_no_change() -> None:
    found = diff(told(), bundle(silent("server_info")))
    assert found["changes"] == []
    assert "settings" in found["not_compared"]


@pytest.mark.parametrize(
    ("command", "flags"),
    [
        pytest.param(
            "--tp 2 --trust-remote-code",
            {"--tp-size": "2", "--trust-remote-code": True},
            id="short",
        ),
        pytest.param("--tp=2", {"--tp-size": "2"}, id="with an equals sign"),
        pytest.param(
            'launch_server.py --json {"a": 1} --port 1',
            {"--json": '{"a": 1}', "--port": "1"},
            id="blanks",
        ),
        pytest.param("", {}, id="empty"),
    ],
)
def test_flags_of_a_launch_command(command: str, flags: dict[str, Any]) -> None:
    assert dict(flags_of(command)) == flags


def test_two_real_servers_differ_by_what_they_were_started_with() -> None:
    found = diff(captured("idle_fresh"), captured("tp2_keys_user"))
    assert {"--tp-size", "--api-key", "--admin-api-key"} <= set(names(found["changes"]))
    assert "random_seed" in names(found["volatile"])
    assert b"sk-" not in orjson.dumps(found)
    assert found["alike"] > 500
