"""Everything this application raises on purpose.

* ConsoleError
  x NotFound            no such incident, bundle, artifact, job or link
  x Unauthenticated     nobody is signed in, or the token is unknown
  x Forbidden           signed in, but the role does not allow it
  x Conflict            the request makes sense, but not in the present state
    + Damaged           stored bytes no longer match their hash; they are never served
  x Rejected            input that we refuse as it stands
    + TooLarge          more bytes than the limit allows
    + Malformed         not the format it should be; the message says where
    + UnknownHost       the request names a host that is not this console's
  x Throttled           too many tries; the message says when to come back
  x NoSpace             writing would leave less free space than the operator wants
  x Unreachable         a target or an agent did not answer
  x Misconfigured       a setting is unknown, missing or impossible
  x Interrupted         an intrusive step was cut off and asks again before it acts

No error here knows about HTTP; ``app.web.failures`` gives each its status code.
"""

from typing import ClassVar


class ConsoleError(Exception):
    """Base of all. *what* happened, *why*, how to *fix* it and a *command* to run it yourself.

    The texts are for the person reading the page: plain sentences, no apology.
    """

    code: ClassVar[str] = "error"

    def __init__(
        self,
        what: str,
        *,
        why: str | None = None,
        fix: str | None = None,
        command: str | None = None,
    ) -> None:
        super().__init__(what)
        self.what, self.why, self.fix, self.command = what, why, fix, command

    @property
    def detail(self) -> str:
        """What, why and fix as one paragraph, for JSON and for the terminal."""
        return " ".join(part for part in (self.what, self.why, self.fix) if part)


class NotFound(ConsoleError):
    """No such thing, or not visible to this reader."""

    code = "not-found"


class Unauthenticated(ConsoleError):
    """Nobody is signed in, or the token is unknown, expired or revoked."""

    code = "unauthenticated"


class Forbidden(ConsoleError):
    """Signed in, but the role does not allow it."""

    code = "forbidden"


class Conflict(ConsoleError):
    """The request makes sense, but not in the present state."""

    code = "conflict"


class Damaged(Conflict):
    """Stored bytes no longer match their hash; they are never served."""

    code = "damaged"


class Rejected(ConsoleError):
    """Input that is refused as it stands."""

    code = "rejected"


class TooLarge(Rejected):
    """More bytes, rows or digits than the limit allows."""

    code = "too-large"


class Malformed(Rejected):
    """Not the format it should be; the message says where it stops making sense."""

    code = "malformed"


class UnknownHost(Rejected):
    """The request names a host that is not this console's: a wrong setting, or an attack."""

    code = "unknown-host"


class Throttled(ConsoleError):
    """Too many tries in too short a time."""

    code = "throttled"

    def __init__(self, what: str, *, retry_after_seconds: int, fix: str | None = None) -> None:
        super().__init__(what, fix=fix)
        self.retry_after_seconds = retry_after_seconds


class NoSpace(ConsoleError):
    """Writing would leave less free space than MIN_FREE_BYTES."""

    code = "no-space"


class Unreachable(ConsoleError):
    """A target or an agent did not answer in time; *nothing_sent*: it was never asked either."""

    code = "unreachable"

    def __init__(
        self,
        what: str,
        *,
        why: str | None = None,
        fix: str | None = None,
        command: str | None = None,
        nothing_sent: bool = False,
    ) -> None:
        super().__init__(what, why=why, fix=fix, command=command)
        self.nothing_sent = nothing_sent


class Misconfigured(ConsoleError):
    """A setting is unknown, missing or impossible."""

    code = "misconfigured"


class Interrupted(ConsoleError):
    """An intrusive step was cut off; it is not repeated without a person's consent."""

    code = "interrupted"
