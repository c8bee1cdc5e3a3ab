"""The HTTP interface. Every answer is a function of public data, keys, and paid releases."""

import json
from collections.abc import AsyncIterator, Awaitable, Callable, Iterable, Iterator
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from dataclasses import dataclass, replace
from fractions import Fraction
from functools import partial, wraps
from importlib import resources
from typing import Annotated, Any, Literal, ParamSpec, TypeVar, final

from anyio import CapacityLimiter, to_thread
from fastapi import Depends, FastAPI, Path, Query, Request, Response
from fastapi.exceptions import RequestValidationError
from fastapi.responses import JSONResponse, PlainTextResponse, StreamingResponse
from fastapi.security import HTTPAuthorizationCredentials, HTTPBearer
from pydantic import BaseModel, ConfigDict, Field
from starlette.exceptions import HTTPException

from privcfs.errors import LedgerError, LedgerLocked, NoKey, NotAllowed, PrivcfsError, UnknownNode, UnknownRequest
from privcfs.gate.accounting import Balance
from privcfs.gate.ledger.ledger import Ledger
from privcfs.gate.vault import Vault
from privcfs.public.context import DIGITS
from privcfs.public.epsilon import parse_epsilon, show
from privcfs.public.interventions import Intervention
from privcfs.public.labels import labels_to_dict
from privcfs.public.release import Release
from privcfs.service.doorkeeper import Doorkeeper, Pace, refused
from privcfs.service.health import LEDGER, LOG, Health, Housekeeper
from privcfs.service.keys import Key, Keys, caps_of_analysts
from privcfs.service.metrics import Metrics
from privcfs.service.watch import MOST_AT_ONCE, Watch

P = ParamSpec("P")
R = TypeVar("R")
LONGEST_BATCH = 100
MOST_DRAWN = 24  # public neighbours in a picture
PAGES = (
    ("/", "index.html", "text/html"),
    ("/console.js", "console.js", "text/javascript"),
    ("/console.css", "console.css", "text/css"),
)
PROBLEMS = {
    400: "The request cannot be read",
    401: "No valid key",
    403: "Not with this key",
    404: "No such node, release or page",
    405: "Not this method",
    408: "The request did not come in time",
    409: "A request id was used before with other parameters",
    413: "Too large",
    422: "Not understood, or not possible",
    429: "Beyond the budget, or too fast",
    431: "The head is too large",
    503: "Busy, or the ledger does not answer: ask again with the same request id",
}
BEARER = HTTPBearer(auto_error=False, description="A key that the owner made")
Text = Annotated[str, Field(min_length=1, max_length=200)]
Number = Annotated[int, Field(strict=True, ge=0, lt=10**18)]


class Question(BaseModel):
    """One release to pay for. A target that is a number is a node's number; text is a name where nodes have names."""

    model_config = ConfigDict(extra="forbid")

    target: Text | Number
    epsilon: Text
    request_id: Annotated[str, Field(min_length=1, max_length=100)] | None = None


class Batch(BaseModel):
    """Several releases, paid together or not at all."""

    model_config = ConfigDict(extra="forbid")

    questions: Annotated[list[Question], Field(min_length=1, max_length=LONGEST_BATCH)]


class NewKey(BaseModel):
    """What a new key may do."""

    model_config = ConfigDict(extra="forbid")

    analyst: Text
    days: Annotated[int, Field(ge=1, le=3650)] = 90
    cap: Text | None = None
    targets: Annotated[list[Text], Field(max_length=10_000)] | None = None
    per_minute: Annotated[int, Field(ge=1, le=100_000)] | None = None


class Problem(BaseModel):
    """What went wrong, in words."""

    error: str
    message: str


@final
@dataclass(frozen=True, slots=True)
class Service:
    """What the endpoints work on."""

    vault: Vault
    keys: Keys
    metrics: Metrics
    pace: Pace
    health: Health
    line: CapacityLimiter  # of paid answers: as many threads as places, so that a refusal never waits behind an answer

    @property
    def ledger(self) -> Ledger:
        """The vault's own account."""
        return self.vault.ledger

    def in_line(self, work: Callable[P, R]) -> Callable[P, Awaitable[R]]:
        """An endpoint that runs in the threads of paid answers; a ledger that refuses it shows at /health at once."""

        @wraps(work)
        async def endpoint(*args: P.args, **kwargs: P.kwargs) -> R:
            try:
                return await to_thread.run_sync(partial(work, *args, **kwargs), limiter=self.line)
            except LedgerLocked:  # somebody else is at work
                raise
            except LedgerError as error:
                self.health.note(LEDGER, error)
                raise

        return endpoint


def _also(kind: str) -> dict[int | str, dict[str, Any]]:
    """Of what kind an answer is, where it is not JSON."""
    return {200: {"content": {kind: {}}}}


def make_app(vault: Vault, keys: Keys) -> FastAPI:
    """The service of one vault."""
    service = Service(vault, keys, Metrics(), Pace(), Health(), CapacityLimiter(MOST_AT_ONCE))
    app = FastAPI(
        title="privcfs",
        version="1",
        description="Private counterfactual explanations, one budget for all analysts.",
        docs_url=None,
        redoc_url=None,
        redirect_slashes=False,  # a redirect would repeat whatever host the request names
        lifespan=_housekeeping(service),
        responses={status: {"model": Problem, "description": words} for status, words in PROBLEMS.items()},
    )
    _add_paid(app, service)
    _add_free(app, service)
    _add_accounts(app, service)
    _add_keys(app, service)
    _add_state(app, service)
    _add_errors(app)
    _add_console(app)
    app.add_middleware(Watch, doorkeeper=Doorkeeper(keys, service.pace), keys=keys, metrics=service.metrics)
    return app


def _housekeeping(service: Service) -> Callable[[FastAPI], AbstractAsyncContextManager[None]]:
    """Looks once before the first request is served, and from then on again and again."""

    def keep_log() -> None:
        service.keys.flush()
        service.keys.prune()

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


async def _anyone(
    request: Request,
    sent: Annotated[HTTPAuthorizationCredentials | None, Depends(BEARER)],  # noqa: ARG001
) -> Key:
    """The key that the watch found; `sent` is there for the description alone."""
    key: Key | None = getattr(request.state, "key", None)
    if key is None:
        raise refused()
    return key


async def _owner(key: Annotated[Key, Depends(_anyone)]) -> Key:
    if key.role != "owner":
        raise NotAllowed("this is for the owner's key.")
    return key


def _asked_node(
    target: Annotated[str, Path(min_length=1, max_length=200)], by_number: Annotated[bool, Query()] = False
) -> int | str:
    """The node of a path, which is text: a name where nodes have names, unless the caller says that it is a number."""
    if by_number and not DIGITS.fullmatch(target):
        raise UnknownNode(f"target {target[:80]!r} is not a number; leave by_number out to ask by name.")
    return int(target) if by_number else target


Caller = Annotated[Key, Depends(_anyone)]
OwnerOnly = Annotated[Key, Depends(_owner)]
Node = Annotated[int | str, Depends(_asked_node)]


def _add_paid(app: FastAPI, service: Service) -> None:
    @app.post("/v1/releases", summary="Pay for one private counterfactual")
    @service.in_line
    def release(question: Question, key: Caller, request: Request) -> dict[str, Any]:
        request.state.note = f"{_may_ask(service, key, question.target)} at epsilon {question.epsilon}"
        found = service.vault.release(
            question.target, question.epsilon, analyst=key.analyst, request_id=question.request_id, cap=key.cap
        )
        service.metrics.released(1)
        return found.to_dict()

    @app.post("/v1/releases/batch", summary="Pay for several, all or none")
    @service.in_line
    def batch(asked: Batch, key: Caller, request: Request) -> list[dict[str, Any]]:
        service.pace.check(key, len(asked.questions) - 1)
        for question in asked.questions:
            _may_ask(service, key, question.target)
        request.state.note = f"{len(asked.questions)} questions"
        plan = [(one.target, one.epsilon, one.request_id) for one in asked.questions]
        found = service.vault.release_all(plan, analyst=key.analyst, cap=key.cap)
        service.metrics.released(len(found))
        return [one.to_dict() for one in found]

    @app.post("/v1/dry-run", summary="What an answer might look like, drawn on the public snapshot; free")
    @service.in_line  # it waits for answers, as an answer does
    def dry_run(question: Question, key: Caller) -> dict[str, Any]:
        _may_ask(service, key, question.target)
        drawn = service.vault.dry_run(question.target, question.epsilon)
        return {
            **_free(service, question.target, drawn),
            "note": "drawn on the public snapshot; not a release, and not paid for",
        }


def _add_free(app: FastAPI, service: Service) -> None:
    @app.get("/v1/releases/{request_id:path}", summary="The certificate of a release of yours")
    def certificate(request_id: Annotated[str, Path(min_length=1, max_length=200)], key: Caller) -> dict[str, Any]:
        stored = service.ledger.released(key.analyst, request_id) if request_id.isprintable() else None
        if stored is None:
            raise UnknownRequest("no finished release of yours has this request id.")
        return Release.from_json(stored).to_dict()

    @app.get("/v1/candidates/{target:path}", summary="The public list; free")
    def candidates(target: Node, key: Caller, most: Annotated[int, Query(ge=0, le=1000)] = 20) -> dict[str, Any]:
        _may_ask(service, key, target)
        found = service.vault.propose(target)
        listed = [found[position].to_dict() for position in range(min(most, len(found)))]
        return {
            "target": found.target,
            "number": len(found),
            "labels": _labels(service, found.nodes),
            "deletable": [list(pair) for pair in found.deletions],
            "addable": [list(pair) for pair in found.additions],
            "maskable": list(found.features),
            "first": listed,
        }

    @app.get("/v1/neighbourhood/{target:path}", summary="The public pairs around a node; free")
    def neighbourhood(target: Node, key: Caller) -> dict[str, Any]:
        _may_ask(service, key, target)
        node, snapshot = service.vault.context.node(target), service.vault.context.snapshot
        near = [int(one) for one in snapshot.neighbours(node)][:MOST_DRAWN]
        shown = {node, *near}
        among = {
            tuple(sorted((one, int(other)))) for one in shown for other in snapshot.neighbours(one) if other in shown
        }
        labels = _labels(service, shown.union(service.vault.propose(target).nodes))
        return {"target": node, "neighbours": near, "pairs": sorted(map(list, among)), "labels": labels}

    @app.get("/v1/guess/{target:path}", summary="The honest zero: the best guess from public data alone; free")
    def guess(target: Node, key: Caller) -> dict[str, Any]:
        _may_ask(service, key, target)
        return {**_free(service, target, service.vault.guess(target)), "epsilon": "0"}

    @app.get("/v1/quote", summary="What a release would cost, and whether it fits; free")
    def quote(epsilon: Annotated[str, Query(min_length=1, max_length=200)], key: Caller) -> dict[str, Any]:
        price, cost = parse_epsilon(epsilon), service.vault.cost(epsilon)
        left, limited_by = _left(service, key)
        return {
            "epsilon": show(price),
            "cost": show(cost),
            "unit": service.ledger.limit.contract.unit,
            "left": show(left),
            "limited_by": limited_by,
            "fits": cost <= left,
        }


def _add_accounts(app: FastAPI, service: Service) -> None:
    @app.get("/v1/budget", summary="What you have spent and what is left; for the owner, of everyone")
    def budget(key: Caller) -> dict[str, Any]:
        left, limited_by = _left(service, key)
        yours = _balance(_own_balance(service, key.analyst, key.cap))
        fields = {"yours": yours, "left": show(left), "limited_by": limited_by}
        if key.role == "owner":
            limit = service.ledger.limit
            fields["all"] = _balance(service.ledger.balance())
            caps = caps_of_analysts(service.keys.all())
            fields["analysts"] = {name: _balance(_own_balance(service, name, cap)) for name, cap in caps.items()}
            fields["contract"] = limit.contract.to_dict()
            fields["meaning"] = service.ledger.meaning()
            fields["held"] = show(service.ledger.balance().held)
        return fields

    @app.get(
        "/v1/ledger",
        summary="Every row, one JSON object a line; for the owner",
        responses=_also("application/x-ndjson"),
    )
    def rows(key: OwnerOnly, after: Annotated[int, Query(ge=0, lt=1 << 62)] = 0) -> StreamingResponse:  # noqa: ARG001
        def lines() -> Iterator[str]:
            for row in service.ledger.rows(after):
                yield json.dumps(row) + "\n"

        return StreamingResponse(lines(), media_type="application/x-ndjson")

    @app.get("/v1/ledger/head", summary="The ledger's newest row, to be kept elsewhere; for the owner")
    def head(key: OwnerOnly) -> dict[str, Any]:  # noqa: ARG001
        found: dict[str, Any] = json.loads(service.ledger.head().to_json())
        return found


def _add_keys(app: FastAPI, service: Service) -> None:
    @app.get("/v1/me", summary="What your key may do")
    def who(key: Caller) -> dict[str, Any]:
        return key.to_dict()

    @app.get("/v1/keys", summary="Every key; for the owner")
    def list_keys(key: OwnerOnly) -> list[dict[str, Any]]:  # noqa: ARG001
        return [one.to_dict() for one in service.keys.all()]

    @app.post("/v1/keys", summary="A new analyst's key, shown once; for the owner", status_code=201)
    def make_key(asked: NewKey, key: OwnerOnly) -> dict[str, Any]:  # noqa: ARG001
        context = service.vault.context
        targets = None if asked.targets is None else [context.label(context.node(one)) for one in asked.targets]
        made, secret = service.keys.make(
            "analyst", asked.analyst, days=asked.days, cap=asked.cap, targets=targets, per_minute=asked.per_minute
        )
        return {**made.to_dict(), "secret": secret}

    @app.delete("/v1/keys/{name}", summary="Revoke a key; for the owner", status_code=204)
    def revoke(name: Annotated[str, Path(min_length=1, max_length=16)], key: OwnerOnly) -> None:  # noqa: ARG001
        service.keys.revoke(name)


def _add_state(app: FastAPI, service: Service) -> None:
    @app.get("/v1/log", summary="Who asked what, newest first; for the owner")
    def log(key: OwnerOnly, most: Annotated[int, Query(ge=1, le=10_000)] = 100) -> list[dict[str, Any]]:  # noqa: ARG001
        return list(service.keys.history(most))

    @app.get("/health", summary="Whether the service and its ledger answer")
    async def health(response: Response) -> dict[str, str]:
        response.status_code, found = service.health.find()
        return found

    @app.get("/metrics", summary="For Prometheus, with the owner's key", responses=_also("text/plain"))
    def metrics(key: OwnerOnly) -> Response:  # noqa: ARG001
        return PlainTextResponse(service.metrics.text(), media_type="text/plain; version=0.0.4")


def _add_errors(app: FastAPI) -> None:
    """Handlers are coroutines: others would wait for a thread."""

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
    """Three files of this package; nothing is loaded from elsewhere."""
    for path, name, kind in PAGES:
        content = (resources.files("privcfs.service") / "console" / name).read_bytes()
        app.add_api_route(path, _page(content, kind), include_in_schema=False, name=name)


def _page(content: bytes, kind: str) -> Callable[[], Awaitable[Response]]:
    async def page() -> Response:
        return Response(content, media_type=kind)

    return page


def _may_ask(service: Service, key: Key, target: int | str) -> str:
    """The public name of a node that exists and that this key may ask about."""
    context = service.vault.context
    name = context.label(context.node(target))
    key.may_ask_about(name)
    return name


def _left(service: Service, key: Key) -> tuple[Fraction, Literal["you", "everyone"]]:
    """What this analyst may still spend, and whose limit that is: their own, or that of all analysts together."""
    (whole, own), limit = service.ledger.sums(key.analyst), service.ledger.limit
    everyone = max(limit.total - whole, Fraction(0))
    yours = min((max(cap - own, Fraction(0)) for cap in (limit.per_analyst, key.cap) if cap is not None), default=None)
    return (everyone, "everyone") if yours is None or yours >= everyone else (yours, "you")


def _own_balance(service: Service, analyst: str, cap: Fraction | None) -> Balance:
    """One analyst's account; its limit is the least of those that hold for this analyst alone, a key's cap included."""
    balance, total = service.ledger.balance(analyst), service.ledger.limit.total
    limits = [limit for limit in (balance.limit, cap) if limit is not None]
    return replace(balance, limit=min(*limits, total) if limits else None)


def _labels(service: Service, nodes: Iterable[int]) -> dict[str, str]:
    """Public names, where nodes have any."""
    return labels_to_dict(service.vault.context.labels(nodes))


def _free(service: Service, target: int | str, found: Intervention) -> dict[str, Any]:
    """An intervention that costs nothing, with its target and the names of its nodes."""
    node = service.vault.context.node(target)
    return {"target": node, "intervention": found.to_dict(), "labels": _labels(service, {node, *found.nodes})}


def _balance(balance: Balance) -> dict[str, Any]:
    limit, left = (None if one is None else show(one) for one in (balance.limit, balance.left))
    return {
        "unit": balance.unit,
        "limit": limit,
        "spent": show(balance.spent),
        "left": left,
        "answers": balance.releases,
    }
