"""Exact evaluators: what the frozen model says under every candidate. One file per evaluator, one line in the table.

Zone: private
Claim: a backbone is evaluated by the evaluator named for its type, and by no other.
Why: a table from type to function.
Check: tests/private/test_evaluators.py::test_every_shipped_backbone_has_an_evaluator
"""

from collections.abc import Callable, Mapping

from privcfs.private.deadline import Deadline
from privcfs.private.graph import PrivateGraph
from privcfs.private.one_thread import one_thread
from privcfs.private.outcomes.gcn import evaluate_gcn
from privcfs.private.outcomes.generic import evaluate_module
from privcfs.private.outcomes.outcomes import Outcomes
from privcfs.public.backbones.backbone import Backbone
from privcfs.public.backbones.gcn import GCN
from privcfs.public.backbones.torch_module import TorchBackbone
from privcfs.public.candidates.candidates import Candidates
from privcfs.public.context import Readable
from privcfs.tables.store import resting

Evaluator = Callable[[PrivateGraph, Readable, Candidates, Deadline], Outcomes]

EVALUATORS: Mapping[type[Backbone], Evaluator] = {GCN: evaluate_gcn, TorchBackbone: evaluate_module}


def evaluate(graph: PrivateGraph, context: Readable, candidates: Candidates, deadline: Deadline) -> Outcomes:
    """Class scores of the target under every candidate, by the evaluator of the model."""
    with one_thread(), resting():
        return EVALUATORS[type(context.backbone)](graph, context, candidates, deadline)
