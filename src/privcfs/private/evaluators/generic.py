"""Exact evaluation of every candidate for any torch module that takes (x, edge_index).

Zone: private
Claim: equals a full-graph forward pass on every candidate for every module whose output at the target depends on the
    nodes within `hops` steps and on their degrees alone.
Why: generic_rows.py lays out one graph of rows for many candidates, in which the target has its true surroundings under
    each of them. Rows are shared between candidates as far as the module permits, which a trial on made-up graphs shows
    (generic_sharing.py). Layouts of several graphs are disjoint, except for stand-ins, which are more than `hops` steps
    from each target, so one forward pass evaluates them all.
Check: tests/private/test_evaluators.py::test_both_evaluators_equal_a_full_forward_pass
"""

from collections.abc import Iterator, Sequence

import numpy as np
from numpy.typing import NDArray

from privcfs.private.allowance import Allowance
from privcfs.private.evaluators.generic_forward import class_scores
from privcfs.private.evaluators.generic_rows import Area, Rows, Sharing
from privcfs.private.evaluators.generic_sharing import sharing_of
from privcfs.private.evaluators.outcomes import Outcomes, effective_operations
from privcfs.private.graph import PrivateGraph
from privcfs.public.candidates.alterations import alter_rows
from privcfs.public.candidates.candidates import Candidates, membership
from privcfs.public.context import Readable
from privcfs.public.models.torch_module import TorchModel

Floats = NDArray[np.float32]
# Of features and first-layer messages in one forward pass. On Cora, GAT is slower with less, and GraphSAGE with more.
BATCH_BYTES = 32 * 2**20
MOST_CANDIDATES = 1024  # Upper bound on the candidates that are laid out together.
# Units of a layout that becomes part of a forward pass: a fit, rounded by hand, to the processor time of 96 evaluations
# by one busy core, of 1 to 14,000 milliseconds: GCN, GAT, GraphSAGE and GIN layers on Cora and CiteSeer, with all
# features or 64, as disjoint copies. Units over nanoseconds in 80 of them: median 0.94, least 0.35, greatest 1.8. In
# the other 16, GraphSAGE and GIN on thousands of features, feature rows go along edges: median 0.3, least 0.08.
LAYOUT = 600_000
PER_FEATURE = 2  # of a row
PER_EDGE = 200


def evaluate_module(graph: PrivateGraph, context: Readable, candidates: Candidates, allowance: Allowance) -> Outcomes:
    """Class scores of the target under every candidate."""
    return evaluate_module_on_all([graph], context, candidates, allowance)[0]


def evaluate_module_on_all(
    graphs: Sequence[PrivateGraph], context: Readable, candidates: Candidates, allowance: Allowance
) -> list[Outcomes]:
    """Class scores of the target under every candidate on each of several graphs, which share forward passes."""
    if not graphs:
        return []
    model = context.model
    assert isinstance(model, TorchModel)
    logits = _logits(graphs, context, candidates, allowance, sharing_of(model, _logits))
    chosen = membership(candidates.pair_sets, len(candidates.deletions) + len(candidates.additions))
    return [
        Outcomes(
            candidates, np.ascontiguousarray(scores.T), (chosen & effective_operations(graph, candidates)).sum(axis=1)
        )
        for graph, scores in zip(graphs, logits, strict=True)
    ]


def _logits(
    graphs: Sequence[PrivateGraph], context: Readable, candidates: Candidates, allowance: Allowance, sharing: Sharing
) -> Floats:
    """Class scores of the target: (graphs, candidates, classes)."""
    model = context.model
    assert isinstance(model, TorchModel)
    most = BATCH_BYTES // (4 * model.number_of_features)
    blocks: list[Floats] = []
    waiting: list[Rows] = []
    for rows in _layouts(graphs, candidates, model.hops, sharing, most):
        allowance.spend(forward_work(len(rows.nodes), model.number_of_features, int(rows.edges.shape[1])))
        if waiting and sum(one.size for one in waiting) + rows.size > most:
            blocks.append(_forward(model, context, candidates, waiting))
            waiting = []
        waiting.append(rows)
    blocks.append(_forward(model, context, candidates, waiting))
    return np.concatenate(blocks).reshape(len(graphs), len(candidates), -1)


def forward_work(rows: int, features: int, edges: int) -> int:
    """Units of one layout in a forward pass."""
    return LAYOUT + PER_FEATURE * rows * features + PER_EDGE * edges


def _layouts(
    graphs: Sequence[PrivateGraph], candidates: Candidates, hops: int, sharing: Sharing, most: int
) -> Iterator[Rows]:
    """Rows for all candidates on the first graph, then on the second, and so on, of size `most` or less.

    Each layout of a graph repeats the rows that no candidate changes. Where these are many, layouts may be larger.
    """
    pair_sets, feature_sets = candidates.parts()
    for graph in graphs:
        area = Area.around(graph, candidates, hops, sharing)
        room = max(most, 2 * area.size)
        together = MOST_CANDIDATES if sharing is not Sharing.NEVER else max(1, room // area.size)
        ahead = [
            np.arange(start, min(start + together, len(candidates))) for start in range(0, len(candidates), together)
        ]
        ahead.reverse()
        while ahead:
            positions = ahead.pop()
            rows = area.rows(pair_sets[positions], feature_sets[positions])
            if rows.size <= room or len(positions) == 1:
                yield rows
            else:
                ahead += reversed(np.array_split(positions, min(rows.size // room + 2, len(positions))))


def _forward(model: TorchModel, context: Readable, candidates: Candidates, parts: Sequence[Rows]) -> Floats:
    """Class scores of the target for the candidates of several layouts, in one forward pass."""
    ends = np.cumsum([len(rows.nodes) for rows in parts])
    count, stand_ins = int(ends[-1]), max(rows.stand_ins for rows in parts)
    x = np.zeros((count + stand_ins, model.number_of_features), np.float32)
    context.feature_rows(np.concatenate([rows.nodes for rows in parts])).toarray(out=x[:count])
    edges, answers = [], []
    for rows, end in zip(parts, ends, strict=True):
        first = end - len(rows.nodes)
        alter_rows(x[first : first + len(rows.feature_sets)], candidates, rows.feature_sets)
        edges.append(rows.edges + np.where(rows.edges < len(rows.nodes), first, count - len(rows.nodes)))
        answers.append(first + rows.answers)
    logits: Floats = class_scores(model, x, np.concatenate(edges, axis=1))[np.concatenate(answers)]
    return logits
