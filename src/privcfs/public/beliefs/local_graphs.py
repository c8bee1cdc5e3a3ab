"""Imagined graphs as graphs of their own, in numbers of their own: for models that have to be run on a graph."""

from dataclasses import dataclass, replace
from typing import final

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray

from privcfs.public.beliefs.imagined import Imagined
from privcfs.public.candidates.candidates import Candidates
from privcfs.public.context import FeatureRows, PublicContext
from privcfs.public.interventions import pair
from privcfs.public.models.model import Model
from privcfs.public.nearby import some_neighbours
from privcfs.tables.neighbours import distinct

Numbers = NDArray[np.int64]
# A local graph is not grown beyond so many nodes.
MOST_NODES = 1 << 11
# The feature tables of all local graphs of a target together have about so many entries at most.
MOST_ENTRIES, LEAST_GRAPHS = 1 << 24, 3


@final
@dataclass(frozen=True, eq=False)
class LocalGraphs(FeatureRows):
    """Features and model for some nodes of a context, the pairs of each imagined graph, and the list in new numbers."""

    features: sp.csr_array
    model: Model
    inputs: None
    pairs: tuple[Numbers, ...]
    candidates: Candidates


def local_graphs(context: PublicContext, imagined: Imagined, candidates: Candidates, most: int) -> LocalGraphs:
    """The first `most` imagined graphs, as far as they can reach the target of a list; fewer if they are large."""
    target = imagined.target
    known = _known_pairs(context, imagined)
    named = [node for one in candidates.deletions + candidates.additions for node in one]
    hidden = imagined.far[imagined.hidden_partner]
    nodes = np.unique(np.concatenate([[target], imagined.nodes, named, known.ravel(), hidden]).astype(np.int64))
    number_of = {int(node): number for number, node in enumerate(nodes)}
    most = min(most, max(MOST_ENTRIES // (len(nodes) * context.model.number_of_features), LEAST_GRAPHS))
    owners = imagined.nodes[imagined.variant_row[imagined.hidden_owner]]
    graphs = []
    for graph in range(min(most, imagined.number)):
        taken = np.isin(imagined.hidden_owner, imagined.variant[graph]) & (hidden != target) & (hidden != owners)
        own = imagined.nodes[imagined.own_row[imagined.own_graph == graph]]
        every = np.concatenate(
            [known, np.column_stack([owners[taken], hidden[taken]]), np.column_stack([np.full(len(own), target), own])]
        )
        graphs.append(distinct(np.sort(np.searchsorted(nodes, every), axis=1), len(nodes)))
    deletions, additions = (
        tuple(pair(number_of[one], number_of[other]) for one, other in pairs)
        for pairs in (candidates.deletions, candidates.additions)
    )
    inside = replace(candidates, target=number_of[target], deletions=deletions, additions=additions, names={})
    return LocalGraphs(context.feature_rows(nodes), context.model, None, tuple(graphs), inside)


def _known_pairs(context: PublicContext, imagined: Imagined) -> Numbers:
    """Snapshot pairs that can reach the target through the model's layers, those of near nodes first."""
    nodes = np.union1d(imagined.nodes, [imagined.target])
    for _ in range(max(context.model.hops - 2, 1)):  # Two layers take one step more, so that degrees are right.
        _, reached = some_neighbours(context.snapshot, nodes)
        nodes = np.concatenate([nodes, np.setdiff1d(reached, nodes)])[:MOST_NODES]
    position, neighbour = some_neighbours(context.snapshot, nodes)
    pairs = np.column_stack([nodes[position], neighbour])
    if imagined.in_snapshot.all() and len(imagined.neighbours) == len(context.snapshot.neighbours(imagined.target)):
        return pairs
    own = np.column_stack([np.full(len(imagined.neighbours), imagined.target), imagined.neighbours])
    return np.concatenate([own, pairs[(pairs != imagined.target).all(axis=1)]])  # The target's pairs were given.
