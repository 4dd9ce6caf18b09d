"""Request dumping at a target: what is sent for it, how large a file is, what an answer means.

Facts are of SGLang 0.4.6 to 0.5.23, read from its wheels; measured on a running 0.5.23: an empty
folder switches it off, omitted keys stay as they are, two files within one second overwrite each
other, and what was collected below the threshold goes into the first file of the next recording.
"""

import math
import shlex
from dataclasses import dataclass
from pathlib import PurePosixPath
from typing import Literal

import orjson

from app.errors import Rejected

PATH = "/configure_logging"
SECONDS_A_FILE = 5.0  # names of files have a resolution of 1 s, so a file a second is too often
CAUTIOUS_THRESHOLD = 100  # where the rate is not known: not overwritten below 100 requests/s
MAX_THRESHOLD = 100_000
MIN_SECONDS, USUAL_SECONDS, MAX_SECONDS = 1, 600, 24 * 3600
LONGEST_FOLDER = 300
USUAL_FOLDER = "/var/tmp/sglang-requests"  # noqa: S108  (on the host of the server)
RETRY_SECONDS = (5, 10, 20, 40, 80, 160, 300, *[600] * 12)  # about 2 h; then a person is asked
_MOST_SENDS = 64

Effect = Literal["done", "refused", "not known", "not sent"]


@dataclass(frozen=True, slots=True)
class Suggestion:
    """How many requests go into a file, and why as many."""

    threshold: int
    why: str


@dataclass(frozen=True, slots=True)
class Known:
    """What the newest bundle of a target told; None: not told."""

    frontend: str | None = None  # "python", "rust"
    version: str | None = None
    tokenizers: int | None = None
    crash_dump_folder: str | None = None
    finished_per_second: float | None = None
    several_servers: bool = False  # a gateway answers for more than one


@dataclass(frozen=True, slots=True)
class Answered:
    """How sending it ended; *status* None: no whole answer came."""

    status: int | None
    detail: str = ""
    nothing_sent: bool = False


@dataclass(frozen=True, slots=True)
class Meant:
    """What an answer says about the target."""

    effect: Effect
    says: str
    fix: str = ""


def suggestion(finished_per_second: float | None) -> Suggestion:
    """A file about every 5 s; the cautious default where no rate was seen."""
    if finished_per_second == 0:
        return Suggestion(
            CAUTIOUS_THRESHOLD,
            "The newest bundle saw no request finish, so this is a cautious default. Only finished "
            "requests are written, and none below the threshold: take less for little traffic.",
        )
    if finished_per_second is None or not math.isfinite(finished_per_second):
        return Suggestion(
            CAUTIOUS_THRESHOLD,
            "How many requests finish a second is not known, so this is a cautious default: up to "
            f"{CAUTIOUS_THRESHOLD}/s no file overwrites another. With less traffic take less: "
            "what is below it is not written.",
        )
    wanted = math.ceil(finished_per_second * SECONDS_A_FILE)
    threshold = max(1, min(wanted, MAX_THRESHOLD))
    return Suggestion(
        threshold,
        f"The newest bundle saw {finished_per_second:.3g} requests finish a second: a file about "
        f"every {threshold / finished_per_second:.0f} s.",
    )


def check_folder(folder: str) -> str:
    """*folder* as it is sent; raises Rejected for what is no plain absolute path."""
    path = PurePosixPath(folder)
    plain = folder.isascii() and folder.isprintable() and ".." not in path.parts
    if not plain or not path.is_absolute() or len(folder) > LONGEST_FOLDER or len(path.parts) < 2:
        raise Rejected(
            "The folder is no plain absolute path.",
            fix="Name one that the server may write to, as /var/tmp/requests.",
        )
    return str(path)


def check_figures(threshold: int, duration_seconds: float) -> None:
    """Raises Rejected for what makes no sense."""
    if not 1 <= threshold <= MAX_THRESHOLD:
        raise Rejected(f"Between 1 and {MAX_THRESHOLD} requests go into a file.")
    if not MIN_SECONDS <= duration_seconds <= MAX_SECONDS:
        raise Rejected(
            f"Requests are recorded for {MIN_SECONDS} s to {MAX_SECONDS // 3600} h.",
            fix="It is always switched off at its time; ask again where that is too early.",
        )


def body_on(folder: str, threshold: int) -> bytes:
    """What is sent to switch it on: every key that is left out keeps its value."""
    return orjson.dumps({"dump_requests_folder": folder, "dump_requests_threshold": threshold})


def body_off() -> bytes:
    """What is sent to switch it off: an empty folder."""
    return orjson.dumps({"dump_requests_folder": ""})


def command_off(base_url: str) -> str:
    """What switches it off by hand, from any shell that reaches the server."""
    url = shlex.quote(f"{base_url}{PATH}")
    return (
        "curl -X POST -H 'Content-Type: application/json' "
        f"-H \"Authorization: Bearer $SGLANG_ADMIN_KEY\" -d '{body_off().decode()}' {url}"
    )


def sends(tokenizers: int) -> int:
    """How often *off* is sent: each goes to one tokenizer by chance; none may be left on."""
    return 1 if tokenizers <= 1 else min(8 * tokenizers, _MOST_SENDS)


def meant(answered: Answered) -> Meant:
    """What an answer to ``POST /configure_logging`` says."""
    status = answered.status
    if status is None:
        return _silence(answered)
    if status == 200:
        return Meant("done", "The server took it.")
    if status in (401, 403):
        return Meant(
            "refused",
            f"The server refused it with {status}: it wants its admin key.",
            "Store its --admin-api-key as the admin token of the target; the user key is not "
            "enough where it has one.",
        )
    if status in (404, 405):
        return Meant(
            "refused",
            f"The server has no {PATH} ({status}): the Rust ingress, a gateway, another engine.",
            "Keep the exact request by hand, or start it with --crash-dump-folder.",
        )
    if status < 500:
        return Meant("refused", f"The server refused it with {status}. {answered.detail}".strip())
    return Meant("not known", f"The server answered {status}: it may have taken it or not.")


def _silence(answered: Answered) -> Meant:
    if answered.nothing_sent:
        return Meant("not sent", f"Nothing was sent. {answered.detail}".strip())
    return Meant("not known", f"It was sent and no whole answer came. {answered.detail}".strip())


def refusal(known: Known) -> Meant | None:
    """Why nothing is sent to a server of which that much is known."""
    if known.frontend != "rust":
        return None
    return Meant(
        "refused",
        "This server has the Rust ingress, which writes no dump of any kind.",
        "Keep the exact request by hand. Collect a bundle again if it was restarted since.",
    )


def doubts(known: Known, *, admin_token: bool) -> list[str]:
    """What speaks against it, said before anything is sent."""
    told = []
    if not admin_token:
        told.append(
            "No admin token is stored for this target. A server with an admin key answers 401 and "
            "changes nothing; one without any key takes it."
        )
    if known.frontend is None:
        told.append(
            "Which frontend it has is not known: no bundle told. The Rust ingress and other "
            "engines answer 404 and change nothing."
        )
    if known.tokenizers is None:
        told.append("How many tokenizers it runs is not known: with several, read on below.")
    elif known.tokenizers > 1:
        told.append(
            f"It runs {known.tokenizers} tokenizers: the setting reaches one of them by chance, so "
            "the other requests are not recorded. Files of several overwrite each other within a "
            f"second. Off is sent {sends(known.tokenizers)} times, so that most likely each is "
            "reached; only a restart makes it certain."
        )
    if known.several_servers:
        told.append("More than one server answers at this address: only one of them is reached.")
    return told


def pause_seconds(tries: int) -> float | None:
    """How long after that many tries *off* is sent again; None: no more."""
    return RETRY_SECONDS[tries - 1] if 0 < tries <= len(RETRY_SECONDS) else None
