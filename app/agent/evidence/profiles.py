"""CPU profiles: py-spy looks at every thread some times a second, idle ones too, for a minute
at most.

On a hang only idle threads are of interest, so they are always in it. One profile at a time on a
host: at 200 threads each look pauses the server for a tenth of a second.
"""

import secrets
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from datetime import UTC, datetime
from pathlib import Path
from tempfile import TemporaryDirectory
from threading import Event, Lock, Thread

import orjson

from app.agent.kept.files import AgentFiles
from app.agent.processes.table import ProcessTable
from app.agent.stacks.stillness import Stance, after_a_tool, newly_stopped, stance
from app.agent.touching.holds import Holds
from app.agent.touching.tools import find_tool, run_tool
from app.domain.counting import counted
from app.domain.pyspy_errors import MISSING, classify
from app.errors import Conflict, ConsoleError, NotFound, Rejected
from app.protocol.messages import FileTaken, Process, Profile, ProfileRequest

MAX_KNOWN = 100  # profiles that are told of; the files stay
MAX_BYTES = 64 * 1024**2
CLOSE_SECONDS = 5.0
_SLOWEST = 4  # py-spy falls behind on 200 threads: 2 s took 8.2 s


class Profiles:
    """The profiles of this agent since its start."""

    def __init__(self, *, table: ProcessTable, holds: Holds, files: AgentFiles) -> None:
        self._table, self._holds, self._files = table, holds, files
        self._known: dict[str, Profile] = {}
        self._lock = Lock()
        self._busy = Lock()  # held while one runs
        self._cancel = Event()
        self._thread: Thread | None = None

    def start(self, request: ProfileRequest) -> Profile:
        """Begin one and return at once; raises NotFound, Conflict while another runs, NoSpace."""
        process = self._table.find(request.process_id)
        self._files.room(1)
        if not self._busy.acquire(blocking=False):
            raise Conflict(
                "A profile is being taken on this host.", fix="Wait until it is complete."
            )
        profile = Profile(
            id=secrets.token_hex(16),
            process_id=process.id,
            state="running",
            says=f"py-spy looks at it {request.rate} times a second for {request.seconds} s.",
            started_at=datetime.now(UTC),
        )
        self._note(profile)
        self._thread = Thread(target=self._take, args=(profile, process, request), daemon=True)
        self._thread.start()
        return profile

    def get(self, profile_id: str) -> Profile:
        """As it stands now; raises NotFound."""
        with self._lock:
            profile = self._known.get(profile_id)
        if profile is None:
            raise NotFound("The agent has taken no such profile since its start.")
        return profile

    def close(self) -> None:
        """End the one that runs; py-spy is killed, which leaves its target running."""
        self._cancel.set()
        if self._thread is not None:
            self._thread.join(CLOSE_SECONDS)

    def _note(self, profile: Profile) -> None:
        with self._lock:
            self._known[profile.id] = profile
            while len(self._known) > MAX_KNOWN:
                del self._known[next(iter(self._known))]

    def _take(self, profile: Profile, process: Process, request: ProfileRequest) -> None:
        try:
            with self._holds.hold(process.pid, "a CPU profile"), self._room() as folder:
                taken, says = self._record(process, request, folder / "profile.json")
            told: dict[str, object] = {"state": "complete", "says": says, "file": taken}
        except ConsoleError as error:
            told = {"state": "refused", "says": error.what, "fix": _fix(error)}
        finally:
            self._busy.release()
        self._note(profile.changed(**told))

    @contextmanager
    def _room(self) -> Iterator[Path]:
        """A folder for py-spy to write to; raises Rejected where there is none."""
        try:
            folder = TemporaryDirectory(prefix="profile-", dir=self._files.folder)
        except OSError as error:
            raise Rejected(f"py-spy has nowhere to write: {error.strerror}.") from error
        with folder, suppress(FileNotFoundError):
            yield Path(folder.name)

    def _record(
        self, process: Process, request: ProfileRequest, output: Path
    ) -> tuple[FileTaken, str]:
        if (before := stance(process.pid)) is None:
            raise NotFound("The process has ended.")
        argv = _argv(process, request, output, pause=not before.cannot_be_paused)
        deadline_seconds = _SLOWEST * request.seconds + 10.0
        run = run_tool(argv, deadline_seconds=deadline_seconds, cancel=self._cancel)
        _check_left_running(process, before)
        data = _read(output)
        if run.status != 0 or data is None:
            said = run.err.decode("utf-8", "replace")
            error = classify(said, status=run.status, timed_out=run.timed_out)
            raise Rejected(error.reason, fix=error.fix)
        samples = _samples(data)
        if samples == 0:
            raise Rejected(
                "py-spy saw nothing in that time: the profile is empty.",
                fix="Take its stacks instead.",
            )
        taken = self._files.keep(
            data, name=_name(process), kind="cpu profile", process_id=process.id
        )
        mode = ", without pausing it" if "--nonblocking" in argv else ""
        many = counted(samples, "sample") if samples is not None else "An unknown number of samples"
        return taken, f"{many} in {run.seconds:.0f} s{mode}, idle threads included."


def _argv(process: Process, request: ProfileRequest, output: Path, *, pause: bool) -> list[str]:
    """Raises Rejected without py-spy."""
    if (pyspy := find_tool("py-spy")) is None:
        raise Rejected(MISSING.reason, fix=MISSING.fix, command=MISSING.command)
    argv = [pyspy, "record", "--pid", str(process.pid), "--format", "speedscope", "--idle"]
    argv += ["--rate", str(request.rate), "--duration", str(request.seconds)]
    argv += ["--output", str(output)]
    return argv if pause else [*argv, "--nonblocking"]


def _check_left_running(process: Process, before: Stance) -> None:
    """Raises Rejected where the process is stopped now and was not: never seen, never unsaid."""
    after = after_a_tool(process.pid, before)
    if after and newly_stopped(before, after):
        raise Rejected(
            f"The process is stopped (state {after.stat.state}) since py-spy was on it.",
            fix="Let it go on.",
            command=f"kill -CONT {process.pid}",
        )


def _read(output: Path) -> bytes | None:
    """What py-spy wrote; None where that is nothing or more than is kept."""
    try:
        with output.open("rb") as file:
            data = file.read(MAX_BYTES + 1)
    except OSError:
        return None
    return data if 0 < len(data) <= MAX_BYTES else None


def _samples(data: bytes) -> int | None:
    """Of all threads together; None where the file is not speedscope's."""
    try:
        told = orjson.loads(data)
        return sum(len(profile["samples"]) for profile in told["profiles"])
    except (orjson.JSONDecodeError, KeyError, TypeError):
        return None


def _fix(error: ConsoleError) -> str | None:
    """With the command: a profile has no place of its own for it."""
    return " ".join(part for part in (error.fix, error.command) if part) or None


def _name(process: Process) -> str:
    label = process.rank.label if process.rank else process.role
    return f"{label.replace(' ', '-')}-{process.pid}.speedscope.json"
