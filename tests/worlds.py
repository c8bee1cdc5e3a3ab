"""Small made-up worlds: a public context, private graphs over it, and interventions carried out the slow way."""

from dataclasses import dataclass
from itertools import combinations

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray

from privcfs import GCN, Intervention, PrivateGraph, PublicContext
from privcfs.public.candidates.candidates import Candidates, Caps, subsets
from privcfs.public.models.model import Model

Pairs = NDArray[np.int64]


@dataclass(frozen=True)
class World:
    """A context and the private pairs that a test is allowed to know."""

    context: PublicContext
    pairs: Pairs

    @property
    def graph(self) -> PrivateGraph:
        return private(self.pairs, self.context.number_of_nodes)


def private(pairs: Pairs, nodes: int) -> PrivateGraph:
    return PrivateGraph.from_edges(pairs, number_of_nodes=nodes)


def random_gcn(rng: np.random.Generator, features: int, classes: int = 3, hidden: int = 8) -> GCN:
    return GCN(
        rng.normal(size=(features, hidden)).astype(np.float32),
        rng.normal(size=(hidden, classes)).astype(np.float32),
        rng.normal(size=hidden).astype(np.float32) * 0.1,
        rng.normal(size=classes).astype(np.float32) * 0.1,
    )


def random_pairs(rng: np.random.Generator, nodes: int, density: float) -> Pairs:
    return np.array([pair for pair in combinations(range(nodes), 2) if rng.random() < density], np.int64).reshape(-1, 2)


def random_world(seed: int, nodes: int = 8, features: int = 6, model: Model | None = None) -> World:
    """A random graph, a random half of the possible pairs as its snapshot, binary features."""
    rng = np.random.default_rng(seed)
    x = sp.csr_array((rng.random((nodes, features)) < 0.6).astype(np.float32))
    model = model or random_gcn(rng, features)
    return World(PublicContext(x, random_pairs(rng, nodes, 0.5), model), random_pairs(rng, nodes, 0.4))


def named_world(seed: int, nodes: int = 8) -> World:
    """A random world whose nodes have names: person-0, person-1 and so on."""
    world = random_world(seed, nodes)
    names = [f"person-{node}" for node in range(nodes)]
    plain = world.context
    return World(PublicContext(plain.features, plain.snapshot.pairs, plain.model, node_ids=names), world.pairs)


def awkward_pairs(rng: np.random.Generator) -> Pairs:
    """Thirty nodes: a hub, triangles around it, a sparse rest, and isolated nodes 26 to 29."""
    star = [(0, other) for other in range(1, 14)]
    triangles = [(u, u + 1) for u in range(1, 12, 2)] + [(1, 3), (2, 4), (5, 9)]
    rest = [(u, w) for u, w in combinations(range(8, 26), 2) if rng.random() < 0.12]
    return np.array(sorted(set(star + triangles + rest)), np.int64)


def everything_near(target: int, pairs: Pairs, nodes: int, features: tuple[int, ...]) -> Candidates:
    """Deletions at and around the target, one that does not exist, additions near and far, and masks."""
    present = {(int(u), int(w)) for u, w in pairs}
    near = sorted(pair for pair in present if target in pair)[:4]
    around = sorted(pair for pair in present if target not in pair)[:4]
    absent = [pair for pair in combinations(range(nodes), 2) if pair not in present]
    own = [pair for pair in absent if target in pair]
    deletions = tuple(near + around + own[3:4])
    additions = tuple(own[:3] + [pair for pair in absent if target not in pair][:2])
    universe = len(deletions) + len(additions)
    return Candidates(
        target,
        Caps(3, 2),
        deletions,
        additions,
        features,
        pair_sets=(*subsets(universe, 2), (0, 4, universe - 1)),
        feature_sets=subsets(len(features), 2),
    )


def carried_out(pairs: Pairs, intervention: Intervention) -> Pairs:
    """The pairs after an intervention, by set arithmetic."""
    after = {(int(u), int(w)) for u, w in pairs} - set(intervention.delete) | set(intervention.add)
    return np.array(sorted(after), np.int64).reshape(-1, 2)


def slow_logits(world: World, target: int, intervention: Intervention) -> NDArray[np.float64]:
    """A full-graph forward pass after an intervention."""
    x = world.context.features.copy()
    row = slice(x.indptr[target], x.indptr[target + 1])
    x.data[row][np.isin(x.indices[row], intervention.mask)] = 0
    logits: NDArray[np.float64] = world.context.model.logits(x, carried_out(world.pairs, intervention))[target]
    return logits
