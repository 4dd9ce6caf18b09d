"""What ``bisect init`` writes beside the harness: its settings and a README.

The harness itself is one Python file of the standard library alone: the commits under test need
nothing of ours.
"""

import re
from collections.abc import Mapping
from dataclasses import asdict, dataclass
from typing import Literal

import orjson

from app.domain.counting import counted
from app.errors import Rejected

RUN_FILE = "run"
SETTINGS_FILE = "settings.json"
REQUESTS_FILE = "requests.jsonl"
README_FILE = "README.md"

BisectSymptom = Literal["crash", "hang", "error", "latency", "output", "check"]
_OWN_PORT = ("{port}", "$PORT", "${PORT}")
_PORT_FLAG = re.compile(r"(?<!\S)--port([= ]+)[0-9]{1,5}(?!\S)")
_SGLANG = "sglang.launch_server"


@dataclass(frozen=True, slots=True)
class BisectSettings:
    """What the harness does at each commit, in the checkout. Commands are run by a shell.

    *launch* has ``{port}`` where the port goes, which is a free one unless *port* names it.
    *symptom* "check" runs *check* instead of judging the answers: exit status 0 is good, 125 says
    nothing. *setup* is run before, such as an install; where it fails, the commit cannot be
    tested. *right_output* is a regular expression that right answers match.
    """

    checkout: str
    good: str
    bad: str
    launch: str
    port: int | None = None
    symptom: BisectSymptom = "crash"
    check: str | None = None
    latency_seconds: float | None = None  # median of whole answers; more is bad
    right_output: str | None = None
    setup: str | None = None
    setup_seconds: float = 3600.0
    ready_path: str = "/health"
    ready_seconds: float = 600.0
    answer_seconds: float = 300.0
    settle_seconds: float = 5.0  # after the last answer: a crash may take its time
    runs: int = 1  # of the requests; the fault may not come each time
    parallel: int = 128


def checked(settings: BisectSettings) -> BisectSettings:
    """*settings* where they can be followed; raises Rejected where they cannot."""
    needed: Mapping[str, tuple[object, str]] = {
        "check": (settings.check, "--check"),
        "latency": (settings.latency_seconds, "--latency-seconds"),
        "output": (settings.right_output, "--right-output"),
    }
    value, flag = needed.get(settings.symptom, (True, ""))
    if value is None:
        raise Rejected(f"The symptom {settings.symptom} needs {flag}.")
    if settings.right_output is not None:
        try:
            re.compile(settings.right_output)
        except re.error as error:
            raise Rejected(f"--right-output is no regular expression: {error}.") from error
    return settings


def with_free_port(launch: str) -> str:
    """*launch* with ``{port}`` where the port goes; raises Rejected where that is not clear.

    So no commit is disturbed by what another has left on a port.
    """
    if any(word in launch for word in _OWN_PORT):
        return launch
    replaced, count = _PORT_FLAG.subn(lambda found: f"--port{found[1]}{{port}}", launch)
    if count == 1:
        return replaced
    if count == 0 and _SGLANG in launch and "--port" not in launch:
        return f"{launch} --port {{port}}"
    raise Rejected(
        "The command that launches the server does not say which port it listens on.",
        fix="Write {port} where the port goes, or name the port with --port.",
    )


def settings_text(settings: BisectSettings) -> bytes:
    """The settings file."""
    return orjson.dumps(asdict(settings), option=orjson.OPT_INDENT_2 | orjson.OPT_APPEND_NEWLINE)


def readme(settings: BisectSettings, requests: int) -> str:
    """How to use it, in Markdown."""
    port = "a free port" if settings.port is None else f"port {settings.port}"
    return f"""\
# Which commit brought it in?

`./{RUN_FILE} bisect` tests both ends and then runs `git bisect` between {settings.good[:12]} \
(good) and {settings.bad[:12]} (bad) in `{settings.checkout}`. At each commit it

1. {_setup(settings)}starts the server on {port}: `{settings.launch}`
2. waits until it answers `{settings.ready_path}`, at most {settings.ready_seconds:g} s
3. sends the {counted(requests, "request")} in `{REQUESTS_FILE}`, {_runs(settings.runs)}
4. looks for the symptom: {_symptom(settings)}
5. stops the server, with every process of its group

Then the checkout is as it was before. It must have no changes that are not committed.

| command | what it does |
|---|---|
| `./{RUN_FILE} verify` | tests the good and the bad end alone; do this first |
| `./{RUN_FILE} bisect` | both ends, then all that is between |
| `git bisect run THIS_FOLDER/{RUN_FILE}` | the same by hand, after `git bisect start BAD GOOD` |
| `./{RUN_FILE}` | the commit that is checked out where it is started |

Exit status of one step: 0 good, 1 bad, 125 the commit cannot be tested (it did not build or
start, took none of the requests, or hangs where a crash is looked for; git then tries another
one). Above 127 git stops: it was interrupted.

What each commit's server printed is in `logs/`, the verdicts are in `logs/results.jsonl`, and git's
own log is in `bisect.log`. `{SETTINGS_FILE}` may be changed as you need. Where the server asks for
a key, it is taken from the environment variable `TARGET_TOKEN`; it is in no file.

It needs Python 3.10, git, and whatever the server needs. `{REQUESTS_FILE}` may hold what people
asked the server: keep it where it is.
"""


def _setup(settings: BisectSettings) -> str:
    return f"runs `{settings.setup}`, then " if settings.setup else ""


def _runs(runs: int) -> str:
    return "once" if runs == 1 else f"{runs} times or until the symptom is seen"


def _symptom(settings: BisectSettings) -> str:
    return {
        "crash": "the server ends, or refuses connections",
        "hang": f"a request gets no answer in {settings.answer_seconds:g} s",
        "error": "an answer has a status of 500 or more, or an abort",
        "latency": f"the median answer takes more than {settings.latency_seconds or 0:g} s",
        "output": f"an answer does not match `{settings.right_output}`",
        "check": f"`{settings.check}` ends with another status than 0",
    }[settings.symptom]
