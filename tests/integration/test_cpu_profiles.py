"""CPU profiles by the real py-spy."""

from pathlib import Path

import orjson
import pytest

from app.agent.evidence.profiles import Profiles
from app.agent.processes.table import ProcessTable
from app.agent.touching.holds import Holds
from app.errors import Conflict, NotFound
from app.protocol.messages import Profile, ProfileRequest
from tests.integration.stuck import state, stopped
from tests.integration.telling import Told, agent_files, telling
from tests.waiting import until


def _profiles(told: Told, folder: Path, holds: Holds | None = None) -> Profiles:
    return Profiles(table=told.table, holds=holds or Holds(), files=agent_files(folder))


def _ended(profiles: Profiles, started: Profile) -> Profile:
    def look() -> Profile | None:
        now = profiles.get(started.id)
        return now if now.state != "running" else None

    ended = until(look)
    assert ended is not None
    return ended


def test_idle_threads_are_in_the_profile(tmp_path: Path) -> None:
    with telling() as told:
        profiles = _profiles(told, tmp_path)
        request = ProfileRequest(process_id=told.server.id, seconds=1, rate=10)
        profile = _ended(profiles, profiles.start(request))
    assert profile.state == "complete", profile.says
    assert profile.file is not None
    opened, _ = agent_files(tmp_path).open_file(profile.file.id)
    with opened:
        told_by_pyspy = orjson.loads(opened.read())
    assert "speedscope" in told_by_pyspy["$schema"]
    assert "main" in str(told_by_pyspy["shared"]["frames"])


def test_a_stopped_process_is_profiled_without_a_pause_and_stays_stopped(tmp_path: Path) -> None:
    with telling() as told, stopped(told.root.pid):
        profiles = _profiles(told, tmp_path)
        request = ProfileRequest(process_id=told.server.id, seconds=1)
        profile = _ended(profiles, profiles.start(request))
        assert state(told.root.pid) == "T"
    assert profile.state == "complete", profile.says
    assert "without pausing it" in profile.says


def test_one_profile_at_a_time_and_closing_ends_it(tmp_path: Path) -> None:
    with telling() as told:
        profiles = _profiles(told, tmp_path)
        request = ProfileRequest(process_id=told.server.id, seconds=60)
        started = profiles.start(request)
        with pytest.raises(Conflict, match="A profile is being taken"):
            profiles.start(request)
        profiles.close()
        assert _ended(profiles, started).state == "refused"
        assert state(told.root.pid) in ("S", "R")
    assert [path.name for path in tmp_path.iterdir() if "profile-" in path.name] == []


def test_a_process_that_another_tool_is_on_is_refused(tmp_path: Path) -> None:
    holds = Holds()
    with telling() as told, holds.hold(told.root.pid, "a coredump"):
        profiles = _profiles(told, tmp_path, holds)
        profile = _ended(profiles, profiles.start(ProfileRequest(process_id=told.server.id)))
    assert (profile.state, profile.file) == ("refused", None)
    assert "a coredump is on this process already" in profile.says


def test_an_unknown_profile_is_not_found(tmp_path: Path) -> None:
    profiles = Profiles(table=ProcessTable(), holds=Holds(), files=agent_files(tmp_path))
    with pytest.raises(NotFound):
        profiles.get("0" * 32)
