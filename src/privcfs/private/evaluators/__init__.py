"""Exact evaluators: what the frozen model says under every candidate. One file per evaluator, one line in the table.

Zone: private
Claim: a model is evaluated by the evaluator named for its type, and by no other.
Why: a table from type to function.
Check: tests/private/test_evaluators.py::test_every_shipped_model_has_an_evaluator
"""

from collections.abc import Callable, Mapping

from privcfs.private.allowance import Allowance
from privcfs.private.evaluators.gcn import evaluate_gcn
from privcfs.private.evaluators.generic import evaluate_module
from privcfs.private.evaluators.outcomes import Outcomes
from privcfs.private.graph import PrivateGraph
from privcfs.private.one_thread import one_thread
from privcfs.public.candidates.candidates import Candidates
from privcfs.public.context import Readable
from privcfs.public.models.gcn import GCN
from privcfs.public.models.model import Model
from privcfs.public.models.torch_module import TorchModel
from privcfs.tables.store import resting

Evaluator = Callable[[PrivateGraph, Readable, Candidates, Allowance], Outcomes]

EVALUATORS: Mapping[type[Model], Evaluator] = {GCN: evaluate_gcn, TorchModel: evaluate_module}


def evaluate(graph: PrivateGraph, context: Readable, candidates: Candidates, allowance: Allowance) -> Outcomes:
    """Class scores of the target under every candidate, by the evaluator of the model."""
    with one_thread(), resting():
        return EVALUATORS[type(context.model)](graph, context, candidates, allowance)
