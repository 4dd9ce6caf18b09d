from pathlib import Path

import pytest

from app.agent.readiness.preflight_server import grace_check
from app.agent.readiness.supervision import Supervision, supervision, timespan_seconds
from app.domain.crash_dump import ServerFacts

SERVER = ServerFacts(engine="sglang", pid=7, version=(0, 5, 23))


@pytest.mark.parametrize(
    ("text", "seconds"),
    [
        ("1min 30s", 90.0),
        ("30s", 30.0),
        ("500ms", 0.5),
        ("1h 5min", 3900.0),
        ("infinity", float("inf")),
        ("", None),
        ("soon", None),
        ("30s or so", None),
    ],
)
def test_a_time_span_of_systemd_in_seconds(text: str, seconds: float | None) -> None:
    assert timespan_seconds(text) == seconds


@pytest.mark.parametrize(
    ("group", "by"),
    [
        pytest.param("/kubepods.slice/kubepods-pod1.slice/cri-2.scope", "Kubernetes", id="pod"),
        pytest.param("/system.slice/docker-9f.scope", "a container runtime", id="docker"),
        pytest.param("/user.slice/user-1.slice/user@1.service/a.service", "nobody", id="user"),
        pytest.param("/user.slice/user-1.slice/session-2.scope", "nobody", id="session"),
        pytest.param("/system.slice/--now;reboot.service", "nobody", id="no-name-of-a-unit"),
        pytest.param("/", "nobody", id="root"),
    ],
)
def test_who_ends_a_server_shows_in_its_control_group(tmp_path: Path, group: str, by: str) -> None:
    (tmp_path / "7").mkdir()
    (tmp_path / "7" / "cgroup").write_text(f"0::{group}\n")
    found = supervision(7, tmp_path)
    assert found.by.startswith(by)
    assert found.seconds is None


def test_a_pod_is_told_by_its_environment_too(tmp_path: Path) -> None:
    (tmp_path / "7").mkdir()
    (tmp_path / "7" / "cgroup").write_text("0::/\n")
    (tmp_path / "7" / "environ").write_bytes(b"KUBERNETES_SERVICE_HOST=10.0.0.1\0")
    assert supervision(7, tmp_path).by == "Kubernetes"


@pytest.mark.parametrize(
    ("facts", "supervised", "ready", "words"),
    [
        pytest.param(
            SERVER, Supervision("a.service", 30.0, unit="a.service"), False, "after 30 s", id="30"
        ),
        pytest.param(SERVER, Supervision("a.service", 90.0), True, "waits 90 s", id="90"),
        pytest.param(SERVER, Supervision("a.service", float("inf")), True, "for ever", id="inf"),
        pytest.param(SERVER, Supervision("a.service"), None, "does not say", id="unit-unknown"),
        pytest.param(SERVER, Supervision("Kubernetes"), None, "unset it is 30 s", id="pod"),
        pytest.param(
            SERVER, Supervision("a container runtime"), None, "unset it is 10 s", id="container"
        ),
        pytest.param(SERVER, Supervision("nobody that can be seen"), None, "No unit", id="nobody"),
        pytest.param(
            ServerFacts(engine="sglang", pid=7, version=(0, 5, 12)),
            Supervision("a.service", 30.0),
            True,
            "needs 10 s",
            id="old-version-ends-sooner",
        ),
        pytest.param(
            ServerFacts(engine="vllm", pid=7),
            Supervision("a.service", 5.0),
            None,
            "vLLM",
            id="vllm",
        ),
    ],
)
def test_a_grace_period_is_ready_only_when_it_is_known_and_long_enough(
    facts: ServerFacts, supervised: Supervision, ready: bool | None, words: str
) -> None:
    check = grace_check(facts, supervised)
    assert check.ready is ready
    assert words in check.says
    assert (check.fix is not None) is (ready is False)
