"""The wheel of this checkout, and what an installation of its base dependencies consists of."""

import subprocess
import sys
from collections.abc import Iterator
from importlib.metadata import Distribution, PackageNotFoundError, distribution
from pathlib import Path

from packaging.requirements import Requirement
from packaging.utils import canonicalize_name

ROOT = Path(__file__).parents[1]


def build_wheel(out: Path) -> Path:
    """The wheel, in *out*."""
    build = [sys.executable, "-m", "build", "--wheel", "--no-isolation", "--outdir", str(out)]
    done = subprocess.run([*build, str(ROOT)], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout + done.stderr
    [built] = out.glob("*.whl")
    return built


def install(wheel: Path, *place: str) -> None:
    """Install *wheel* alone; *place*: ``--prefix`` or ``--target`` and the folder."""
    pip = [sys.executable, "-m", "pip", "install", "-q", "--no-deps", "--no-index"]
    # Else pip removes the checkout from the environment of the tests.
    apart = ["--ignore-installed", *place, str(wheel)]
    subprocess.run([*pip, *apart], check=True, capture_output=True)


def base_distributions() -> dict[str, Distribution]:
    """What `pip install .` brings beside ourselves, taken from what is installed here."""
    found: dict[str, Distribution] = {}
    _follow("incident-console", frozenset(), found)
    del found["incident-console"]
    return found


def links_into(site: Path, scripts: Path) -> None:
    """Make *site* and *scripts* hold the base dependencies, by links."""
    for one in base_distributions().values():
        for top, source in _tops(one):
            target = scripts / source.name if top == "bin" else site / top
            target.parent.mkdir(parents=True, exist_ok=True)
            if not target.exists():
                target.symlink_to(source)


def _follow(name: str, extras: frozenset[str], found: dict[str, Distribution]) -> None:
    try:
        one = distribution(name)
    except PackageNotFoundError:
        return  # a marker of another platform keeps it away here too
    for line in one.requires or ():
        needed = Requirement(line)
        wanted = (*extras, "")
        if needed.marker and not any(needed.marker.evaluate({"extra": e}) for e in wanted):
            continue
        key = canonicalize_name(needed.name)
        if key not in found or needed.extras:
            found.setdefault(key, distribution(needed.name))
            _follow(needed.name, frozenset(needed.extras), found)
    found[canonicalize_name(name)] = one


def _tops(one: Distribution) -> Iterator[tuple[str, Path]]:
    """Top-level names of a distribution and where they lie; scripts as "bin"."""
    seen = set()
    for file in one.files or ():
        outside = file.parts[0] == ".."
        if outside and "bin" not in file.parts:
            continue
        path = Path(str(one.locate_file(file))).resolve()
        top = "bin" if outside else file.parts[0]
        source = path if outside else Path(str(one.locate_file(file.parts[0]))).resolve()
        if (top, source) not in seen and source.exists():
            seen.add((top, source))
            yield top, source
