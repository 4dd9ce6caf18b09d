"""Views and templates fit each other, and no template carries code or style."""

import importlib
import pkgutil
import re
from collections.abc import Iterator
from dataclasses import fields
from functools import cache
from pathlib import Path

import pytest
from jinja2 import meta, nodes

from app import files
from app.web import views
from app.web.render import template_environment
from app.web.views import Fragment, Page, View

ENVIRONMENT = template_environment()
TEMPLATES = sorted(path.relative_to(files.TEMPLATES) for path in files.TEMPLATES.rglob("*.html"))
GIVEN_BY_RENDER = {"request", "url_for", "asset", *ENVIRONMENT.globals}
JINJA = re.compile(r"\{\{.*?\}\}|\{%.*?%\}|\{#.*?#\}", re.DOTALL)

for module in pkgutil.iter_modules(views.__path__):
    importlib.import_module(f"{views.__name__}.{module.name}")


def _concrete(kind: type[View]) -> Iterator[type[View]]:
    for narrower in kind.__subclasses__():
        if "template" in vars(narrower):
            yield narrower
        yield from _concrete(narrower)


VIEWS = list(_concrete(View))


@cache
def _tree(template: str) -> nodes.Template:
    loader = ENVIRONMENT.loader
    assert loader is not None
    return ENVIRONMENT.parse(loader.get_source(ENVIRONMENT, template)[0])


@cache
def _referenced(template: str) -> frozenset[str]:
    """The template itself and all that it extends, includes and imports."""
    found = {template}
    for other in meta.find_referenced_templates(_tree(template)):
        assert other is not None, f"{template} must name the templates it includes"
        found |= _referenced(other)
    return frozenset(found)


def _own_names(tree: nodes.Template) -> set[str]:
    """Names that a template gives itself: ``import … as`` and ``set``, which blocks see too."""
    assigned = {
        name.name
        for assign in tree.find_all(nodes.Assign)
        for name in (assign.target, *assign.target.find_all(nodes.Name))
        if isinstance(name, nodes.Name)
    }
    imported = {found.target for found in tree.find_all(nodes.Import)}
    return assigned | imported


@cache
def _names_used(template: str) -> frozenset[str]:
    used: set[str] = set()
    for other in _referenced(template):
        tree = _tree(other)
        used |= meta.find_undeclared_variables(tree) - _own_names(tree)
    return frozenset(used - GIVEN_BY_RENDER)


def _markup(template: Path) -> str:
    """The template's own text; what Jinja fills in is left out as ``…``."""
    return JINJA.sub("…", (files.TEMPLATES / template).read_text())


@pytest.mark.parametrize("view", VIEWS, ids=lambda view: view.__name__)
def test_a_view_gives_its_template_exactly_the_names_it_uses(view: type[View]) -> None:
    given = {field.name for field in fields(view)}  # type: ignore[arg-type]

    assert _names_used(view.template) == given


@pytest.mark.parametrize("view", VIEWS, ids=lambda view: view.__name__)
def test_a_page_is_a_whole_page_and_a_fragment_has_one_root_with_its_own_id(
    view: type[View],
) -> None:
    text = (files.TEMPLATES / view.template).read_text()
    name = Path(view.template).stem
    if issubclass(view, Page):
        assert '{% extends "base.html" %}' in text
    if issubclass(view, Fragment):
        assert name.startswith("_")
        root = re.search(r"<[a-z][^>]*>", text)
        assert root is not None
        assert re.search(rf'\bid="{name[1:].replace("_", "[-_]")}[-"{{]', root[0])


@pytest.mark.parametrize("template", TEMPLATES, ids=str)
def test_a_template_has_no_inline_code_no_inline_style_and_nothing_unescaped(
    template: Path,
) -> None:
    text, markup = (files.TEMPLATES / template).read_text(), _markup(template)

    assert not re.search(r"\sstyle\s*=|<style", markup, re.IGNORECASE)
    assert not re.search(r"\s(on[a-z]+|hx-on\S*)\s*=", markup, re.IGNORECASE)
    assert not re.search(r"\|\s*safe\b|autoescape", text)
    assert not re.search(r"hx-trigger=\"[^\"]*\[", markup), "a filter needs eval"
    assert all("src=" in script for script in re.findall(r"<script\b[^>]*>", markup))


@pytest.mark.parametrize("template", TEMPLATES, ids=str)
def test_links_of_a_template_are_made_by_url_for(template: Path) -> None:
    addresses = re.findall(
        r'\s(?:href|src|action|hx-get|hx-post|hx-patch|hx-delete)="([^"]*)"', _markup(template)
    )

    # An empty one is the page itself.
    foreign = [link for link in addresses if not link.startswith(("…", "#", "?", "data:,"))]
    assert set(foreign) <= {""}


def test_every_template_is_reached_from_a_view() -> None:
    reached = set().union(*(_referenced(view.template) for view in VIEWS))

    assert {str(template) for template in TEMPLATES} - reached == set()
