"""The HTTP application of one vault. Every answer is a function of public data, keys, and paid releases.

Endpoints stand in `asking.py`, `advising.py` and `owning.py`. This file puts them together with the middleware
(`watch.py`), the errors, the web console, /health, and the background threads.
"""

from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from importlib import resources

from anyio import CapacityLimiter, to_thread
from fastapi import APIRouter, FastAPI, Request, Response
from fastapi.exceptions import RequestValidationError
from fastapi.responses import JSONResponse
from starlette.exceptions import HTTPException

from privcfs.errors import NoKey, PrivcfsError
from privcfs.gate.vault import Vault
from privcfs.service import advising, asking, owning
from privcfs.service.doorkeeper import Doorkeeper
from privcfs.service.health import LEDGER, LOG, Health, Housekeeper
from privcfs.service.identity import Identities
from privcfs.service.keys import Keys
from privcfs.service.log import Log
from privcfs.service.marks import marks_of
from privcfs.service.metrics import Metrics
from privcfs.service.overview import Spending
from privcfs.service.pace import Pace
from privcfs.service.schemas import PROBLEMS, Problem
from privcfs.service.state import Service, This
from privcfs.service.watch import MOST_AT_ONCE, Watch

SCRIPTS = ("console", "common", "drawing", "person", "analyst", "answers", "features", "node_field", "owner")
CONSOLE = (
    ("/", "index.html", "text/html"),
    ("/console.css", "console.css", "text/css"),
    *((f"/{name}.js", f"{name}.js", "text/javascript") for name in SCRIPTS),
)
OPEN_TO_ALL = APIRouter()
ROUTERS = (asking.ROUTER, advising.ROUTER, advising.FOR_ANYONE, owning.ROUTER, OPEN_TO_ALL)


def make_app(vault: Vault, keys: Keys, log: Log, identities: Identities | None = None) -> FastAPI:
    """The service of one vault; with `identities`, a reverse proxy may say who asks."""
    metrics = Metrics(lambda: vault.failures)
    service = Service(vault, keys, log, metrics, Pace(), Health(), CapacityLimiter(MOST_AT_ONCE), Spending())
    app = FastAPI(
        title="privcfs",
        version="1",
        description="Private counterfactual explanations, one budget for all analysts.",
        docs_url=None,
        redoc_url=None,
        redirect_slashes=False,  # A redirect would repeat whatever host name the request contains.
        lifespan=_lifespan_of(service),
        responses={status: {"model": Problem, "description": words} for status, words in PROBLEMS.items()},
    )
    app.state.service = service
    for router in ROUTERS:
        app.include_router(router)
    _add_errors(app)
    _add_console(app)
    marks = marks_of(route for router in ROUTERS for route in router.routes)
    app.add_middleware(Watch, Doorkeeper(keys, service.pace, identities), log, service.metrics, marks)
    return app


@OPEN_TO_ALL.get("/health", summary="Whether the service and its ledger answer")
async def health(service: This, response: Response) -> dict[str, str]:
    response.status_code, found = service.health.find()
    return found


def _lifespan_of(service: Service) -> Callable[[FastAPI], AbstractAsyncContextManager[None]]:
    """Runs the housekeepers: once before the first request is served, and then repeatedly until the service stops."""

    def keep_log() -> None:
        service.log.flush()
        service.log.prune()

    @asynccontextmanager
    async def lifespan(_: FastAPI) -> AsyncIterator[None]:
        works: dict[str, Callable[[], object]] = {LEDGER: service.ledger.ready, LOG: keep_log}
        housekeepers = [Housekeeper(name, work, service.health, service.metrics) for name, work in works.items()]
        for one in housekeepers:
            await to_thread.run_sync(one.look)
            one.start()
        yield
        for one in housekeepers:
            await to_thread.run_sync(one.end)

    return lifespan


def _add_errors(app: FastAPI) -> None:
    """The handlers are coroutines because FastAPI runs other functions in a thread, for which they might wait."""

    @app.exception_handler(PrivcfsError)
    async def ours(_: Request, error: PrivcfsError) -> JSONResponse:
        headers = {"WWW-Authenticate": "Bearer"} if isinstance(error, NoKey) else {}
        return JSONResponse({"error": type(error).__name__, "message": str(error)}, error.status, headers)

    @app.exception_handler(RequestValidationError)
    async def malformed(_: Request, error: RequestValidationError) -> JSONResponse:
        where = ", ".join(".".join(str(part) for part in one["loc"]) + ": " + one["msg"] for one in error.errors()[:5])
        return JSONResponse({"error": "InputError", "message": f"the request is not understood: {where}"}, 422)

    @app.exception_handler(HTTPException)
    async def http(_: Request, error: HTTPException) -> JSONResponse:
        return JSONResponse({"error": "HTTP", "message": str(error.detail)}, error.status_code, error.headers)


def _add_console(app: FastAPI) -> None:
    """The web console consists of a few files of this package, and loads nothing from elsewhere."""
    for path, name, media_type in CONSOLE:
        content = (resources.files("privcfs.service") / "console" / name).read_bytes()
        app.add_api_route(path, _page(content, media_type), include_in_schema=False, name=name)


def _page(content: bytes, media_type: str) -> Callable[[], Awaitable[Response]]:
    async def page() -> Response:
        return Response(content, media_type=media_type)

    return page
