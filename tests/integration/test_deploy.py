"""The examples in deploy/ are read by the programs that they are written for."""

import shutil
import subprocess
from pathlib import Path
from typing import Any

import pytest

DEPLOY = Path(__file__).parents[2] / "deploy"
UNIT = DEPLOY / "incident-agent.service"
PTRACE = ("CAP_SYS_PTRACE", "SystemCallFilter=@system-service ptrace process_vm_readv")


def _documents(name: str) -> list[dict[str, Any]]:
    yaml = pytest.importorskip("yaml", reason="PyYAML is not installed")
    return list(yaml.safe_load_all((DEPLOY / "kubernetes" / name).read_text()))


def _pod(name: str) -> dict[str, Any]:
    first = _documents(name)[0]
    spec: dict[str, Any] = first["spec"]
    return spec["template"]["spec"] if "template" in spec else spec


@pytest.mark.skipif(shutil.which("systemd-analyze") is None, reason="systemd is not installed")
def test_systemd_understands_the_unit(tmp_path: Path) -> None:
    unit = tmp_path / UNIT.name
    unit.write_text(
        UNIT.read_text().replace("/opt/incident-agent/bin/incident-console", "/bin/true")
    )
    done = subprocess.run(
        ["systemd-analyze", "verify", unit], capture_output=True, text=True, check=False, timeout=60
    )

    assert UNIT.name not in done.stderr


def test_the_hardened_unit_still_lets_it_trace() -> None:
    text = UNIT.read_text()

    assert all(part in text for part in PTRACE)
    assert "PrivateTmp=no" in text
    assert "ProtectProc=default" in text


@pytest.mark.parametrize("name", ["sidecar.yaml", "daemonset.yaml"])
def test_a_pod_mounts_only_volumes_that_it_has_and_lets_the_agent_trace(name: str) -> None:
    pod = _pod(name)
    volumes = {volume["name"] for volume in pod["volumes"]}
    containers = [*pod.get("initContainers", []), *pod["containers"]]
    mounted = {mount["name"] for one in containers for mount in one["volumeMounts"]}
    agent = pod["containers"][-1]

    assert mounted == volumes
    assert "SYS_PTRACE" in agent["securityContext"]["capabilities"]["add"]
    assert pod.get("shareProcessNamespace") or pod.get("hostPID")


def test_a_pod_has_longer_to_end_than_the_crash_path_of_the_server() -> None:
    assert _pod("sidecar.yaml")["terminationGracePeriodSeconds"] > 65 + 20
