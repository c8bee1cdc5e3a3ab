"""Checks before a vault opens: faults of graph, context, model and method go to the owner, before they cost budget.

Zone: gate
Claim: no check depends on a private edge.
Why: of the graph only its number of nodes is read, which is public; the model is tried out on the public snapshot.
Check: tests/gate/test_vault.py::test_opening_a_vault_reads_no_edge
"""

from dataclasses import replace

import numpy as np

from privcfs.errors import ModelError, SettingsError, SimulatedSnapshot
from privcfs.gate.method import Method
from privcfs.gate.questions.release import refuse_many_levels
from privcfs.private.allowance import UNLIMITED
from privcfs.private.evaluators import evaluate
from privcfs.private.graph import PrivateGraph
from privcfs.private.secrets import Secrets
from privcfs.public.assumptions import Assumption
from privcfs.public.context import PublicContext, Readable


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
