"""The shape of the code base, held by measurement."""

import ast
from collections.abc import Iterator
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
MODULES = sorted((ROOT / "app").rglob("*.py"))
LONGEST_MODULE = 400
LONGEST_FUNCTION = 40

UNPICKLERS = {"pickle", "_pickle", "dill", "cloudpickle", "marshal", "shelve"}
TEMPLATE_ENGINE_ONLY_IN = {"app/web/render.py"}
# The job runner and the last resort of the web: a mistake of ours becomes words.
BROAD_EXCEPTS_ONLY_IN = ["app/jobs/engine.py", "app/web/failures.py"]


def _functions(tree: ast.AST) -> Iterator[ast.FunctionDef | ast.AsyncFunctionDef]:
    for node in ast.walk(tree):
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
            yield node


def _lines_of_code(function: ast.FunctionDef | ast.AsyncFunctionDef) -> int:
    docstring = ast.get_docstring(function)
    end = function.end_lineno or function.lineno
    return end - function.lineno + 1 - (len(docstring.splitlines()) if docstring else 0)


def _imported(tree: ast.AST) -> set[str]:
    names: set[str] = set()
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            names.update(alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom) and node.module:
            names.add(node.module)
    return names


@pytest.mark.parametrize("module", MODULES, ids=lambda path: str(path.relative_to(ROOT)))
def test_a_module_is_short_has_short_functions_and_says_what_it_is(module: Path) -> None:
    text = module.read_text()
    tree = ast.parse(text)

    assert len(text.splitlines()) <= LONGEST_MODULE
    too_long = [f.name for f in _functions(tree) if _lines_of_code(f) > LONGEST_FUNCTION]
    assert too_long == []
    assert module.name == "__init__.py" or ast.get_docstring(tree)


def test_nothing_can_unpickle() -> None:
    offenders = [
        f"{module.relative_to(ROOT)}: {name}"
        for module in MODULES
        for name in _imported(ast.parse(module.read_text()))
        if name.split(".")[0] in UNPICKLERS
    ]
    assert offenders == []


def test_the_domain_imports_the_standard_library_and_orjson_only() -> None:
    # zstd is of the standard library from Python 3.14 on; before, this is its backport.
    allowed = {"orjson", "app", "backports", "compression"}
    foreign = {
        f"{module.relative_to(ROOT)}: {name}"
        for module in MODULES
        if "domain" in module.parts
        for name in _imported(ast.parse(module.read_text()))
        if name.split(".")[0] not in allowed | set(__import__("sys").stdlib_module_names)
    }
    assert foreign == set()


def test_broad_excepts_stand_where_they_are_named_only() -> None:
    broad = [
        str(module.relative_to(ROOT))
        for module in MODULES
        for node in ast.walk(ast.parse(module.read_text()))
        if isinstance(node, ast.ExceptHandler)
        and (node.type is None or getattr(node.type, "id", "") in ("Exception", "BaseException"))
    ]
    assert sorted(broad) == BROAD_EXCEPTS_ONLY_IN
