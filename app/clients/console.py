"""Hands a bundle from a bastion over to a console, where an incident waits for it."""

import httpx

from app.errors import ConsoleError, Rejected, Unreachable

_TIMEOUT_SECONDS = 60.0
_MAX_DETAIL = 300


def push(console_url: str, incident: int, *, archive: bytes, name: str, token: str) -> None:
    """Attach *archive* to that incident; raises ConsoleError when the console does not take it."""
    url = f"{console_url.rstrip('/')}/api/v1/incidents/{incident}/artifacts"
    try:
        answer = httpx.post(
            url,
            files={"file": (name, archive, "application/zip")},
            headers={"Authorization": f"Bearer {token}"},
            timeout=_TIMEOUT_SECONDS,
        )
    except httpx.InvalidURL as error:
        raise Rejected(f"{console_url} is not a URL.") from error
    except httpx.HTTPError as error:
        raise Unreachable(f"The console did not take the bundle: {error}.") from error
    if not answer.is_success:
        raise ConsoleError(
            f"The console answered {answer.status_code}: {_detail(answer)}",
            fix="The bundle is kept; push it again or attach it on the incident's page.",
        )


def _detail(answer: httpx.Response) -> str:
    try:
        body = answer.json()
    except ValueError:
        return answer.reason_phrase
    detail = body.get("detail") if isinstance(body, dict) else None
    return str(detail or answer.reason_phrase)[:_MAX_DETAIL]
