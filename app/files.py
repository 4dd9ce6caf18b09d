"""Where templates/, static/ and migrations/ are.

Beside app/ in a checkout, inside it in a wheel.
"""

from pathlib import Path

_PACKAGED = Path(__file__).parent / "_files"
_ROOT = _PACKAGED if _PACKAGED.is_dir() else Path(__file__).parents[1]

TEMPLATES = _ROOT / "templates"
STATIC = _ROOT / "static"
MIGRATIONS = _ROOT / "migrations"
