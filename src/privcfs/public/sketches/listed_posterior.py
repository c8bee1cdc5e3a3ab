"""What is believed of the pairs of a large graph once a sketch of likeliest partners is known, some nodes at a time.

A covered pair has a prior rate: the expected hidden degree of its ends, of which the covered share falls on covered
pairs in proportion to their weights. Shown pairs are listed with their posterior probabilities. What is believed of all
other pairs of a node is summed up by class: covered pairs that are not shown, whose odds have become e^epsilon times
smaller, and pairs that are not covered, which keep their prior. Noisy counts change rates as in `posterior`.
"""

from collections.abc import Callable, Iterable, Iterator
from typing import Any, NamedTuple, final

import numpy as np
from numpy.typing import NDArray

from privcfs.public.beliefs.imagined import Beliefs
from privcfs.public.beliefs.links import LogLinear
from privcfs.public.beliefs.posterior import Posterior
from privcfs.public.context import PublicContext
from privcfs.public.sketches.likeliest import ASSUMED
from privcfs.public.sketches.posterior import BELIEVED, LISTED, MOST_RATE, mean_hidden_degrees, posterior_mean
from privcfs.public.sketches.profiles import PERCENT
from privcfs.public.sketches.sketch import Listed, Sketch
from privcfs.tables.neighbours import Neighbours
from privcfs.tables.store import resting

Array = NDArray[Any]
Floats = NDArray[np.float32]
Numbers = NDArray[np.int64]
# Keeps an array that comes in pieces, under a name, with its length and the kind of its entries.
Keep = Callable[[str, Iterable[Array], tuple[int, ...], str], Array]
# So many nodes are looked at together.
BLOCK = 1 << 16


def in_memory(_: str, pieces: Iterable[Array], shape: tuple[int, ...], kind: str) -> Array:
    """Keeps an array in memory."""
    every = [np.asarray(piece, kind) for piece in pieces]
    return np.concatenate(every).reshape(shape) if every else np.empty(shape, kind)


def posterior_of_listed(base: PublicContext, beliefs: Beliefs, sketch: Sketch, keep: Keep = in_memory) -> Posterior:
    """What is believed of every pair.

    Args:
        base: The public context without the sketch.
        beliefs: What is believed without the sketch.
        sketch: A sketch of this context in which pairs are listed.
        keep: Keeps the arrays of the result. By default they are kept in memory.

    Returns:
        The same for the same public data.
    """
    prior = _Prior.of(base, beliefs, sketch)
    one, other, chance = _shown(prior)
    is_believed = chance > BELIEVED
    more = _symmetric(one[is_believed], other[is_believed], base.number_of_nodes)[0]
    is_listed = ~is_believed & (chance >= LISTED)
    listed, order = _symmetric(one[is_listed], other[is_listed], base.number_of_nodes)
    starts = np.asarray(base.snapshot.starts) + more.starts
    width = (base.number_of_nodes, base.number_of_classes)
    return Posterior(
        Neighbours(
            keep("starts", [starts], starts.shape, "<i8"),
            keep("others", _together(base.snapshot, more), (int(starts[-1]),), "<i4"),
        ),
        Neighbours(
            keep("listed_starts", [listed.starts], listed.starts.shape, "<i8"),
            keep("listed", [listed.others], listed.others.shape, "<i4"),
        ),
        keep("chances", [chance[is_listed][order]], order.shape, "<f4"),
        keep("rest", (prior.rest(nodes) for nodes in blocks(base.number_of_nodes)), width, "<f4"),
    )


@final
class _Prior(NamedTuple):
    """Rates before randomised response, but after counts."""

    listed: Listed
    hidden: Floats  # expected hidden degrees
    popularity: Floats
    same_class: float
    overall: Floats  # the mean probabilities of classes
    tilt: Floats | None  # (nodes, classes): by how much counts change rates
    covered: float
    odds: float

    @classmethod
    def of(cls, base: PublicContext, beliefs: Beliefs, sketch: Sketch) -> "_Prior":
        assert sketch.listed is not None
        assert isinstance(beliefs.links, LogLinear)
        listed = sketch.listed
        hidden = mean_hidden_degrees(base, beliefs.hidden_degrees).astype(np.float32)
        degrees = np.diff(base.snapshot.starts).astype(np.float32)
        popularity = np.exp(np.float32(max(beliefs.links.weights[3], 0.0)) * np.log1p(degrees))
        overall = listed.likely.mean(axis=0, dtype=np.float64).astype(np.float32) / PERCENT
        covered = ASSUMED if listed.covered is None else listed.covered
        odds = float(np.exp(float(sketch.plan.responses)))
        prior = cls(listed, hidden, popularity, beliefs.same_class, overall, None, covered, odds)
        if sketch.counts is None:
            return prior
        half, counts = float(sketch.plan.counts) / 2, sketch.counts
        tilts = (_tilt(prior.by_class(nodes), counts[nodes].astype(np.int64), half) for nodes in blocks(len(hidden)))
        return prior._replace(tilt=np.concatenate(list(tilts)))

    def by_class(self, nodes: Numbers) -> Floats:
        """The expected number of hidden pairs of nodes, by class of the other end."""
        likely = self.listed.likely[nodes] / np.float32(PERCENT)
        mixed = np.float32(self.same_class) * likely + np.float32(1 - self.same_class) * self.overall
        found: Floats = self.hidden[nodes, None] * mixed
        return found if self.tilt is None else found * self.tilt[nodes]

    def rates(self, one: Numbers, other: Numbers, log_weights: Floats) -> Floats:
        """Prior rates of covered pairs."""
        both = self._share(one) * self.popularity[other] + self.popularity[one] * self._share(other)
        rates: Floats = (np.exp(log_weights) * both / 2).astype(np.float32)
        if self.tilt is not None:
            said = [self.listed.likely[ends].argmax(axis=1) for ends in (one, other)]
            rates *= self.tilt[one, said[1]] * self.tilt[other, said[0]]
        return np.minimum(rates, np.float32(MOST_RATE))

    def rest(self, nodes: Numbers) -> Floats:
        """What is believed of pairs that are not shown, by class."""
        left = 1 - self.covered + self.covered / self.odds
        found: Floats = self.by_class(nodes) * np.float32(left)
        return found

    def _share(self, nodes: Numbers) -> Floats:
        """What is multiplied by the weight of a pair, and by the popularity of its other end, to become a rate."""
        sums = np.maximum(self.listed.sums[nodes], np.float32(1e-30))
        return (np.float32(self.covered) * self.hidden[nodes] / sums).astype(np.float32)


def blocks(count: int) -> Iterator[Numbers]:
    """All nodes, some at a time."""
    for start in range(0, count, BLOCK):
        yield np.arange(start, min(start + BLOCK, count))


def _shown(prior: _Prior) -> tuple[NDArray[np.int32], NDArray[np.int32], Floats]:
    """Shown pairs, smaller node first and in order, with their posterior probabilities."""
    lists = prior.listed.shown
    ones, chances = [np.empty(0, np.int32)], [np.empty(0, np.float32)]
    for nodes in blocks(len(prior.hidden)):
        entries = slice(int(lists.starts[nodes[0]]), int(lists.starts[nodes[-1] + 1]))
        one = np.repeat(nodes, np.diff(lists.starts[nodes[0] : nodes[-1] + 2]))
        rates = prior.rates(one, np.asarray(lists.others[entries], np.int64), prior.listed.log_weights[entries])
        weighed = rates * np.float32(prior.odds)
        ones.append(one.astype(np.int32))
        chances.append((weighed / (1 - rates + weighed)).astype(np.float32))
    return np.concatenate(ones), np.asarray(lists.others), np.concatenate(chances)


def _tilt(means: Floats, counts: Numbers, half: float) -> Floats:
    """By how much each count changes the rate of its node's pairs with its class: the posterior mean over the prior."""
    tilt = np.empty(means.shape, np.float32)
    for column in range(means.shape[1]):
        prior = means[:, column].astype(np.float64)
        tilt[:, column] = posterior_mean(prior, counts[:, column], half) / np.maximum(prior, 1e-9)
    return tilt


def _symmetric(one: NDArray[np.integer], other: NDArray[np.integer], count: int) -> tuple[Neighbours, Numbers]:
    """Neighbour lists of pairs, and which pair each entry is."""
    keys = np.concatenate([one.astype(np.int64) * count + other, other.astype(np.int64) * count + one])
    order = np.argsort(keys, kind="stable")
    owner, ends = np.divmod(keys[order], count)
    return Neighbours(np.searchsorted(owner, np.arange(count + 1)), ends.astype(np.int32)), order % max(len(one), 1)


def _together(snapshot: Neighbours, more: Neighbours) -> Iterator[Array]:
    """The neighbours of all nodes in two graphs that have no pair in common, node after node."""
    count = len(snapshot.starts) - 1
    for nodes in blocks(count):
        with resting():
            position, other = snapshot.neighbours_of(nodes)
        added_at, added = more.neighbours_of(nodes)
        keys = np.sort(np.concatenate([position * count + other, added_at * count + added]))
        yield keys % count
