"""Imagined graphs around one target, sampled all at once from public data, and only where they can reach the target.

An imagined graph is the snapshot together with pairs that it does not show. What reaches the target of a two-layer
model are the target's own hidden pairs, and the hidden pairs of the nodes it may read: its neighbours and partners. The
target's hidden pairs are sampled for each graph by the link model. Each node that the target may read has a few
variants of its hidden pairs, sampled by class alone, and each graph picks one of them. No imagined graph contains a
pair that the list of candidates may add. Everything here follows from public data and a public seed.

A caller that knows all pairs of the target gives them. They are then the same in all graphs, only pairs elsewhere are
sampled, and the result is a function of public data and of the given pairs; nothing here keeps it.
"""

from dataclasses import dataclass
from typing import final

import numpy as np
from numpy.typing import NDArray

from privcfs.public.beliefs.hidden_degrees import HiddenDegrees
from privcfs.public.beliefs.links import Evidence, LinkModel, probabilities
from privcfs.public.beliefs.pool import class_probabilities, pool_of, public_degrees
from privcfs.public.beliefs.posterior import Posterior
from privcfs.public.candidates.candidates import Candidates
from privcfs.public.context import PublicContext
from privcfs.public.per_context import per_context
from privcfs.tables.neighbours import among, places

Floats = NDArray[np.float32]
Numbers = NDArray[np.int64]
# A neighbour of the target, or a node that it may be joined to, has so many variants of its hidden pairs; the first has
# none. An imagined neighbour is read in few graphs, and has one variant.
VARIANTS = 17
# So many times as many pairs are drawn as are wanted, because a pair that is drawn twice counts once.
SPARE = 2
# All graphs together read about so many rows at most, so that targets with very many neighbours get fewer graphs.
MOST_ROWS, LEAST_GRAPHS = 1 << 12, 8


@final
@dataclass(frozen=True, slots=True)
class Beliefs:
    """What is believed of the hidden pairs.

    Attributes:
        links: Which nodes a hidden pair of the target leads to.
        hidden_degrees: How many hidden pairs a node has.
        same_class: The probability that a hidden pair joins two nodes of one class.
        closure: The share of hidden pairs elsewhere that lead to a neighbour of a public neighbour; none by default.
    """

    links: LinkModel
    hidden_degrees: HiddenDegrees
    same_class: float
    closure: float = 0.0


@final
@dataclass(frozen=True, slots=True)
class Sampling:
    """How many graphs are imagined.

    Attributes:
        number: How many samples of the target's own pairs.
        each: In how many graphs each of these samples stands, with pairs elsewhere sampled for every graph. More than
            1 is for questions that read own edges alone: what they can know is a mean over pairs elsewhere.
    """

    number: int
    each: int = 1

    def at_most(self, graphs: int) -> "Sampling":
        """The same, with fewer samples where there would be more graphs than this."""
        return Sampling(max(min(self.number, graphs // self.each), 1), self.each)


@final
@dataclass(frozen=True, slots=True, eq=False)
class Imagined:
    """Imagined graphs around a target. `number` is how many there are; the first is the snapshot.

    `neighbours` are joined to the target in all graphs: its snapshot neighbours or, where its pairs were given, those.
    `in_snapshot` says which of them the snapshot shows. `nodes` are the nodes that the target may read besides itself,
    ascending: neighbours, nodes that it may be joined to, and ends of its imagined pairs. A graph's imagined pairs of
    the target are (`own_graph`, `own_row`): the number of the graph and the position in `nodes`, in order of graphs.
    Variants of hidden pairs are numbered node by node: variant i is one of the node at position `variant_row[i]`. It
    has `hidden_degree[i]` pairs, and (`hidden_owner`, `hidden_partner`) lists them by variant and position in `far`.
    These are the nodes that such pairs may lead to, ascending: those of the pool and those that a sketch suggests.
    `variant` says which variant each graph has of each node: (graphs, nodes).
    """

    target: int
    number: int
    neighbours: Numbers
    in_snapshot: NDArray[np.bool_]
    nodes: Numbers
    far: Numbers
    own_graph: Numbers
    own_row: Numbers
    variant_row: Numbers
    hidden_degree: Numbers
    hidden_owner: Numbers
    hidden_partner: Numbers
    variant: Numbers


def imagine(
    context: PublicContext, beliefs: Beliefs, candidates: Candidates, sampling: Sampling, own: Numbers | None = None
) -> Imagined:
    """Samples graphs around the target of a list.

    Args:
        context: The public context.
        beliefs: What is believed of hidden pairs.
        candidates: The list; no graph contains a pair that it may add.
        sampling: How many graphs are sampled; fewer if the target has very many neighbours. Before these comes one
            graph without any hidden pairs near the target: the snapshot.
        own: All neighbours of the target, ascending, where the caller knows them; they take the place of the snapshot's
            and of imagined ones. By default they are imagined.

    Returns:
        The graphs.
    """
    target = candidates.target
    rng = np.random.default_rng([context.seed, target])
    shown = np.array(context.snapshot.neighbours(target), np.int64)
    neighbours = shown if own is None else own
    hidden = _mean_hidden(context, beliefs, target, len(neighbours), rng) if own is None else 0.0
    sampling = sampling.at_most(sampling.each * max(int(MOST_ROWS / (len(neighbours) + hidden + 1)), LEAST_GRAPHS))
    number = 1 + sampling.number * sampling.each
    joined = ends_beside(target, candidates.additions)
    if own is None:
        own_graph, own_node = _own_pairs(context, beliefs, target, joined, sampling, rng)
    else:
        own_graph = own_node = np.empty(0, np.int64)
    nodes = np.unique(np.concatenate([neighbours, joined, own_node]))
    counts = np.where(among(np.concatenate([neighbours, joined]), nodes), VARIANTS, 1)
    first = np.cumsum(counts) - counts
    several = counts > 1
    chosen = np.repeat(first[None], number, axis=0)
    chosen[1:, several] += 1 + (rng.random((number, len(nodes)))[1:, several] * (VARIANTS - 1)).astype(np.int64)
    degree, owner, far, partner = _variants(context, beliefs, nodes, counts, rng)
    return Imagined(
        target=target,
        number=number,
        neighbours=neighbours,
        in_snapshot=among(shown, neighbours),
        nodes=nodes,
        far=far,
        own_graph=own_graph,
        own_row=np.searchsorted(nodes, own_node),
        variant_row=np.repeat(np.arange(len(nodes)), counts),
        hidden_degree=degree,
        hidden_owner=owner,
        hidden_partner=partner,
        variant=chosen,
    )


def ends_beside(target: int, pairs: tuple[tuple[int, int], ...]) -> Numbers:
    """The other ends of those pairs that the target is part of, in the order of the pairs."""
    return np.array([one + other - target for one, other in pairs if target in (one, other)], np.int64)


def _own_pairs(
    context: PublicContext,
    beliefs: Beliefs,
    target: int,
    joined: Numbers,
    sampling: Sampling,
    rng: np.random.Generator,
) -> tuple[Numbers, Numbers]:
    """The target's imagined pairs: graph and other end, in order of graphs and without repetitions."""
    pool, evidence = pool_of(context), Evidence.of(context, target)
    number, possible = 1 + sampling.number, evidence.possible.copy()
    barred = places(pool.nodes, joined)
    possible[barred[barred >= 0]] = False
    chances = probabilities(beliefs.links, evidence)
    if context.posterior is None:
        degrees = np.full(number, context.snapshot.degrees(np.array([target]))[0])
        counts = beliefs.hidden_degrees.sample(degrees, rng)
    else:
        rest = context.posterior.rest[target]
        chances = _by_class(chances, pool.probabilities, rest)
        counts = rng.poisson(rest.sum(), number)
    counts = counts.clip(max=len(pool.nodes))
    counts[0] = 0
    graph, place = _drawn(chances, possible, counts, rng)
    if context.posterior is None:
        return _in_each(graph, pool.nodes[place], sampling.each)
    return _in_each(
        *_with_listed(context.posterior, target, joined, (graph, pool.nodes[place]), number, rng), sampling.each
    )


def _mean_hidden(context: PublicContext, beliefs: Beliefs, target: int, degree: int, rng: np.random.Generator) -> float:
    """About how many hidden pairs the target has."""
    if context.posterior is None:
        return float(beliefs.hidden_degrees.sample(np.full(16, degree), rng).mean())
    return context.posterior.expected_at(target)


def _drawn(
    chances: Floats, possible: NDArray[np.bool_], counts: Numbers, rng: np.random.Generator
) -> tuple[Numbers, Numbers]:
    """For each graph so many distinct places of the pool, sampled by their chances where they are possible."""
    cumulative = np.cumsum(chances, dtype=np.float64)
    draws = SPARE * counts
    points = rng.random(int(draws.sum())) * cumulative[-1]
    drawn = np.searchsorted(cumulative, points).clip(max=len(cumulative) - 1)
    keys = np.repeat(np.arange(len(counts)), draws) * len(chances) + drawn
    keys, first_drawn = np.unique(keys[possible[drawn]], return_index=True)
    graph, place = np.divmod(keys[np.argsort(first_drawn)], len(chances))
    rank = np.arange(len(graph)) - np.searchsorted(graph, graph)
    kept = rank < counts[graph]
    return graph[kept], place[kept]


def _by_class(chances: Floats, classes: Floats, rest: Floats) -> Floats:
    """The chances of partners, changed so that those of each class have the share that `rest` gives the class."""
    before = chances @ classes
    changed: Floats = chances * (classes @ (rest / np.maximum(before, np.float32(1e-9))))
    return changed


def _with_listed(
    posterior: Posterior,
    target: int,
    joined: Numbers,
    found: tuple[Numbers, Numbers],
    number: int,
    rng: np.random.Generator,
) -> tuple[Numbers, Numbers]:
    """Imagined pairs together with a sample of the listed ones for each graph but the first; each pair once."""
    graph, other = posterior.sample(np.full(number, target), rng)
    kept = (graph > 0) & ~np.isin(other, joined)
    count = len(posterior.rest)
    keys = np.unique(np.concatenate([found[0] * count + found[1], graph[kept] * count + other[kept]]))
    graph, other = np.divmod(keys, count)
    return graph, other


def _in_each(sample: Numbers, node: Numbers, each: int) -> tuple[Numbers, Numbers]:
    """The pairs of every graph, if each sample but number 0, the snapshot, stands in `each` consecutive graphs."""
    graph = 1 + (sample - 1)[:, None] * each + np.arange(each)
    order = np.argsort(graph, axis=None, kind="stable")
    return graph.ravel()[order], np.repeat(node, each)[order]


def _variants(
    context: PublicContext, beliefs: Beliefs, nodes: Numbers, counts: Numbers, rng: np.random.Generator
) -> tuple[Numbers, Numbers, Numbers, Numbers]:
    """Hidden pairs of variants of each node: the degree of each variant; the owner of each pair; where pairs may lead,
    and where in that list each pair leads.

    `counts` has the number of variants of each node. The first of several variants has no hidden pairs.
    """
    none = (np.cumsum(counts) - counts)[counts > 1]
    if context.posterior is None:
        degrees, owner, partner = _imagined_variants(context, beliefs, nodes, counts, none, rng)
        return degrees, owner, pool_of(context).nodes, partner
    owner, other = _sketched_variants(context, context.posterior, np.repeat(nodes, counts), none, rng)
    far = np.union1d(pool_of(context).nodes, other)
    return np.bincount(owner, minlength=int(counts.sum())), owner, far, np.searchsorted(far, other)


def _imagined_variants(
    context: PublicContext, beliefs: Beliefs, nodes: Numbers, counts: Numbers, none: Numbers, rng: np.random.Generator
) -> tuple[Numbers, Numbers, Numbers]:
    """Degrees of variants, owners, and partners by their position in the pool; the variants `none` have no pairs.

    A variant has one class, sampled from the node's class probabilities. With probability `same_class` a partner is
    sampled within that class, otherwise among all nodes.
    """
    degrees = beliefs.hidden_degrees.sample(np.repeat(public_degrees(context, nodes), counts), rng)
    degrees[none] = 0
    cumulative = np.repeat(np.cumsum(class_probabilities(context, nodes), axis=1), counts, axis=0)
    classes = (rng.random((len(degrees), 1)) > cumulative).sum(axis=1).clip(max=cumulative.shape[1] - 1)
    owner = np.repeat(np.arange(len(degrees)), degrees)
    within = rng.random(len(owner)) < beliefs.same_class
    partner = _partners(context, classes[owner], within, rng)
    if beliefs.closure:
        partner = _closing(context, np.repeat(nodes, counts)[owner], partner, beliefs.closure, rng)
    return degrees, owner, partner


def _closing(
    context: PublicContext, node: Numbers, partner: Numbers, share: float, rng: np.random.Generator
) -> Numbers:
    """Partners, by their positions in the pool, of which a share is replaced by neighbours of public neighbours."""
    between = _some_neighbour(context, node, rng)
    end = _some_neighbour(context, between, rng)
    place = places(pool_of(context).nodes, end)
    is_closed = (rng.random(len(node)) < share) & (place >= 0) & (end != node)
    found: Numbers = np.where(is_closed, place, partner)
    return found


def _some_neighbour(context: PublicContext, nodes: Numbers, rng: np.random.Generator) -> Numbers:
    """A random public neighbour of each node; the node itself where it has none."""
    degrees = context.snapshot.degrees(nodes)
    entries = context.snapshot.starts[nodes] + (rng.random(len(nodes)) * degrees).astype(np.int64)
    found = nodes.copy()
    has_some = degrees > 0
    found[has_some] = context.snapshot.others[entries[has_some]]
    return found


def _sketched_variants(
    context: PublicContext, posterior: Posterior, nodes: Numbers, none: Numbers, rng: np.random.Generator
) -> tuple[Numbers, Numbers]:
    """Owners and partners of the hidden pairs of variants, in order of variants; `nodes` has the node of each.

    The listed pairs of a variant are sampled one by one, and the rest by class.
    """
    rest = posterior.rest[nodes]
    degrees = rng.poisson(rest.sum(axis=1))
    owner = np.repeat(np.arange(len(nodes)), degrees)
    cumulative = np.cumsum(rest, axis=1)[owner]
    classes = (rng.random((len(owner), 1)) * cumulative[:, -1:] > cumulative).sum(axis=1).clip(max=rest.shape[1] - 1)
    other = pool_of(context).nodes[_partners(context, classes, np.ones(len(owner), np.bool_), rng)]
    variant, listed = posterior.sample(nodes, rng)
    owner, other = np.concatenate([owner, variant]), np.concatenate([other, listed])
    kept = ~np.isin(owner, none)
    order = np.argsort(owner[kept], kind="stable")
    return owner[kept][order], other[kept][order]


def _partners(context: PublicContext, classes: Numbers, within: NDArray[np.bool_], rng: np.random.Generator) -> Numbers:
    """A partner for each pair, by its position in the pool: of the given class where it is within it, else of any."""
    partners = _partners_by_class(context)
    low = np.where(within, partners.bounds[classes], 0)
    high = np.where(within, partners.bounds[classes + 1], partners.bounds[-1])
    points = low + rng.random(len(classes)) * (high - low)
    entry = np.searchsorted(partners.cumulative, points).clip(max=len(partners.cumulative) - 1)
    chosen: Numbers = entry % partners.count
    return chosen


@final
@dataclass(frozen=True, slots=True, eq=False)
class _PartnersByClass:
    """Cumulative weights of (class, node of the pool), class after class; the bounds of each class; the nodes."""

    cumulative: NDArray[np.float64]
    bounds: NDArray[np.float64]
    count: int


@per_context(maxsize=1)
def _partners_by_class(context: PublicContext) -> _PartnersByClass:
    pool = pool_of(context)
    weights = pool.probabilities * (pool.degrees + 1)[:, None]
    cumulative = np.cumsum(weights.T.ravel(), dtype=np.float64)
    bounds = np.append(0.0, cumulative[len(pool.nodes) - 1 :: len(pool.nodes)])
    return _PartnersByClass(cumulative, bounds, len(pool.nodes))
