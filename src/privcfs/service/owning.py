"""Endpoints for the owner's key alone: ledger, keys, log, failures and metrics.

To add an endpoint, declare it on ROUTER, which refuses every key that is not the owner's. `service: This` is what the
endpoint works on. Mark it with `@logged` if its requests are written to the log.
"""

import json
from collections.abc import Iterator
from fractions import Fraction
from itertools import islice
from typing import Annotated, Any

from fastapi import APIRouter, Depends, Path, Query, Response
from fastapi.responses import PlainTextResponse, StreamingResponse

from privcfs.public.epsilon import NANO, show
from privcfs.public.sketches.meaning import meaning_of
from privcfs.service.asking import MOST_ANALYSTS
from privcfs.service.callers import owner_only
from privcfs.service.keys import Role, names_of
from privcfs.service.marks import logged
from privcfs.service.overview import overview
from privcfs.service.paying import kind_of
from privcfs.service.schemas import NewKey
from privcfs.service.state import Service, This

ROUTER = APIRouter(dependencies=[Depends(owner_only)])


def _answers_with(media_type: str) -> dict[int | str, dict[str, Any]]:
    """Tells OpenAPI the media type of an answer that is not JSON."""
    return {200: {"content": {media_type: {}}}}


@ROUTER.get(
    "/v1/ledger",
    summary="Every row, one JSON object a line; for the owner",
    responses=_answers_with("application/x-ndjson"),
)
@logged
def rows(service: This, after: Annotated[int, Query(ge=0, lt=1 << 62)] = 0) -> StreamingResponse:
    def lines() -> Iterator[str]:
        for row in service.ledger.rows(after):
            yield json.dumps(row) + "\n"

    return StreamingResponse(lines(), media_type="application/x-ndjson")


@ROUTER.get("/v1/ledger/head", summary="The ledger's newest row, to be kept elsewhere; for the owner")
@logged
def head(service: This) -> dict[str, Any]:
    found: dict[str, Any] = json.loads(service.ledger.head().to_json())
    return found


@ROUTER.get("/v1/ledger/newest", summary="The newest rows with day and target, newest first; for the owner")
def newest(service: This, most: Annotated[int, Query(ge=1, le=10_000)] = 100) -> list[dict[str, Any]]:
    after = max(service.ledger.head().position - most, 0)
    return [_row(service, row) for row in islice(service.ledger.rows(after), most)][::-1]


@ROUTER.get("/v1/overview", summary="How long the budget lasts, and what needs attention; for the owner")
def glance(service: This) -> dict[str, Any]:
    return overview(service.ledger, service.keys, service.vault.failures, service.spending, MOST_ANALYSTS)


@ROUTER.get("/v1/sketch", summary="What the sketch cost, covers and is worth; for the owner")
def sketch(service: This) -> dict[str, Any]:
    context = service.vault.context
    if context.sketch is None:
        return {"sketch": None}
    known = context.learned.values()
    return {"sketch": meaning_of(context.sketch, next((one.guessed for one in known), None))}


@ROUTER.get("/v1/keys", summary="Keys, oldest first, in pages that begin behind the key `after`; for the owner")
def list_keys(
    service: This,
    most: Annotated[int, Query(ge=1, le=10_000)] = 1000,
    after: Annotated[str, Query(max_length=16)] = "",
    role: Role | None = None,
    analyst: Annotated[str | None, Query(max_length=200)] = None,
) -> list[dict[str, Any]]:
    return [one.to_dict() for one in service.keys.page(most, after, role, analyst)]


@ROUTER.post("/v1/keys", summary="A new key for an analyst or a person, shown once; for the owner", status_code=201)
@logged
def make_key(service: This, asked: NewKey) -> dict[str, Any]:
    targets = None if asked.targets is None else names_of(service.vault.context, asked.targets)
    made, secret = service.keys.make(
        asked.role, asked.analyst, days=asked.days, cap=asked.cap, targets=targets, per_minute=asked.per_minute
    )
    return {**made.to_dict(), "secret": secret}


@ROUTER.delete("/v1/keys/{name}", summary="Revoke a key; for the owner", status_code=204)
@logged
def revoke(service: This, name: Annotated[str, Path(min_length=1, max_length=16)]) -> None:
    service.keys.revoke(name)


@ROUTER.get("/v1/log", summary="Who asked what, newest first; for the owner")
@logged
def log(service: This, most: Annotated[int, Query(ge=1, le=10_000)] = 100) -> list[dict[str, Any]]:
    return list(service.log.history(most))


@ROUTER.get("/v1/failures", summary="Failed evaluations and late answers of this process; for the owner")
def failures(service: This) -> dict[str, Any]:
    return service.vault.failures.to_dict()


@ROUTER.get("/metrics", summary="For Prometheus, with the owner's key", responses=_answers_with("text/plain"))
def metrics(service: This) -> Response:
    return PlainTextResponse(service.metrics.text(), media_type="text/plain; version=0.0.4")


def _row(service: Service, row: dict[str, Any]) -> dict[str, Any]:
    """A row of the ledger for people: a charge with its day, its question and its target; of an answer nothing."""
    fields = {name: row[name] for name in ("position", "kind", "analyst", "request_id")}
    fields["cost"] = show(Fraction(int(row["cost"]), NANO))
    if row["kind"] != "HELD":
        return fields
    body, context = json.loads(row["body"]), service.vault.context
    target = int(body["terms"]["target"])
    if not row["analyst"]:  # an entry of the owner's, which is about no node
        return {**fields, "day": body["day"], "question": "entry"}
    named = context.label(target) if 0 <= target < context.number_of_nodes else str(target)
    question = kind_of(body["terms"])
    return {**fields, "day": body["day"], "question": question, "target": target, "target_name": named}
