"""What was paid and what is left, in numbers and in a sentence; and the answers that an analyst has paid for."""

import json
from collections.abc import Mapping
from typing import Any, Literal

from privcfs.gate.ledger.ledger import Charge
from privcfs.public.epsilon import show
from privcfs.public.release import Release
from privcfs.service.keys import Key
from privcfs.service.state import Service

WHOSE = {"you": "of your limit", "everyone": "of everyone's limit", "node": "of this node's limit"}
Kind = Literal["release", "confirmation", "selection", "advice"]


def paid_at(service: Service, target: int | str | None) -> tuple[int, ...]:
    """The nodes whose accounts pay for a release about a target; none where answers read the whole graph."""
    own = target is not None and service.vault.method.reads_own
    return (service.vault.context.node(target),) if own and target is not None else ()


def left(service: Service, key: Key, nodes: tuple[int, ...]) -> dict[str, str]:
    """What a key may still spend, and whose limit that is."""
    amount, whose = service.ledger.left_for(key.analyst, key.cap, nodes)
    return {"left": show(amount), "limited_by": whose}


def payment(service: Service, key: Key, request_id: str, nodes: tuple[int, ...]) -> dict[str, Any]:
    """What a request has cost and what is left afterwards, also as a sentence."""
    price, remaining = service.ledger.price_of(key.analyst, request_id), left(service, key, nodes)
    if price is None:
        return {}
    unit = service.ledger.limit.contract.unit
    amount = show(price) if unit == "epsilon" else f"{unit} {show(price)}"
    words = f"You paid {amount}; {remaining['left']} is left {WHOSE[remaining['limited_by']]}."
    return {"paid": show(price), **remaining, "in_words": words}


def with_payment(service: Service, key: Key, release: Release) -> dict[str, Any]:
    """A release with what it has cost."""
    nodes = paid_at(service, release.target)
    return {**release.to_dict(), **payment(service, key, release.request_id, nodes)}


def kind_of(terms: Mapping[str, Any]) -> Kind:
    """Which question was paid for, by its terms in the ledger."""
    question = str(terms.get("question", ""))
    if question == "advice":
        return "advice"
    if question.startswith("does it flip"):
        return "confirmation"
    return "selection" if question.startswith("one of") else "release"


def answers(service: Service, key: Key, most: int, before: int | None) -> dict[str, Any]:
    """A page of what an analyst has paid for, newest first. Advice is for its person, and is never listed."""
    page = service.ledger.charges(key.analyst, most, before)
    shown = [_answer(service, key, one) for one in page if kind_of(one.terms) != "advice"]
    return {"answers": shown, "next": page[-1].position if len(page) == most else None}


def _answer(service: Service, key: Key, charge: Charge) -> dict[str, Any]:
    """One of them; its answer is None where it was paid and never fetched: asking again costs nothing."""
    target, context = int(charge.terms["target"]), service.vault.context
    stored = service.ledger.released(key.analyst, charge.request_id)
    kind, answer = kind_of(charge.terms), None if stored is None else json.loads(stored)
    if kind == "selection" and answer is not None:
        target = int(answer["target"])
    if kind == "release" and answer is not None:
        answer = with_names(service, Release.from_json(json.dumps(answer)))
    asked = 0 <= target < context.number_of_nodes
    return {
        "request_id": charge.request_id,
        "kind": kind,
        "target": target,
        "target_name": context.label(target) if asked else str(target),
        "epsilon": str(charge.terms["epsilon"]),
        "paid": show(charge.cost),
        "day": charge.day,
        "answer": answer,
    }


def with_names(service: Service, release: Release) -> dict[str, Any]:
    """A stored release; version 0.1 stored no names."""
    names = service.vault.context.labels(release.nodes)
    return {**release.to_dict(), **({"labels": {str(node): name for node, name in names.items()}} if names else {})}
