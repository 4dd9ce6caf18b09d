"""How a state change is answered: a browser goes on to a page, with htmx and without."""

from fastapi import Request
from fastapi.responses import RedirectResponse, Response


def from_htmx(request: Request) -> bool:
    """Whether htmx asked. Not a proof of anything: every client can say so."""
    return request.headers.get("HX-Request") == "true"


def done(request: Request, to: str) -> Response:
    """Send the reader on to *to*, a URL of ours: 303 for forms, HX-Redirect for htmx."""
    if from_htmx(request):
        return Response(status_code=204, headers={"HX-Redirect": to})
    return RedirectResponse(to, status_code=303)
