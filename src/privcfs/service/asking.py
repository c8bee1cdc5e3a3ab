"""Endpoints for everyone who has a key: releases, what is public and free, and the caller's own account.

To add an endpoint, declare it on ROUTER: `service: This` is what it works on, `key: Caller` is who asks. Mark it with
`@timed` if it may wait for the public answering time, and with `@logged` if its requests are written to the log.
"""

from collections.abc import Iterable
from typing import Annotated, Any

from fastapi import APIRouter, Path, Query, Request

from privcfs.errors import UnknownRequest
from privcfs.public.confidence import MEANING, said
from privcfs.public.epsilon import parse_epsilon, show
from privcfs.public.labels import labels_to_dict
from privcfs.public.release import Release
from privcfs.service.callers import Caller, Node, check_may_ask
from privcfs.service.keys import caps_of_analysts
from privcfs.service.marks import logged, timed
from privcfs.service.schemas import Batch, Question
from privcfs.service.state import Service, This

# The console draws this many public neighbours at most; more would not be legible.
MOST_NEIGHBOURS = 24
ROUTER = APIRouter()


@ROUTER.post("/v1/releases", summary="Pay for one private counterfactual")
@logged
@timed
def release(service: This, question: Question, key: Caller, request: Request) -> dict[str, Any]:
    request.state.note = f"{check_may_ask(service, key, question.target)} at epsilon {question.epsilon}"
    found = service.vault.release(
        question.target, question.epsilon, analyst=key.analyst, request_id=question.request_id, cap=key.cap
    )
    service.metrics.released(1)
    return found.to_dict()


@ROUTER.post("/v1/releases/batch", summary="Pay for several, all or none")
@logged
@timed
def batch(service: This, asked: Batch, key: Caller, request: Request) -> list[dict[str, Any]]:
    service.pace.check(key, len(asked.questions) - 1)  # The middleware has counted one request already.
    for question in asked.questions:
        check_may_ask(service, key, question.target)
    request.state.note = f"{len(asked.questions)} questions"
    plan = [(one.target, one.epsilon, one.request_id) for one in asked.questions]
    found = service.vault.release_all(plan, analyst=key.analyst, cap=key.cap)
    service.metrics.released(len(found))
    return [one.to_dict() for one in found]


@ROUTER.post("/v1/dry-run", summary="What an answer might look like, drawn on the public snapshot; free")
@timed
def dry_run(service: This, question: Question, key: Caller) -> dict[str, Any]:
    check_may_ask(service, key, question.target)
    drawn = service.vault.dry_run(question.target, question.epsilon)
    note = "drawn on the public snapshot; not a release, and not paid for"
    return {**drawn.to_dict(), "note": note}


@ROUTER.get("/v1/releases/{request_id:path}", summary="The certificate of a release of yours")
def certificate(
    service: This, request_id: Annotated[str, Path(min_length=1, max_length=200)], key: Caller
) -> dict[str, Any]:
    stored = service.ledger.released(key.analyst, request_id) if request_id.isprintable() else None
    if stored is None:
        raise UnknownRequest("no finished release of yours has this request id.")
    return Release.from_json(stored).to_dict()


@ROUTER.get("/v1/candidates/{target:path}", summary="The public list; free")
def candidates(
    service: This, target: Node, key: Caller, most: Annotated[int, Query(ge=0, le=1000)] = 20
) -> dict[str, Any]:
    check_may_ask(service, key, target)
    return service.vault.propose(target).to_dict(most)


@ROUTER.get("/v1/neighbourhood/{target:path}", summary="The public pairs around a node; free")
def neighbourhood(service: This, target: Node, key: Caller) -> dict[str, Any]:
    check_may_ask(service, key, target)
    node, snapshot = service.vault.context.node(target), service.vault.context.snapshot
    near = [int(one) for one in snapshot.neighbours(node)][:MOST_NEIGHBOURS]
    shown = {node, *near}
    among = {tuple(sorted((one, int(other)))) for one in shown for other in snapshot.neighbours(one) if other in shown}
    labels = _labels(service, shown.union(service.vault.propose(target).nodes))
    return {"target": node, "neighbours": near, "pairs": sorted(map(list, among)), "labels": labels}


@ROUTER.get("/v1/guess/{target:path}", summary="The honest zero: the best guess from public data alone; free")
def guess(service: This, target: Node, key: Caller) -> dict[str, Any]:
    check_may_ask(service, key, target)
    return {**service.vault.guess(target).to_dict(), "epsilon": "0", "meaning": MEANING}


@ROUTER.get("/v1/quote", summary="What a release would cost, whether it fits, and what to expect of it; free")
def quote(
    service: This,
    epsilon: Annotated[str, Query(min_length=1, max_length=200)],
    key: Caller,
    target: Annotated[str | None, Query(min_length=1, max_length=200)] = None,
) -> dict[str, Any]:
    price, cost = parse_epsilon(epsilon), service.vault.cost(epsilon)
    left, limited_by = service.ledger.left_for(key.analyst, key.cap)
    return {
        **({} if target is None else _expectation(service, key, target, epsilon)),
        "epsilon": show(price),
        "cost": show(cost),
        "unit": service.ledger.limit.contract.unit,
        "left": show(left),
        "limited_by": limited_by,
        "fits": cost <= left,
    }


@ROUTER.get("/v1/budget", summary="What you have spent and what is left; for the owner, of everyone")
def budget(service: This, key: Caller) -> dict[str, Any]:
    left, limited_by = service.ledger.left_for(key.analyst, key.cap)
    yours = service.ledger.account_of(key.analyst, key.cap).to_dict()
    fields = {"yours": yours, "left": show(left), "limited_by": limited_by}
    return {**fields, **_budget_of_everyone(service)} if key.role == "owner" else fields


@ROUTER.get("/v1/me", summary="What your key may do")
def who(key: Caller) -> dict[str, Any]:
    return key.to_dict()


def _expectation(service: Service, key: Caller, target: str, epsilon: str) -> dict[str, Any]:
    """How likely a release about a node is to flip its decision, beside the free guess; both from public data."""
    check_may_ask(service, key, target)
    return {
        "expected": said(service.vault.expect(target, epsilon)),
        "guess": said(service.vault.guess(target).confidence),
        "meaning": MEANING,
    }


def _budget_of_everyone(service: Service) -> dict[str, Any]:
    """The part of a budget that is for the owner alone."""
    caps = caps_of_analysts(service.keys.all())
    return {
        "all": service.ledger.balance().to_dict(),
        "analysts": {name: service.ledger.account_of(name, cap).to_dict() for name, cap in caps.items()},
        "contract": service.ledger.limit.contract.to_dict(),
        "meaning": service.ledger.meaning(),
    }


def _labels(service: Service, nodes: Iterable[int]) -> dict[str, str]:
    """The public names of nodes as JSON shows them; empty where nodes have no names."""
    return labels_to_dict(service.vault.context.labels(nodes))
