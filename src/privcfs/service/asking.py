"""Endpoints for analysts and owners: releases, what is public and free, and the caller's own account.

To add an endpoint, declare it on ROUTER: `service: This` is what it works on, `key: Caller` is who asks. Mark it with
`@timed` if it may wait for the public answering time, and with `@logged` if its requests are written to the log.
"""

import json
from collections.abc import Iterable
from typing import Annotated, Any

from fastapi import APIRouter, Depends, Path, Query, Request

from privcfs.errors import InputError, UnknownRequest
from privcfs.gate.contracts import Pure
from privcfs.public.confidence import MEANING, after_verdict, said
from privcfs.public.epsilon import parse_decimal, parse_epsilon, show
from privcfs.public.interventions import Intervention
from privcfs.public.labels import labels_to_dict
from privcfs.public.release import Release
from privcfs.service.callers import Caller, Node, check_may_ask, no_person
from privcfs.service.keys import Key
from privcfs.service.marks import logged, timed
from privcfs.service.paying import WHOSE, answers, left, paid_at, payment, with_payment
from privcfs.service.schemas import Batch, Confirmation, Question
from privcfs.service.search import search
from privcfs.service.state import Service, This

# The console draws this many public neighbours at most; more would not be legible.
MOST_NEIGHBOURS = 24
# The owner sees the accounts of this many analysts at once.
MOST_ANALYSTS = 1000
ROUTER = APIRouter(dependencies=[Depends(no_person)])


@ROUTER.post("/v1/releases", summary="Pay for one private counterfactual")
@logged
@timed
def release(service: This, question: Question, key: Caller, request: Request) -> dict[str, Any]:
    request.state.note = f"{check_may_ask(service, key, question.target)} at epsilon {question.epsilon}"
    found = service.vault.release(
        question.target, question.epsilon, analyst=key.analyst, request_id=question.request_id, cap=key.cap
    )
    service.metrics.released(1)
    return with_payment(service, key, found)


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
    return [with_payment(service, key, one) for one in found]


@ROUTER.post("/v1/confirmations", summary="Pay to learn whether a change flips the decision: a noisy yes or no")
@logged
@timed
def confirm(service: This, asked: Confirmation, key: Caller, request: Request) -> dict[str, Any]:
    target, intervention, before = _change(service, key, asked)
    request.state.note = f"{check_may_ask(service, key, target)} at epsilon {asked.epsilon}"
    verdict = service.vault.confirm(
        target, intervention, asked.epsilon, analyst=key.analyst, request_id=asked.request_id, cap=key.cap
    )
    after = None if before is None else after_verdict(before, verdict.flips, verdict.reliability)
    return {
        **json.loads(verdict.to_json()),
        "reliability": said(verdict.reliability),
        "before": said(before),
        "after": said(after),
        "guarantee": str(verdict.guarantee),
        **payment(service, key, verdict.request_id, ()),
    }


@ROUTER.get("/v1/answers", summary="What you have paid for, newest first; pages begin before the position `before`")
def list_answers(
    service: This,
    key: Caller,
    most: Annotated[int, Query(ge=1, le=1000)] = 50,
    before: Annotated[int | None, Query(ge=1, lt=1 << 62)] = None,
) -> dict[str, Any]:
    return answers(service, key, most, before)


@ROUTER.get("/v1/nodes", summary="Nodes that you may ask about, by a part of their public name or number; free")
def nodes(
    service: This, key: Caller, text: Annotated[str, Query(alias="search", max_length=200)] = ""
) -> dict[str, Any]:
    context = service.vault.context
    found = search(context, text, None if key.targets is None else sorted(key.targets))
    return {"nodes": [{"node": context.node(name), "name": name} for name in found.names], "more": found.more}


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
    return with_payment(service, key, _release_of(service, key, request_id))


@ROUTER.get("/v1/candidates/{target:path}", summary="The public list; free")
def candidates(
    service: This, target: Node, key: Caller, most: Annotated[int, Query(ge=0, le=1000)] = 20
) -> dict[str, Any]:
    check_may_ask(service, key, target)
    return service.vault.propose(target).to_dict(most)


@ROUTER.get("/v1/neighbourhood/{target:path}", summary="The public pairs around a node; free")
def neighbourhood(service: This, target: Node, key: Caller) -> dict[str, Any]:
    check_may_ask(service, key, target)
    node, snapshot = service.vault.context.node(target), service.vault.context.disclosed
    near = [int(one) for one in snapshot.neighbours(node)][:MOST_NEIGHBOURS]
    shown = {node, *near}
    among = {tuple(sorted((one, int(other)))) for one in shown for other in snapshot.neighbours(one) if other in shown}
    labels = _labels(service, shown.union(service.vault.propose(target).nodes))
    return {"target": node, "neighbours": near, "pairs": sorted(map(list, among)), "labels": labels}


@ROUTER.get("/v1/quote", summary="What a release would cost, whether it fits, and what to expect of it; free")
def quote(
    service: This,
    epsilon: Annotated[str, Query(min_length=1, max_length=200)],
    key: Caller,
    target: Annotated[str | None, Query(min_length=1, max_length=200)] = None,
) -> dict[str, Any]:
    price, cost, limit = parse_epsilon(epsilon), service.vault.cost(epsilon), service.ledger.limit
    if target is not None:
        check_may_ask(service, key, target)
    accounts = paid_at(service, target)
    remaining = left(service, key, accounts)
    most = parse_decimal(remaining["left"], "left")
    has_account = accounts and limit.per_node is not None
    return {
        **({} if target is None else _expectation(service, target, epsilon)),
        **({"node": service.ledger.node_balance(accounts[0]).to_dict()} if has_account else {}),
        "epsilon": show(price),
        "cost": show(cost),
        "unit": limit.contract.unit,
        **remaining,
        "fits": cost <= most,
        "in_words": _offer(show(cost), remaining, show(most - cost) if cost <= most else None),
        **({} if limit.per_node is None else _losses(service)),
    }


@ROUTER.get("/v1/budget", summary="What you have spent and what is left; for the owner, of everyone")
def budget(service: This, key: Caller) -> dict[str, Any]:
    yours = service.ledger.account_of(key.analyst, key.cap).to_dict()
    fields = {"yours": yours, **left(service, key, ()), **_losses(service)}
    return {**fields, **_budget_of_everyone(service)} if key.role == "owner" else fields


def _offer(cost: str, remaining: dict[str, str], after: str | None) -> str:
    """What a release would cost and leave, in a sentence."""
    whose = WHOSE[remaining["limited_by"]]
    if after is None:
        return f"This costs {cost}, and only {remaining['left']} is left {whose}."
    return f"This costs {cost}; {after} would be left {whose}."


def _release_of(service: Service, key: Key, request_id: str) -> Release:
    """A finished release of the caller's. Answers of other kinds under that id are none, advice least of all."""
    stored = service.ledger.released(key.analyst, request_id) if request_id.isprintable() else None
    try:
        return Release.from_json(stored or "")
    except InputError:
        raise UnknownRequest("no finished release of yours has this request id.") from None


def _change(service: Service, key: Key, asked: Confirmation) -> tuple[int | str, Intervention, float | None]:
    """The change that is asked about, and the confidence in it before."""
    named = [asked.release is not None, asked.certificate is not None, asked.intervention is not None]
    if sum(named) != 1 or (asked.target is None) != (asked.intervention is None):
        raise InputError("give either release, or certificate, or target and intervention.")
    if asked.intervention is not None and asked.target is not None:
        return asked.target, asked.intervention.intervention(), None
    release = (
        Release.from_json(json.dumps(asked.certificate))
        if asked.release is None
        else _release_of(service, key, asked.release)
    )
    return release.target, release.intervention, release.confidence


def _losses(service: Service) -> dict[str, Any]:
    """What all answers may have told, where epsilons add up."""
    if not isinstance(service.ledger.limit.contract, Pure):
        return {}
    found = service.ledger.losses()
    return {"losses": {**found.to_dict(), "in_words": found.in_words()}}


def _expectation(service: Service, target: str, epsilon: str) -> dict[str, Any]:
    """How likely a release about a node is to flip its decision, beside the free guess; both from public data."""
    return {
        "expected": said(service.vault.expect(target, epsilon)),
        "guess": said(service.vault.guess(target).confidence),
        "meaning": MEANING,
    }


def _budget_of_everyone(service: Service) -> dict[str, Any]:
    """The part of a budget that is for the owner alone."""
    caps = service.keys.caps(MOST_ANALYSTS)
    return {
        "all": service.ledger.balance().to_dict(),
        "analysts": {name: service.ledger.account_of(name, cap).to_dict() for name, cap in caps.items()},
        "keys": service.keys.counts(),
        "contract": service.ledger.limit.contract.to_dict(),
        "meaning": service.ledger.meaning(),
    }


def _labels(service: Service, nodes: Iterable[int]) -> dict[str, str]:
    """The public names of nodes as JSON shows them; empty where nodes have no names."""
    return labels_to_dict(service.vault.context.labels(nodes))
