"""What an HTTP answer of an endpoint is: an answer, not offered, no access, or to be rejected."""

from app.domain.capture import Outcome
from app.domain.endpoints import BY_NAME, Form
from app.domain.plain_json import read_json
from app.errors import Malformed

_ADMIN_KEY = b"admin"  # "This endpoint requires admin API key, …"


def outcome_of(name: str, status: int, body: bytes) -> tuple[Outcome, str]:
    """The outcome of the capture called *name*, and the detail that the outcome does not say."""
    if 300 <= status < 400:
        return Outcome.REJECTED, "A redirect; it was not followed."
    if status == 404:
        return Outcome.NOT_OFFERED, ""
    if status in (401, 403):
        return Outcome.NO_ACCESS, ""
    if status == 400 and name == "hicache" and _ADMIN_KEY in body.lower():
        return Outcome.NO_ACCESS, "Needs an admin API key; the server was started without one."
    if status != 200:
        return Outcome.ANSWERED, ""
    return _form_of(name, body)


def _form_of(name: str, body: bytes) -> tuple[Outcome, str]:
    """Whether *body* is what the endpoint should send."""
    endpoint = BY_NAME.get(name)
    if endpoint is None or endpoint.form is Form.TEXT:
        return Outcome.ANSWERED, ""
    if not body:
        return Outcome.REJECTED, "An empty answer where JSON is expected."
    try:
        value = read_json(body)
    except Malformed as error:
        return Outcome.REJECTED, error.what
    if endpoint.form is Form.OBJECT and not isinstance(value, dict):
        return Outcome.REJECTED, f"JSON, but {_kind(value)} where an object is expected."
    return Outcome.ANSWERED, ""


def _kind(value: object) -> str:
    if value is None:
        return "null"
    return {list: "a list", str: "a string", bool: "true or false"}.get(type(value), "a number")
