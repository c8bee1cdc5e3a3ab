"""Checks before a vault opens: faults of graph, context, model and method go to the owner, before they cost budget.

Zone: gate
Claim: no check depends on a private edge.
Why: of the graph only its number of nodes is read, which is public; the model is tried out on the public snapshot.
Check: tests/gate/test_vault.py::test_opening_a_vault_reads_no_edge
"""

from dataclasses import replace

import numpy as np

from privcfs.errors import GraphError, InputError, ModelError, NotAllowed, SettingsError, SimulatedSnapshot
from privcfs.gate.accounting import Limit
from privcfs.gate.method import Method
from privcfs.gate.questions.release import refuse_many_levels
from privcfs.private.allowance import UNLIMITED
from privcfs.private.evaluators import evaluate
from privcfs.private.graph import PrivateGraph
from privcfs.private.secrets import Secrets
from privcfs.public.assumptions import Assumption
from privcfs.public.context import PublicContext, Readable
from privcfs.public.epsilon import Price


def refuse_mismatch(graph: PrivateGraph, context: PublicContext, simulation: bool) -> None:
    """Graph and context must have the same nodes, and a simulated snapshot is for experiments alone."""
    if graph.number_of_nodes != context.number_of_nodes:
        raise SettingsError(
            f"number_of_nodes is {graph.number_of_nodes}, but features has {context.number_of_nodes} rows; match them."
        )
    if Assumption.SNAPSHOT_SIMULATED in context.assumptions and not simulation:
        raise SimulatedSnapshot(
            "snapshot was drawn from private edges for an experiment and protects nobody; give a snapshot that was "
            "public beforehand. Experiments say simulation=True."
        )


def refuse_confusion(context: PublicContext, secrets: Secrets | None) -> None:
    """The assumptions on a release must say what is secret besides edges."""
    hidden = {
        Assumption.MODEL_SECRET: secrets is not None and secrets.model is not context.model,
        Assumption.FEATURES_SECRET: secrets is not None and secrets.features is not context.features,
    }
    for assumption, is_secret in hidden.items():
        if is_secret != (assumption in context.assumptions):
            raise SettingsError(
                f"vault keeps secret what the context calls public ({assumption.name}); give PublicContext the "
                "matching assumptions=privcfs.hiding(...)."
                if is_secret
                else f"vault lacks what the context calls secret ({assumption.name}); give it with "
                "Vault(..., secrets=privcfs.Secrets(context, ...))."
            )


def refuse_own_edges_with_secrets(method: Method, secrets: Secrets | None) -> None:
    """Own-edge reading is for models and features that need no account of their own."""
    if method.reads_own and secrets is not None:
        raise SettingsError(
            "a secret model or secret features are touched by every question, so that their one account for the whole "
            "vault would still add up all answers; read the whole graph, or keep the model without a promise about it: "
            "privcfs.hiding(kept_model=True)."
        )


def refuse_idle_accounts(method: Method, limit: Limit) -> None:
    """Accounts of nodes pay for questions that read own edges; no other method may be served with them."""
    if limit.per_node is not None and not method.reads_own:
        raise SettingsError(
            "the ledger has accounts of nodes (limit_per_node), but the method reads the whole graph, so an answer "
            "counts for everyone; set method.reads = 'own-edges'."
        )


def known_to_people(known: bool | PrivateGraph, graph: PrivateGraph, context: PublicContext) -> PrivateGraph | None:
    """The graph of which people may be told their own edges: all of it, the pairs that they know, or nothing (None).

    Public pairs are known to everyone, so they belong to the pairs that people know.
    """
    if isinstance(known, bool):
        return graph if known else None
    if known.number_of_nodes != graph.number_of_nodes or not graph.includes(known):
        raise GraphError(
            "people_know_their_edges has a pair that is not among the private edges, or another number of nodes; give "
            "those private edges that the people at both ends know."
        )
    return known.with_public(context.snapshot)


def graph_for_advice(
    known: PrivateGraph | None, is_more_secret: bool, epsilon: Price | None, read_others: bool | None = None
) -> PrivateGraph:
    """The graph that people know, if there may be advice: it needs the owner's word about who knows what, and a price
    where more than edges is secret."""
    if known is None:
        raise NotAllowed(
            "this vault gives no advice: its owner has not said that people know all of their own edges, and advice "
            "would tell them about the others. Ask for a release instead."
        )
    if is_more_secret and epsilon is None:
        raise NotAllowed(
            "this vault has a secret model or secret features, about which free advice would tell; give a price."
        )
    if epsilon is None and read_others:
        raise InputError("other people's edges are read at a price alone; give epsilon.")
    if epsilon is not None and read_others is False and not is_more_secret:
        raise InputError(
            "nothing is secret here but edges, so without other people's edges advice is free; leave out epsilon."
        )
    return known


def checked_class(told: int | None, context: PublicContext) -> int | None:
    """A class of the model, or nothing."""
    if told is None:
        return None
    if isinstance(told, bool) or not isinstance(told, int) or not 0 <= told < context.number_of_classes:
        raise InputError(f"told is {told!r}; give a class from 0 to {context.number_of_classes - 1}.")
    return told


def try_model(context: PublicContext, method: Method, readable: Readable) -> None:
    """Finds faults of model and method on public data, before they could cost budget."""
    module = getattr(readable.model, "module", None)
    if module is not None and any(getattr(layer, "cached", False) is True for layer in module.modules()):
        raise ModelError(
            "model has a layer with cached=True, which answers for the graph that it saw first, maybe a private "
            "one; build it with cached=False and load the weights."
        )
    refuse_many_levels(method, SettingsError)
    snapshot = PrivateGraph.from_snapshot(context.snapshot)
    try:
        proposed = method.candidates.propose(context, 0)
        few = replace(proposed, pair_sets=proposed.pair_sets[:3], feature_sets=proposed.feature_sets[:3])
        first, second = (evaluate(snapshot, readable, few, UNLIMITED) for _ in range(2))
        method.utility.score(first)
    except Exception as error:
        reason = f"{type(error).__name__}: {error}"
        raise ModelError(f"model cannot be evaluated on the public snapshot ({reason}); check it.") from error
    if np.abs(first.logits - second.logits).max() > 1e-4:
        raise ModelError("model says something else each time; freeze it (no dropout, no sampling).")
