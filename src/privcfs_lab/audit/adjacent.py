"""The paper's audit on real graphs: one private pair more or less, and how far the release distribution follows."""

from collections.abc import Iterator
from dataclasses import dataclass
from typing import final

import numpy as np

from privcfs.gate.method import Method
from privcfs.private.graph import PrivateGraph
from privcfs_lab.audit.checks import Pairs, as_pairs
from privcfs_lab.audit.distinguish import distinguish, sampled_auc
from privcfs_lab.measuring.inspection import inspect
from privcfs_lab.measuring.measure import Records, printed_range
from privcfs_lab.measuring.quality import release_law
from privcfs_lab.measuring.simulate import HALF, Simulation, TrainedOn
from privcfs_lab.measuring.study import Work
from privcfs_lab.measuring.targets import POPULATIONS

EACH = 4  # deletions and additions for each target: ten targets make 80 pairs of graphs
DRAWS = 400  # of the paper's estimate
ADJACENT = np.dtype(
    [
        ("seed", np.int64),
        ("target", np.int64),
        ("deleted", np.bool_),  # a pair is taken away; otherwise one is added
        ("moved", np.float64),  # the largest change of one candidate's utility
        ("same", np.bool_),  # all utilities stay, and so does the release distribution
        ("best_changed", np.bool_),  # the best candidate is another
        ("ratio", np.float64),
        ("auc", np.float64),
        ("sampled", np.float64),  # the AUC from 400 draws
        ("advantage", np.float64),
    ]
)


@final
@dataclass(frozen=True, slots=True)
class Adjacent(Work):
    """One method at one price on neighbouring graphs of every target."""

    data: str
    population: str
    method: Method
    epsilon: str = "8"
    printed: bool = False  # drawn with the range that the paper prints
    trained_on: TrainedOn = "all edges"

    @property
    def title(self) -> str:
        return f"neighbouring graphs, {self.data}, {self.population}"

    def records(self, world: Simulation, most: int | None) -> Records:
        context, rows = world.context(HALF), []
        printed = printed_range(self.method) if self.printed else None
        for target in POPULATIONS[self.population](world)[:most]:
            rng = np.random.default_rng([world.seed, target])
            here = inspect(world.graph, context, target, self.method)
            law = release_law(here, self.epsilon, printed)
            for deleted, pairs in neighbours(world.data.pairs, target, rng):
                graph = PrivateGraph.from_edges(pairs, number_of_nodes=context.number_of_nodes)
                there = inspect(graph, context, target, self.method)
                other = release_law(there, self.epsilon, printed)
                gap = np.abs(here.utilities - there.utilities).max()
                found = distinguish(law, other)
                changed = here.utilities.argmax() != there.utilities.argmax()
                draws = sampled_auc(law, other, DRAWS, rng)
                row = (gap, gap == 0, changed, found.ratio, found.auc, draws, found.advantage)
                rows.append((world.seed, target, deleted, *row))
        return np.array(rows, ADJACENT)


def neighbours(pairs: Pairs, target: int, rng: np.random.Generator) -> Iterator[tuple[bool, Pairs]]:
    """Graphs with one pair less, then with one more, each within two steps of the target."""
    near = {target, *pairs[(pairs == target).any(axis=1)].ravel().tolist()}
    touching = pairs[np.isin(pairs, list(near)).any(axis=1)]
    within = np.union1d(touching.ravel(), [target])
    for number in rng.permutation(len(touching))[:EACH]:
        yield True, pairs[(pairs != touching[number]).any(axis=1)]
    present, added = {(int(u), int(w)) for u, w in pairs}, 0
    for _ in range(1000):  # a target whose neighbourhood is complete has fewer
        u, w = sorted(int(node) for node in rng.choice(within, 2)) if len(within) > 1 else (target, target)
        if added < EACH and u != w and (u, w) not in present:
            added += 1
            yield False, as_pairs(present | {(u, w)})
