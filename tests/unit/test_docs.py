"""What the documents say is held to what the code does."""

import ast
import hashlib
import re
import tomllib
from pathlib import Path

import pytest

from app.clients.collector import MADE_BY
from app.settings import PREFIX, Settings

ROOT = Path(__file__).parents[2]
SPEEDSCOPE = "speedscope-1.25.0"
VENDORED = {
    "htmx-4.0.1.min.js": "a0abb04f2f45a1f89d1d4844023245537e5e6014c87b144553e0607b4cc32130",
    "hx-sse-4.0.1.min.js": "18ef2761356ec1fe0bb6d92612315b37517a7c1e9856b661c5ae81fef239d103",
    f"{SPEEDSCOPE}/speedscope-Y2522XSH.js": (
        "12b7fcfa95b1f07633886569903e0117043d810c83951ac9084e34c689ef1044"
    ),
    f"{SPEEDSCOPE}/speedscope-GHPHNKXC.css": (
        "0f823f58242a0ca365d46761dd99034626931157a08e24dd667b310363209bc9"
    ),
    f"{SPEEDSCOPE}/SourceCodePro-Regular.ttf-ILST5JV6.woff2": (
        "8badfe75c98da1e8315a52619f177def4618350f7b3e496baf5b8894da2c2ac0"
    ),
    f"{SPEEDSCOPE}/LICENSE": "6244b13e9bf25cfd42d81c939d6c535d932596e8c320050234f2c2ac5a6f36a0",
    f"{SPEEDSCOPE}/source-code-pro.LICENSE.md": (
        "2e14ee65e55dbcc7d66347cd7c76a10a1a18ac49dd7989a2b3838b479676f746"
    ),
}
FORBIDDEN_WORDS = {
    "attachment",
    "blob",
    "postmortem",
    "staging",
    "helper",
    "helpers",
    "manager",
    "utils",
}


def test_every_setting_is_documented() -> None:
    text = (ROOT / "docs/settings.md").read_text()
    documented = set(re.findall(rf"`({PREFIX}[A-Z_]+)`", text))
    assert documented == {PREFIX + name.upper() for name in Settings.model_fields}


@pytest.mark.parametrize(("name", "sha256"), VENDORED.items(), ids=str)
def test_a_vendored_file_is_the_one_we_chose(name: str, sha256: str) -> None:
    assert hashlib.sha256((ROOT / "static/vendor" / name).read_bytes()).hexdigest() == sha256


def test_no_file_is_vendored_without_its_hash_and_its_licence() -> None:
    folder = ROOT / "static/vendor"
    files = {str(path.relative_to(folder)) for path in folder.rglob("*") if path.is_file()}
    licences = (folder / "LICENSES.md").read_text()

    assert files - {"LICENSES.md"} == VENDORED.keys()
    assert {name for name in VENDORED if name not in licences} == set()


def test_a_bundle_names_the_version_that_made_it() -> None:
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
    assert f"incident-console {project['version']}" == MADE_BY


def test_every_decision_is_listed_and_every_listed_one_exists() -> None:
    folder = ROOT / "docs/decisions"
    listed = set(re.findall(r"\((\d{4}-[a-z-]+\.md)\)", (folder / "README.md").read_text()))
    assert listed == {path.name for path in folder.glob("0*.md")}


def test_links_between_documents_lead_somewhere() -> None:
    documents = [*ROOT.glob("*.md"), *(ROOT / "docs").rglob("*.md")]
    missing = [
        f"{document.relative_to(ROOT)} -> {link}"
        for document in documents
        for link in re.findall(r"\]\((?!https?:|#|mailto:)([^)#]+)", document.read_text())
        if not (document.parent / link).exists()
    ]
    assert missing == []


def test_identifiers_use_the_words_of_the_glossary() -> None:
    words: dict[str, str] = {}
    for module in (ROOT / "app").rglob("*.py"):
        for node in ast.walk(ast.parse(module.read_text())):
            if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef):
                for word in re.findall(r"[A-Z]?[a-z]+", node.name):
                    words.setdefault(word.lower(), f"{module.name}:{node.lineno} {node.name}")
    assert {word: where for word, where in words.items() if word in FORBIDDEN_WORDS} == {}
