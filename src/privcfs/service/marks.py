"""Marks of endpoints: `timed` and `logged` stand where an endpoint is declared, and `marks_of` collects them.

The middleware (`watch.py`) has to know them by method and path, because it decides before a request is routed.
"""

from collections.abc import Awaitable, Callable, Iterable
from dataclasses import dataclass
from functools import partial, wraps
from typing import Any, Literal, TypeVar, final

from anyio import to_thread
from fastapi.routing import APIRoute
from starlette.routing import BaseRoute

from privcfs.errors import LedgerError, LedgerLocked
from privcfs.service.health import LEDGER
from privcfs.service.state import Service

Answer = TypeVar("Answer")
Endpoint = TypeVar("Endpoint", bound=Callable[..., Any])
Mark = Literal["timed", "logged"]
ATTRIBUTE = "privcfs_marks"
Routes = frozenset[tuple[str, str]]


@final
@dataclass(frozen=True, slots=True)
class Marks:
    """The marked endpoints of an application, each as its method and the path of its route."""

    timed: Routes = frozenset()
    logged: Routes = frozenset()


def logged(endpoint: Endpoint) -> Endpoint:
    """Marks an endpoint whose requests are written to the log, refused ones included if they came with a valid key."""
    return _marked(endpoint, "logged")


def timed(work: Callable[..., Answer]) -> Callable[..., Awaitable[Answer]]:
    """Marks an endpoint that may wait for the public answering time; it must have a parameter `service`.

    Such requests have places and threads of their own, so that they hold up no other endpoint. If the ledger fails,
    /health says so at once and not only after the next look at the ledger.
    """

    @wraps(work)
    async def endpoint(service: Service, **parameters: Any) -> Answer:
        try:
            return await to_thread.run_sync(partial(work, service, **parameters), limiter=service.threads)
        except LedgerLocked:  # Another process is using the ledger, which is no failure of the ledger.
            raise
        except LedgerError as error:
            service.health.note(LEDGER, error)
            raise

    return _marked(endpoint, "timed")


def marks_of(routes: Iterable[BaseRoute]) -> Marks:
    """The marks of all routes. A timed route is recognised by its exact path, so that path has no parameters."""
    timed_routes, logged_routes = _with_mark(routes := list(routes), "timed"), _with_mark(routes, "logged")
    for method, path in timed_routes:
        if "{" in path:
            raise ValueError(f"{method} {path} is timed, but its path has a parameter; send that in the body.")
    return Marks(timed_routes, logged_routes)


def _marked(endpoint: Endpoint, mark: Mark) -> Endpoint:
    setattr(endpoint, ATTRIBUTE, getattr(endpoint, ATTRIBUTE, frozenset()) | {mark})
    return endpoint


def _with_mark(routes: Iterable[BaseRoute], mark: Mark) -> Routes:
    found = [one for one in routes if isinstance(one, APIRoute) and mark in getattr(one.endpoint, ATTRIBUTE, ())]
    return frozenset((method, one.path) for one in found for method in one.methods or ())
