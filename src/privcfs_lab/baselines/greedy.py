"""Greedy exact search: again and again the one operation that lowers the margin most. The honest ceiling of small sets.

Certifies: nothing; it reads the private graph and releases what it found.
Operations: delete pairs that touch the target or a neighbour, mask the target's features, or both.
"""

from dataclasses import dataclass
from typing import final

import numpy as np
from numpy.typing import NDArray

from privcfs.private.allowance import UNLIMITED
from privcfs.private.evaluators import evaluate
from privcfs.private.graph import PrivateGraph
from privcfs.public.candidates.candidates import Candidates, Caps, Choice
from privcfs.public.context import PublicContext
from privcfs.public.interventions import Intervention, Pair, pair
from privcfs_lab.baselines.baseline import Baseline, Explanation, Operations, Problem


@final
@dataclass(frozen=True, slots=True)
class Greedy(Baseline):
    """Stops at the first flip, or empty-handed after `most` operations."""

    operations: Operations = Operations.BOTH
    most: int = 15

    def explain(self, problem: Problem) -> list[Explanation]:
        context = problem.context()
        graph = PrivateGraph.from_edges(problem.data.pairs, number_of_nodes=context.number_of_nodes)
        return [self._search(graph, context, target) for target in problem.targets]

    def _search(self, graph: PrivateGraph, context: PublicContext, target: int) -> Explanation:
        pairs = touching(graph, target) if self.operations is not Operations.FEATURES else ()
        features = tuple(int(number) for number in context.feature_row(target)[0])
        if self.operations is Operations.EDGES:
            features = ()
        gone: Choice = ()
        masked: Choice = ()
        original = -1  # until it is known
        for _ in range(self.most + 1):
            pair_sets = (gone, *(tuple(sorted((*gone, n))) for n in range(len(pairs)) if n not in gone))
            feature_sets = (masked, *(tuple(sorted((*masked, n))) for n in range(len(features)) if n not in masked))
            candidates = Candidates(target, Caps(99, 99), pairs, (), features, pair_sets, feature_sets)
            scores = evaluate(graph, context, candidates, UNLIMITED).logits
            original = int(scores[:, 0].argmax()) if original < 0 else original
            if scores[:, 0].argmax() != original:
                found = Candidates(target, Caps(99, 99), pairs, (), features, (gone,), (masked,))
                return Explanation(found[0], original, True)
            by_pair, by_feature = (
                margins(scores[:, part], original) for part in (candidates.starts[:-1], slice(len(feature_sets)))
            )
            by_pair[0] = by_feature[0] = np.inf
            if min(by_pair.min(), by_feature.min()) == np.inf:
                break
            if by_pair.min() <= by_feature.min():
                gone = pair_sets[int(by_pair.argmin())]
            else:
                masked = feature_sets[int(by_feature.argmin())]
        return Explanation(Intervention(), original, False)


def margins(scores: NDArray[np.floating], original: int) -> NDArray[np.float64]:
    """How far the original class leads, one column a candidate."""
    rivals = np.delete(scores, original, axis=0).max(axis=0)
    margins: NDArray[np.float64] = (scores[original] - rivals).astype(np.float64)
    return margins


def touching(graph: PrivateGraph, target: int) -> tuple[Pair, ...]:
    """Pairs at the target or at a neighbour."""
    near = np.append(graph.neighbours(target), target)
    owner, other = graph.neighbours_of(near)
    return tuple(sorted({pair(int(near[a]), int(b)) for a, b in zip(owner, other, strict=True)}))
