"""One step of ``git bisect run``: start the server, send the requests, say good, bad or neither.

``run`` does the step in the checkout that it is started in. Exit status 0: good. 1: bad. 125: this
commit cannot be tested. ``run verify`` tests the good and the bad end, ``run bisect`` does that and
then all the rest. Lies beside ``settings.json`` and ``requests.jsonl``; needs Python 3.10, git, and
nothing else. The server is stopped with every process of its group, also by Ctrl-C.
"""

import http.client
import json
import os
import pathlib
import re
import signal
import socket
import statistics
import subprocess
import sys
import threading
import time
import urllib.error
import urllib.request
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from typing import Any

GOOD, BAD, UNTESTABLE = 0, 1, 125
HERE = pathlib.Path(__file__).resolve().parent
LOGS = HERE / "logs"
POLL_SECONDS, PROBE_SECONDS, STOP_SECONDS = 0.2, 10, 20
DYING_SECONDS = 120  # SGLang stands still for 65 s after a scheduler died, before it ends
MOST_BYTES, PIECE_BYTES = 256 * 1024 * 1024, 64 * 1024
POSSIBLE = re.compile(r"(?m)^# possible first bad commit: (.*)$")
ABORTED = b'"type":"abort"'
STOPPING = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)

Settings = Mapping[str, Any]
Line = Mapping[str, Any]
Verdict = tuple[int, str]  # the exit status, and why


class Server:
    """The server of the commit under test, in a session of its own and with a port of its own."""

    def __init__(self, settings: Settings, log: pathlib.Path) -> None:
        self.settings, self.log = settings, log
        self.port: int = settings["port"] or free_port()
        self.base_url = f"http://127.0.0.1:{self.port}"
        self.environment = {**os.environ, "PORT": str(self.port), "BASE_URL": self.base_url}
        self.process: subprocess.Popen[bytes] | None = None
        self._started: list[subprocess.Popen[bytes]] = []

    def start(self) -> None:
        """Start it; what it prints is in the log of the commit."""
        self.process = self._in_session(self.settings["launch"].replace("{port}", str(self.port)))

    def run(self, command: str, seconds: float) -> int | None:
        """The exit status of *command*; None: it was not done in time, and is ended."""
        process = self._in_session(command)
        try:
            return process.wait(seconds)
        except subprocess.TimeoutExpired:
            return None
        finally:
            end_group(process)
            self._started.remove(process)

    @property
    def ended(self) -> bool:
        return self.process is None or self.process.poll() is not None

    def ready(self) -> bool:
        """Whether it came up in time."""
        until = time.monotonic() + self.settings["ready_seconds"]
        while time.monotonic() < until and not self.ended:
            if self.state() == "ready":
                return not self.ended
            time.sleep(POLL_SECONDS)
        return False

    def state(self) -> str:
        """How it answers at its ready path: ready, unready (another status), silent, or gone."""
        try:
            with opened(self.base_url + self.settings["ready_path"], None, PROBE_SECONDS):
                return "ready"
        except urllib.error.HTTPError:
            return "unready"
        except (OSError, ValueError, http.client.HTTPException) as error:
            reason = getattr(error, "reason", error)
            return "silent" if isinstance(reason, TimeoutError) else "gone"

    def stop(self) -> None:
        """End all that was started, and what that started: first by asking, then by force."""
        with undisturbed():
            for process in self._started:
                end_group(process)

    def _in_session(self, command: str) -> "subprocess.Popen[bytes]":
        with self.log.open("ab") as log, undisturbed():
            process = subprocess.Popen(  # noqa: S602  (the person's own command)
                command, shell=True, stdin=subprocess.DEVNULL, stdout=log, stderr=log,
                env=self.environment, start_new_session=True,
            )  # fmt: skip
            self._started.append(process)
        return process


class Step:
    """What was seen while the requests were sent once."""

    def __init__(self, settings: Settings, server: Server) -> None:
        self.settings, self.server = settings, server
        self.seen: Counter[str] = Counter()
        self.seconds: list[float] = []
        self._counting = threading.Lock()
        self._slots = threading.Semaphore(settings["parallel"])
        self._threads: list[threading.Thread] = []

    def play(self, lines: Sequence[Line]) -> None:
        """Send each when it is due, until the server ends or the symptom is there."""
        start = time.monotonic()
        for line in lines:
            time.sleep(max(0.0, start + line.get("due_seconds", 0.0) - time.monotonic()))
            self._slots.acquire()
            if self.server.ended or self._shown():
                return
            # Daemons: a step that is stopped does not wait for answers.
            thread = threading.Thread(target=self._send, args=[line], daemon=True)
            self._threads.append(thread)
            thread.start()

    def settle(self) -> None:
        """Wait for the answers, and then a little: a crash may take its time."""
        for thread in self._threads:
            while thread.is_alive() and not self._shown():
                thread.join(POLL_SECONDS)
        until = time.monotonic() + self.settings["settle_seconds"]
        while time.monotonic() < until and not self.server.ended and not self._shown():
            time.sleep(POLL_SECONDS)

    def verdict(self) -> Verdict:
        symptom = self.settings["symptom"]
        if symptom == "check":
            return self._checked()
        if not sum(self.seen[fate] for fate in ("answered", "lost", "silent", "failed", "wrong")):
            return UNTESTABLE, "it took none of the requests"
        state = self._left()
        if state == "gone":
            return (BAD if symptom == "crash" else UNTESTABLE), "the server went away"
        if symptom == "crash" and state == "silent":
            return UNTESTABLE, "the server hangs, and did not end"
        if self._shown():
            return BAD, f"the symptom is there: {symptom}"
        if not self.seen["answered"]:
            return UNTESTABLE, "it answered none of the requests"
        if symptom == "latency":
            return self._timed()
        return GOOD, "the symptom is not there"

    def _left(self) -> str:
        """The state that the server is left in; gone too where it ended.

        Where a crash is looked for, one that hangs is waited for: it may be about to end.
        """
        until = time.monotonic() + (DYING_SECONDS if self.settings["symptom"] == "crash" else 0)
        while (state := self.server.state()) == "silent" and time.monotonic() < until:
            time.sleep(POLL_SECONDS)
        return "gone" if self.server.ended else state

    def _shown(self) -> bool:
        fates = {"hang": "silent", "error": "failed", "output": "wrong"}
        return self.seen[fates.get(self.settings["symptom"], "")] > 0

    def _checked(self) -> Verdict:
        status = self.server.run(self.settings["check"], self.settings["answer_seconds"])
        if status is None or status == UNTESTABLE:
            return UNTESTABLE, "the check could not tell"
        return (BAD if status else GOOD), f"the check ended with {status}"

    def _timed(self) -> Verdict:
        median, limit = statistics.median(self.seconds), self.settings["latency_seconds"]
        return (BAD if median > limit else GOOD), f"median {median:.3f} s, limit {limit:g} s"

    def _send(self, line: Line) -> None:
        start = time.monotonic()
        fate = self._fate(line)
        with self._counting:
            self.seen[fate] += 1
            if fate == "answered":
                self.seconds.append(time.monotonic() - start)
        self._slots.release()

    def _fate(self, line: Line) -> str:
        """How it went: answered, wrong, lost, silent, failed; or unfit, which is our own making."""
        payload = line["payload"]
        if self.settings["symptom"] == "output":
            payload = {**payload, "stream": False}  # its text in one piece
        url = self.server.base_url + line["endpoint"]
        seconds = self.settings["answer_seconds"]
        try:
            with opened(url, json.dumps(payload).encode(), seconds) as answer:
                return self._of_answer(read(answer, seconds))
        except urllib.error.HTTPError as error:
            return "failed" if error.code // 100 == 5 else "unfit"
        except (OSError, http.client.HTTPException) as error:
            reason = getattr(error, "reason", error)
            if isinstance(reason, ConnectionRefusedError):
                return "unfit"
            return "silent" if isinstance(reason, TimeoutError) else "lost"
        except ValueError:
            return "failed"

    def _of_answer(self, body: bytes) -> str:
        if ABORTED in body.replace(b" ", b""):
            return "failed"
        if self.settings["symptom"] != "output":
            return "answered"
        return "answered" if re.search(self.settings["right_output"], words(body)) else "wrong"


def opened(url: str, body: bytes | None, seconds: float) -> Any:  # noqa: ANN401  (urllib's own)
    """The answer to *body*, or to a GET, without proxies. The key is in the environment."""
    headers = {"Content-Type": "application/json"}
    if token := os.environ.get("TARGET_TOKEN"):
        headers["Authorization"] = f"Bearer {token}"
    opener = urllib.request.build_opener(urllib.request.ProxyHandler({}))
    request = urllib.request.Request(url, data=body, headers=headers)  # noqa: S310  (http://127…)
    return opener.open(request, timeout=seconds)


def read(answer: Any, seconds: float) -> bytes:  # noqa: ANN401
    """All of it. Raises TimeoutError for one that goes on longer, however it drips."""
    body, until = bytearray(), time.monotonic() + seconds
    while piece := answer.read1(PIECE_BYTES):
        body += piece
        if time.monotonic() > until:
            raise TimeoutError
        if len(body) > MOST_BYTES:
            raise ValueError("too large")
    return bytes(body)


def words(body: bytes) -> str:
    """The text of an answer, of SGLang's own routes or of those like OpenAI's."""
    told = json.loads(body)
    parts = told if isinstance(told, list) else told.get("choices", [told])
    texts = [part.get("text") or part.get("message", {}).get("content") or "" for part in parts]
    return "\n".join(map(str, texts))


def free_port() -> int:
    with socket.create_server(("127.0.0.1", 0)) as listener:
        return int(listener.getsockname()[1])


def end_group(process: "subprocess.Popen[bytes]") -> None:
    """End *process* and its group."""
    with undisturbed():
        for sign in (signal.SIGTERM, signal.SIGKILL):
            with suppress(ProcessLookupError, PermissionError):
                os.killpg(process.pid, sign)
            with suppress(subprocess.TimeoutExpired):
                process.wait(STOP_SECONDS)
        process.wait()


@contextmanager
def undisturbed() -> Iterator[None]:
    """Being told to stop is heard afterwards: what is started is known by then."""
    heard = list[int]()
    before = {sign: signal.signal(sign, lambda told, _: heard.append(told)) for sign in STOPPING}
    try:
        yield
    finally:
        for sign, handler in before.items():
            signal.signal(sign, handler)
        if heard:
            signal.raise_signal(heard[0])


def judged(settings: Settings, lines: Sequence[Line], log: pathlib.Path) -> Verdict:
    """The verdict on the commit that is checked out."""
    server = Server(settings, log)
    if settings["port"] and server.state() != "gone":
        return UNTESTABLE, f"another server answers at {server.base_url}: stop it first"
    try:
        if settings["setup"] and server.run(settings["setup"], settings["setup_seconds"]) != 0:
            return UNTESTABLE, "the set-up failed"
        server.start()
        if not server.ready():
            return UNTESTABLE, "the server ended" if server.ended else "it was not ready in time"
        found: Verdict = GOOD, ""
        for _ in range(settings["runs"]):
            step = Step(settings, server)
            step.play(lines)
            step.settle()
            if (found := step.verdict())[0] != GOOD:
                break
        return found
    finally:
        server.stop()


def tested(settings: Settings) -> int:
    """The exit status for the checkout that this is started in; the verdict is kept in logs/."""
    with (HERE / "requests.jsonl").open() as file:
        lines = [json.loads(line) for line in file if line.strip()]
    revision = git("rev-parse", "HEAD") or "unknown"
    LOGS.mkdir(exist_ok=True)
    log = LOGS / f"{revision[:12]}-{len(list(LOGS.glob(f'{revision[:12]}-*.log'))) + 1}.log"
    start = time.monotonic()
    status, why = judged(settings, lines, log)
    told = {"revision": revision, "subject": git("show", "-s", "--format=%s"), "status": status,
            "why": why, "seconds": round(time.monotonic() - start, 1), "log": log.name}  # fmt: skip
    with (LOGS / "results.jsonl").open("a") as results:
        results.write(json.dumps(told) + "\n")
    word = {GOOD: "good", BAD: "bad"}.get(status, "cannot be tested")
    say(f"{revision[:12]} {word}: {why} ({told['seconds']} s, logs/{log.name})")
    return status


def verified(settings: Settings) -> bool:
    """Whether the good end is good and the bad end bad; the checkout is left as it was."""
    if git("status", "--porcelain", "--untracked-files=no"):
        say("The checkout has changes that are not committed: commit or stash them first.")
        return False
    here = git("symbolic-ref", "--quiet", "--short", "HEAD") or git("rev-parse", "HEAD")
    right = True
    try:
        for name, wanted in (("bad", BAD), ("good", GOOD)):
            git("checkout", "--quiet", "--detach", settings[name], must=True)
            if (status := tested(settings)) != wanted:
                say(f"The {name} end {settings[name][:12]} ended with {status}, not {wanted}.")
                right = False
    finally:
        with undisturbed():
            git("checkout", "--quiet", here, must=True)
    say("Both ends are as they should be." if right else "Nothing can be bisected so.")
    return right


def bisected(settings: Settings) -> int:
    """Finds the commit, names it, and leaves the checkout as it was."""
    if git("bisect", "log"):
        say("A bisection is under way in the checkout: end it with 'git bisect reset' first.")
        return 1
    git("bisect", "start", settings["bad"], settings["good"], must=True)
    try:
        status = subprocess.call(["git", "bisect", "run", str(HERE / "run")])  # noqa: S603, S607
        (HERE / "bisect.log").write_text(git("bisect", "log") + "\n")
        if status == 0:
            say(f"\nThe first bad commit is\n{git('show', '-s', '--stat', 'refs/bisect/bad')}")
        elif found := POSSIBLE.findall(git("bisect", "log")):
            say("\nOne of these brought it in; not all could be tested:\n" + "\n".join(found))
        return status
    finally:
        with undisturbed():
            git("bisect", "reset", must=True)


def git(*words: str, must: bool = False) -> str:
    """What git says; empty where it fails, unless it *must* not."""
    done = subprocess.run(  # noqa: S603  (in a session of its own: Ctrl-C does not reach it)
        ["git", *words], capture_output=True, text=True,  # noqa: S607
        check=False, start_new_session=True,
    )  # fmt: skip
    if must and done.returncode != 0:
        sys.exit(f"git {' '.join(words)}: {done.stderr.strip()}")
    return done.stdout.strip() if done.returncode == 0 else ""


def say(text: str) -> None:
    sys.stderr.write(f"{text}\n")


def main(words: Sequence[str]) -> int:
    """The exit status of this program."""
    for sign in STOPPING:
        signal.signal(sign, signal.default_int_handler)
    settings = json.loads((HERE / "settings.json").read_text())
    if not words:
        return tested(settings)
    if list(words) not in (["verify"], ["bisect"]):
        say(str(__doc__))
        return 2
    os.chdir(settings["checkout"])
    if not verified(settings):
        return 1
    return bisected(settings) if words[0] == "bisect" else 0


if __name__ == "__main__":
    try:
        sys.exit(main(sys.argv[1:]))
    except KeyboardInterrupt:
        sys.exit(130)  # above 127: git ends the bisection
    except OSError as error:
        say(f"{error}: this commit cannot be tested.")
        sys.exit(UNTESTABLE)
