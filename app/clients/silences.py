"""What it means that no whole answer came: refused, broken, or over a limit of ours."""

import errno
import socket
import ssl

import httpcore

from app.domain.capture import Outcome
from app.errors import ConsoleError, Rejected

_OVER_A_CAP = ("buffer too long", "too many headers")
_UNREACHABLE = {
    errno.ENETUNREACH: "There is no route to this network.",
    errno.EHOSTUNREACH: "There is no route to this host.",
    errno.ETIMEDOUT: "The connection was given up by the operating system.",
}

# Everything that an exchange with a target can end in.
SILENCES = (
    httpcore.NetworkError,
    httpcore.ProtocolError,
    httpcore.TimeoutException,
    OSError,
    ConsoleError,
)


def silence(error: Exception) -> tuple[Outcome, str]:
    """The outcome that *error* stands for, and its reason in words."""
    chain = _chain(error)
    for inside in chain:
        if isinstance(inside, ConsoleError):
            outcome = Outcome.REJECTED if isinstance(inside, Rejected) else Outcome.ERROR
            return outcome, inside.what
        if isinstance(inside, ConnectionRefusedError):
            return Outcome.REFUSED, ""
    return _broken(error, chain)


def _broken(error: Exception, chain: list[BaseException]) -> tuple[Outcome, str]:
    for inside in chain:
        if isinstance(inside, ssl.SSLError):
            return Outcome.ERROR, f"TLS failed: {inside.reason or inside.args[-1]}."
        if isinstance(inside, ConnectionResetError | BrokenPipeError):
            return Outcome.ERROR, "The server reset the connection."
        if isinstance(inside, socket.gaierror):
            return Outcome.ERROR, "The name is not known."
        if isinstance(inside, OSError) and inside.errno in _UNREACHABLE:
            return Outcome.ERROR, _UNREACHABLE[inside.errno]
    if isinstance(error, httpcore.ProtocolError):
        over = any(words in str(error).lower() for words in _OVER_A_CAP)
        return (Outcome.REJECTED if over else Outcome.ERROR), f"Not proper HTTP: {error}"[:200]
    return Outcome.ERROR, f"The connection broke ({type(error).__name__})."


def _chain(error: BaseException) -> list[BaseException]:
    """*error* and what it was raised from, groups taken apart, outermost first."""
    found: list[BaseException] = []
    waiting: list[BaseException | None] = [error]
    while waiting:
        inside = waiting.pop(0)
        if inside is None or inside in found:
            continue
        found.append(inside)
        if isinstance(inside, BaseExceptionGroup):
            waiting.extend(inside.exceptions)
        waiting += [inside.__cause__, inside.__context__]
    return found
