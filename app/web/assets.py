"""Files of static/: kept for a year under their hash, asked for again without it."""

from os import PathLike
from urllib.parse import parse_qs

from starlette.responses import Response
from starlette.staticfiles import StaticFiles
from starlette.types import Scope

from app import files
from app.web.links import fingerprint


class Assets(StaticFiles):
    """What ``asset()`` in a template points to."""

    def __init__(self) -> None:
        super().__init__(directory=files.STATIC)

    def file_response(
        self,
        full_path: str | PathLike[str],
        stat_result: object,
        scope: Scope,
        status_code: int = 200,
    ) -> Response:
        answer = super().file_response(full_path, stat_result, scope, status_code)  # type: ignore[arg-type]
        asked = parse_qs(scope["query_string"].decode("latin-1")).get("v", [""])[0]
        name = str(full_path).removeprefix(f"{files.STATIC}/")
        same = asked != "" and asked == fingerprint(name)
        answer.headers["Cache-Control"] = (
            "public, max-age=31536000, immutable" if same else "no-cache"
        )
        return answer
