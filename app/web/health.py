"""For machines that watch the console: is the process alive, can it work, and its figures."""

from datetime import UTC, datetime, timedelta
from ipaddress import ip_address

from fastapi import APIRouter, Request
from fastapi.responses import JSONResponse, Response
from obstore.exceptions import BaseError
from prometheus_client import CONTENT_TYPE_LATEST, generate_latest
from sqlalchemy.exc import SQLAlchemyError
from sqlmodel import Session, col, func, select

from app.errors import Unauthenticated
from app.store.database import reading
from app.store.stores import Stores
from app.store.tables import BundleRow, Job, Worker
from app.web.dependencies import AppStores, Reading, current_actor
from app.web.metrics import Metrics

router = APIRouter(include_in_schema=False)
WORKER_SILENT_AFTER = timedelta(seconds=30)
_NO_HASH = "0" * 64  # asked for to see whether the store answers
_FORWARDED = ("forwarded", "x-forwarded-for", "x-real-ip")


@router.get("/healthz", name="healthz")
async def healthz() -> dict[str, str]:
    """The process answers; nothing else is said."""
    return {"status": "ok"}


@router.get("/readyz", name="readyz")
def readyz(stores: AppStores) -> JSONResponse:
    """503 when database or storage fail or no worker was heard; each is told by itself."""
    checks = {"database": _database(stores), "storage": _storage(stores), "worker": _worker(stores)}
    ready = all(told == "ok" for told in checks.values())
    told = {"status": "ok" if ready else "not ready", **checks}
    return JSONResponse(told, 200 if ready else 503)


@router.get("/metrics", name="metrics")
def metrics(request: Request, session: Reading) -> Response:
    """Prometheus text for signed-in readers, bearer tokens and programs on this machine."""
    if current_actor(request) is None and not _is_local(request):
        raise Unauthenticated("The console's figures are not public.", fix="Send a bearer token.")
    own: Metrics = request.app.state.metrics
    _count(session, own)
    return Response(generate_latest(own.registry), media_type=CONTENT_TYPE_LATEST)


def _count(session: Session, own: Metrics) -> None:
    own.jobs.clear()
    for state, count in session.exec(select(Job.state, func.count()).group_by(col(Job.state))):
        own.jobs.labels(state).set(count)
    own.bundles.set(session.exec(select(func.count()).select_from(BundleRow)).one())


def _is_local(request: Request) -> bool:
    """Whether a program on this machine asks; a proxy on this machine asks for others."""
    if request.client is None or any(name in request.headers for name in _FORWARDED):
        return False
    try:
        return ip_address(request.client.host).is_loopback
    except ValueError:  # a name, as test clients have
        return False


def _database(stores: Stores) -> str:
    try:
        with reading(stores.engine) as session:
            session.exec(select(1))
    except SQLAlchemyError as error:
        return f"failed: {type(error).__name__}"
    return "ok"


def _storage(stores: Stores) -> str:
    artifacts = stores.artifacts
    try:
        artifacts.has(_NO_HASH)
    except (OSError, BaseError) as error:
        return f"failed: {type(error).__name__}"
    return "ok" if artifacts.root is None or artifacts.root.is_dir() else "failed: no such folder"


def _worker(stores: Stores) -> str:
    try:
        with reading(stores.engine) as session:
            newest = select(Worker.heard_at).order_by(col(Worker.heard_at).desc()).limit(1)
            heard = session.exec(newest).first()
    except SQLAlchemyError as error:
        return f"not known: {type(error).__name__}"
    if heard is None:
        return "none started"
    silent = datetime.now(UTC) - heard
    return "ok" if silent < WORKER_SILENT_AFTER else f"silent for {silent.total_seconds():.0f} s"
