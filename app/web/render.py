"""From a view to a response. The only module that knows the template engine."""

from dataclasses import fields

from fastapi import Request
from fastapi.responses import HTMLResponse
from fastapi.templating import Jinja2Templates
from jinja2 import Environment, FileSystemLoader, StrictUndefined

from app import files
from app.web import formats
from app.web.links import Links
from app.web.views import View


def template_environment() -> Environment:
    """Jinja with autoescape everywhere and no forgiving of missing names.

    Texts of targets stand on many pages, so what a page must never hold is taken out of
    everything that is shown and not left to each template.
    """
    environment = Environment(
        loader=FileSystemLoader(files.TEMPLATES),
        autoescape=True,
        undefined=StrictUndefined,
        finalize=formats.harmless,
        trim_blocks=True,
        lstrip_blocks=True,
        auto_reload=False,
    )
    environment.filters.update(formats.FILTERS)
    return environment


_templates = Jinja2Templates(env=template_environment())


def render(request: Request, view: View, *, status: int = 200) -> HTMLResponse:
    """The response that shows *view*, a page and a fragment alike."""
    links = Links(request)
    context = {field.name: getattr(view, field.name) for field in fields(view)}  # type: ignore[arg-type]
    context |= {"url_for": links.url_for, "asset": links.asset}
    return _templates.TemplateResponse(request, view.template, context, status_code=status)
