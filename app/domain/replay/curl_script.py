"""The smallest set of requests as a shell script of curl commands."""

import shlex
from collections.abc import Sequence

from app.domain.replay.planned import Sending
from app.domain.replay.reproducer import LONGEST_INLINE_BYTES, TOKEN_VARIABLE, body_file, curl

SCRIPT_FILE = "send.sh"


def script(sendings: Sequence[Sending], base_url: str, *, with_token: bool, together: bool) -> str:
    """Sends *sendings* in their order; *together*: none waits for the answer to the one before.

    The target may be named as its first argument. A key is taken from the environment.
    """
    lines = [
        "#!/bin/sh",
        "# Sends the smallest set of requests that brought the fault about, in their order.",
        "set -eu",
        'cd "$(dirname "$0")"',
        f"base_url=${{1:-{shlex.quote(base_url)}}}",
    ]
    if with_token:
        lines.append(f': "${{{TOKEN_VARIABLE}:?the key of the target}}"')
    several = together and len(sendings) > 1
    for sending in sendings:
        command = curl(sending, "BASE", with_token=with_token)
        url = f'"$base_url"{shlex.quote(sending.path)}'
        lines.append(command.replace(f"BASE{sending.path}", url, 1) + (" &" if several else ""))
    lines += ["wait"] if several else []
    return "\n".join(lines) + "\n"


def body_files(sendings: Sequence[Sending]) -> dict[str, bytes]:
    """The files that the script reads, by name: bodies too long to stand in it."""
    long = (one for one in sendings if len(one.body) > LONGEST_INLINE_BYTES)
    return {body_file(one): one.body for one in long}
