"""Beliefs that are learned from public data: a part of the snapshot is hidden, and the believer has to guess it.

The hidden part plays the private pairs that the snapshot does not show. A large snapshot is represented by the part
within some steps of a node. Where the snapshot is too small to learn from, stated defaults are used.
"""

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from privcfs.public.beliefs.hidden_degrees import Growing, at_least_one, fit_growing, fit_thinned
from privcfs.public.beliefs.imagined import Beliefs
from privcfs.public.beliefs.links import Evidence, LogLinear, fit_log_linear
from privcfs.public.beliefs.pool import pool_of
from privcfs.public.beliefs.worlds import Worlds
from privcfs.public.context import PublicContext
from privcfs.public.nearby import snapshot_logits, some_neighbours
from privcfs.tables.neighbours import places

Numbers = NDArray[np.int64]
# A snapshot with fewer pairs teaches nothing.
LEAST_PAIRS = 100
# A context with more nodes, or with more neighbours, is represented by a part of about so many nodes.
MOST_NODES, MOST_NEIGHBOURS = 1 << 15, 1 << 20
# So many hidden pairs are guessed.
EXAMPLES = 400
# The share of a snapshot that is shown to the believer lies between these.
SHOWN = (0.25, 0.8)
# Defaults: the part of the mean hidden degree that does not grow with the public degree, and the shape of its law.
CONSTANT_PART, SHAPE = 0.5, 2.0
# The prior belief that a pair joins nodes of one class: a probability, and the number of pairs that it counts for.
PRIOR_HOMOPHILY, PRIOR_PAIRS = 0.8, 10


class Split(NamedTuple):
    """A context that shows a part of its pairs to a believer.

    It holds the whole, what is shown, the hidden pairs, and the share of pairs that is shown.
    """

    whole: PublicContext
    shown: PublicContext
    hidden: Numbers
    share: float


def learn_beliefs(context: PublicContext, worlds: Worlds) -> Beliefs:
    """The beliefs under which the hidden part of a snapshot is likely."""
    if len(context.snapshot.others) < 2 * LEAST_PAIRS:
        return assumed_beliefs(context, worlds)
    split = split_snapshot(context, worlds.disclosed)  # Hides as large a share as the snapshot is believed to hide.
    evidence, partners = _examples(split, np.random.default_rng([context.seed, 1]))
    links = fit_log_linear(evidence, partners) if len(partners) >= LEAST_PAIRS else LogLinear()
    degrees = np.diff(split.shown.snapshot.starts)
    hidden = np.bincount(split.hidden.ravel(), minlength=len(degrees))
    mean = float(np.diff(context.snapshot.starts[[0, -1]])[0] / context.number_of_nodes)
    growing = fit_growing(degrees, hidden, worlds.mean_hidden_degree(mean), mean)
    is_part = 0 < worlds.disclosed < 1
    law = fit_thinned(np.diff(context.snapshot.starts), worlds.disclosed, growing) if is_part else growing
    closure = 0.0 if context.schema is None else _closure(split)
    return Beliefs(links, law, _homophily(split), closure)


def assumed_beliefs(context: PublicContext, worlds: Worlds) -> Beliefs:
    """The defaults where there is nothing to learn from."""
    public = len(context.snapshot.others) / context.number_of_nodes
    mean = worlds.mean_hidden_degree(public)
    if not public:
        return Beliefs(LogLinear(), at_least_one(mean, SHAPE), PRIOR_HOMOPHILY)
    slope = (1 - CONSTANT_PART) * mean / public
    return Beliefs(LogLinear(), Growing(mean - slope * public, slope, SHAPE), PRIOR_HOMOPHILY)


def split_snapshot(context: PublicContext, shown_share: float) -> Split:
    """Shows this share of the snapshot to a believer, or the nearest share that leaves enough on both sides."""
    part = part_of(context)
    shown_share = float(np.clip(shown_share, *SHOWN))
    pairs = part.snapshot.pairs
    is_shown = np.random.default_rng([context.seed, 2]).random(len(pairs)) < shown_share
    shown = PublicContext(part.features, pairs[is_shown], part.model, assumptions=part.assumptions, schema=part.schema)
    return Split(part, shown, pairs[~is_shown], shown_share)


def part_of(context: PublicContext) -> PublicContext:
    """The context itself or, if it is large, the part within some steps of a random node, with the pairs inside."""
    if context.number_of_nodes <= MOST_NODES and len(context.snapshot.others) <= MOST_NEIGHBOURS:
        return context
    rng = np.random.default_rng([context.seed, 3])
    nodes = rng.integers(context.number_of_nodes, size=1)
    while len(nodes) < MOST_NODES // 2:
        _, reached = some_neighbours(context.snapshot, nodes)
        grown = np.union1d(nodes, reached)
        if len(grown) == len(nodes):
            grown = np.union1d(nodes, rng.integers(context.number_of_nodes, size=1))
        nodes = grown if len(grown) <= MOST_NODES else np.sort(rng.choice(grown, MOST_NODES, replace=False))
    position, neighbour = some_neighbours(context.snapshot, nodes)
    other = places(nodes, neighbour)
    pairs = np.column_stack([position, other])[position < other]
    return PublicContext(
        context.feature_rows(nodes), pairs, context.model, assumptions=context.assumptions, schema=context.schema
    )


def _examples(split: Split, rng: np.random.Generator) -> tuple[list[Evidence], Numbers]:
    """Hidden pairs to guess: what the shown part says of one end's pairs, and the other end's place in the pool."""
    pool = pool_of(split.shown)
    both = rng.permutation(np.concatenate([split.hidden, split.hidden[:, ::-1]]))
    place = places(pool.nodes, both[:, 1])
    chosen = np.flatnonzero(place >= 0)[:EXAMPLES]
    return [Evidence.of(split.shown, int(target)) for target in both[chosen, 0]], place[chosen]


def _homophily(split: Split) -> float:
    """The share of hidden pairs whose ends the model puts into one class when it sees all pairs."""
    classes = snapshot_logits(split.whole, np.arange(split.whole.number_of_nodes)).argmax(axis=1)
    same = int((classes[split.hidden[:, 0]] == classes[split.hidden[:, 1]]).sum())
    return (same + PRIOR_PAIRS * PRIOR_HOMOPHILY) / (len(split.hidden) + PRIOR_PAIRS)


def _closure(split: Split) -> float:
    """The share of hidden pairs whose ends have a shown neighbour in common, beyond what random pairs have.

    It is believed of answers to people alone, where features have a schema; without one, beliefs stay as they were.
    """
    rng = np.random.default_rng([split.whole.seed, 9])
    hidden = split.hidden[rng.permutation(len(split.hidden))[:EXAMPLES]]
    usual = _closed(split, rng.integers(split.whole.number_of_nodes, size=hidden.shape))
    return float(np.clip((_closed(split, hidden) - usual) / max(1 - usual, 1e-9), 0, 1))


def _closed(split: Split, pairs: Numbers) -> float:
    """The share of pairs whose ends have a shown neighbour in common."""
    shown = split.shown.snapshot
    common = [len(np.intersect1d(shown.neighbours(int(u)), shown.neighbours(int(w)))) for u, w in pairs]
    return float(np.mean(np.array(common) > 0)) if len(common) else 0.0
