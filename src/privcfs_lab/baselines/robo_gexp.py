"""RoboGExp in part (Qiu and others 2024): counterfactual witnesses that one further deletion nearby cannot undo.

Certifies: nothing about privacy; it reads the private graph and releases what it found. A witness is a set of pairs
whose deletion flips the decision, also after any one other pair that touches the target or a neighbour is deleted, and
which alone, with all other such pairs deleted, gives the decision as it was. Both are checked one by one.
Operations: delete pairs that touch the target or a neighbour.
Not rebuilt: several changes at once and added pairs, which the paper checks by a bound for models of personalised
PageRank; a GCN has no such bound.
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
from privcfs.public.interventions import Intervention, Pair
from privcfs_lab.baselines.baseline import Baseline, Explanation, Operations, Problem
from privcfs_lab.baselines.greedy import margins, touching

Floats = NDArray[np.float64]


@final
@dataclass(frozen=True, slots=True)
class RoboGExp(Baseline):
    """Expands and verifies; gives up, with an empty answer, after `most` pairs."""

    operations: Operations = Operations.EDGES
    most: int = 15

    def explain(self, problem: Problem) -> list[Explanation]:
        context = problem.context()
        graph = PrivateGraph.from_edges(problem.data.pairs, number_of_nodes=context.number_of_nodes)
        return [self._search(_Near.of(graph, context, target)) for target in problem.targets]

    def _search(self, near: "_Near") -> Explanation:
        witness: Choice = ()
        for _ in range(self.most + 1):
            others = near.others(witness)
            after = near.margins([witness, *(_with(witness, one) for one in others)])
            if after.max() >= 0:
                ranked = after[1:]
            else:
                kept = near.margins([near.others(_with(witness, one)) for one in others] or [()])
                if near.margins([near.others(witness)])[0] >= 0:
                    deleted = tuple(near.pairs[number] for number in witness)
                    return Explanation(Intervention(delete=deleted), near.original, True)
                ranked = -kept
            if not others:
                break
            witness = _with(witness, others[int(ranked.argmin())])
        return Explanation(Intervention(), near.original, False)


@final
@dataclass(frozen=True, slots=True)
class _Near:
    """The pairs near one target, and how far its decision leads after deletions."""

    graph: PrivateGraph
    context: PublicContext
    target: int
    pairs: tuple[Pair, ...]
    original: int

    @classmethod
    def of(cls, graph: PrivateGraph, context: PublicContext, target: int) -> "_Near":
        pairs = touching(graph, target)
        return cls(graph, context, target, pairs, int(_logits(graph, context, target, pairs, [()])[:, 0].argmax()))

    def others(self, chosen: Choice) -> Choice:
        """All but those."""
        return tuple(number for number in range(len(self.pairs)) if number not in chosen)

    def margins(self, sets: list[Choice]) -> Floats:
        """The lead of the original decision after each set is deleted; below 0 it is another one."""
        return margins(_logits(self.graph, self.context, self.target, self.pairs, sets), self.original)


def _logits(
    graph: PrivateGraph, context: PublicContext, target: int, pairs: tuple[Pair, ...], sets: list[Choice]
) -> NDArray[np.floating]:
    candidates = Candidates(target, Caps(99, 99), pairs, (), (), tuple(sets), ((),))
    return evaluate(graph, context, candidates, UNLIMITED).logits


def _with(chosen: Choice, one: int) -> Choice:
    return tuple(sorted((*chosen, one)))
