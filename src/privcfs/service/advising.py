"""Endpoints for the person concerned, and those that every key may use.

Advice is computed from a person's own edges, and goes to her alone: neither it nor its length is written to the log,
counted in the metrics, or kept by the service. An answer is padded to a multiple of BLOCK letters, because a proxy may
write down how long answers are.
"""

import json
from typing import Any

from fastapi import APIRouter, Depends, Response

from privcfs.errors import InputError
from privcfs.public.advice import CONFIDENCE
from privcfs.public.confidence import MEANING
from privcfs.public.labels import labels_to_dict
from privcfs.public.schema.of_node import told
from privcfs.service.callers import Caller, Node, check_may_ask, person_only
from privcfs.service.keys import Key
from privcfs.service.marks import logged, timed
from privcfs.service.schemas import AdviceAsked, Imagined
from privcfs.service.state import This

BLOCK = 4096
CLASSES = (
    "The probability of each class to be the present decision, judged from public data and your own connections; the "
    "true decision is not read."
)
BELIEVED = (
    "The probability of each class before and after the change, on imagined graphs that public data make likely. The "
    "true decision is not read. What is not allowed, no answer of this vault would name."
)
FOR_ANYONE = APIRouter()
ROUTER = APIRouter(dependencies=[Depends(person_only)])


@ROUTER.post(
    "/v1/advice",
    summary="What the person concerned may change about herself; for her alone",
    responses={200: {"content": {"application/json": {}}}},
)
@logged
@timed
def advice(service: This, asked: AdviceAsked, key: Caller) -> Response:
    target = _own_node(key) if asked.target is None else asked.target
    check_may_ask(service, key, target)
    found = service.vault.advise(
        target,
        alternatives=asked.alternatives,
        told=asked.told,
        epsilon=asked.epsilon,
        read_others=asked.read_others,
        analyst=key.analyst,
        request_id=asked.request_id,
        cap=key.cap,
    )
    service.metrics.advised()
    meaning = {"confidence": CONFIDENCE, "believed": CLASSES}
    if found.about_told:
        meaning["told"] = found.about_told
    return padded({**found.to_dict(), "in_words": str(found), "meaning": meaning})


@FOR_ANYONE.get("/v1/guess/{target:path}", summary="The honest zero: the best guess from public data alone; free")
def guess(service: This, target: Node, key: Caller) -> dict[str, Any]:
    check_may_ask(service, key, target)
    found = service.vault.guess(target)
    believed = service.vault.believe(target, found.intervention)
    return {**found.to_dict(), "epsilon": "0", "meaning": MEANING, "believed": believed.to_dict()}


@FOR_ANYONE.get("/v1/features/{target:path}", summary="What a node can change about itself, and to which values; free")
def features(service: This, target: Node, key: Caller) -> dict[str, Any]:
    check_may_ask(service, key, target)
    return {"target": service.vault.context.node(target), **service.vault.features(target).to_dict()}


@FOR_ANYONE.post(
    "/v1/beliefs", summary="What would become of a change that you have in mind, by public data alone; free"
)
def beliefs(service: This, asked: Imagined, key: Caller) -> dict[str, Any]:
    target = _own_node(key) if asked.target is None else asked.target
    check_may_ask(service, key, target)
    vault, node = service.vault, service.vault.context.node(target)
    believed = vault.believe(target, asked.intervention.intervention())
    named = told(vault.context, node, asked.intervention.intervention())
    return {
        "target": node,
        "intervention": named.to_dict(),
        "labels": labels_to_dict(vault.context.labels({node, *named.nodes})),
        "in_words": str(named),
        "believed": believed.to_dict(),
        "cost": vault.constraints.cost(node, named),
        "not_allowed": vault.constraints.faults(node, named),
        "meaning": BELIEVED,
    }


@FOR_ANYONE.get("/v1/me", summary="What your key may do")
def who(service: This, key: Caller) -> dict[str, Any]:
    return {**key.to_dict(), "classes": service.vault.context.number_of_classes}


def padded(fields: dict[str, Any]) -> Response:
    """JSON with spaces behind it, up to a multiple of BLOCK letters."""
    text = json.dumps(fields)
    return Response(text.ljust(-(-len(text) // BLOCK) * BLOCK), media_type="application/json")


def _own_node(key: Key) -> str:
    """The node of a key that has one."""
    if key.targets is None or len(key.targets) != 1:
        raise InputError("this key is bound to several nodes; say which one with target.")
    return next(iter(key.targets))
