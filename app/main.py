"""The web application: what it is made of, in the order in which a request meets it."""

from collections.abc import AsyncIterator, Callable
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from typing import Protocol

from fastapi import FastAPI
from starlette.concurrency import run_in_threadpool
from starlette.middleware import Middleware

from app.embedding import embed
from app.settings import Settings
from app.store.stores import Stores
from app.web import (
    accounts,
    artifacts,
    audit,
    bundles,
    diagnostics,
    dump_choices,
    dump_comparisons,
    dumps,
    failures,
    flames,
    health,
    hosts,
    incidents,
    jobs,
    login,
    recordings,
    replay_form,
    replay_outcomes,
    replays,
    reports,
    shares,
    targets,
)
from app.web.access import Access
from app.web.api import accounts as accounts_api
from app.web.api import artifacts as artifacts_api
from app.web.api import bundles as bundles_api
from app.web.api import diagnostics as diagnostics_api
from app.web.api import dumps as dumps_api
from app.web.api import hosts as hosts_api
from app.web.api import incidents as incidents_api
from app.web.api import jobs as jobs_api
from app.web.api import recordings as recordings_api
from app.web.api import replays as replays_api
from app.web.api import reports as reports_api
from app.web.api import targets as targets_api
from app.web.api import uploads as uploads_api
from app.web.assets import Assets
from app.web.bodies import BodyLimit
from app.web.failures import LastResort
from app.web.headers import SecurityHeaders
from app.web.logs import RequestLog
from app.web.metrics import Metrics
from app.web.origin import OriginCheck

Lifespan = Callable[[FastAPI], AbstractAsyncContextManager[None]]
PAGES = (
    login,
    incidents,
    targets,
    hosts,
    bundles,
    diagnostics,
    dumps,
    dump_choices,
    dump_comparisons,
    recordings,
    replays,
    replay_form,
    replay_outcomes,
    jobs,
    artifacts,
    flames,
    reports,
    shares,
    accounts,
    audit,
    health,
)
API = (
    incidents_api,
    targets_api,
    hosts_api,
    bundles_api,
    diagnostics_api,
    dumps_api,
    recordings_api,
    replays_api,
    jobs_api,
    artifacts_api,
    uploads_api,
    reports_api,
    accounts_api,
)


class Work(Protocol):
    """What does jobs beside the pages: ``app.jobs.engine.Engine``."""

    def stop(self) -> None:
        """Put back what is in hand."""


StartWork = Callable[[Stores], Work]


def create_app(
    settings: Settings, *, start_work: StartWork | None = None, with_agent: bool = False
) -> FastAPI:
    """The console for *settings*, whose database is migrated; without *start_work* no job is done.

    *with_agent*: an agent for this host runs inside; nothing of it is mounted here.

    OpenAPI tells the routes under /api only: pages are for people.
    """
    metrics = Metrics()
    app = FastAPI(
        title="Incident console",
        summary="Turns a production incident of an SGLang server into a replayable path.",
        openapi_url="/api/openapi.json",
        docs_url=None,  # its page loads scripts from elsewhere
        redoc_url=None,
        lifespan=_lifespan(settings, start_work, with_agent=with_agent),
        middleware=[
            Middleware(RequestLog, metrics=metrics),
            Middleware(SecurityHeaders),
            Middleware(LastResort),
            Middleware(OriginCheck, settings=settings),
            Middleware(BodyLimit),
            Middleware(Access),
        ],
    )
    app.state.metrics = metrics
    failures.register(app)
    app.mount("/static", Assets(), name="static")
    for module in (*PAGES, *API):
        app.include_router(module.router)
    return app


def _lifespan(settings: Settings, start_work: StartWork | None, *, with_agent: bool) -> Lifespan:
    @asynccontextmanager
    async def lifespan(app: FastAPI) -> AsyncIterator[None]:
        app.state.stores = stores = Stores.open(settings)
        agent = await run_in_threadpool(embed, stores) if with_agent else None
        # In a thread, as the engine keeps away from running event loops.
        work = await run_in_threadpool(start_work, stores) if start_work else None
        try:
            yield
        finally:
            if work:
                await run_in_threadpool(work.stop)
            if agent:
                await run_in_threadpool(agent.stop)
            stores.close()

    return lifespan
