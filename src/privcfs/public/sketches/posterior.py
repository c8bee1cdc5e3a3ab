"""What is believed of every hidden pair once a sketch is known: Bayes' rule, with public beliefs as the prior.

The prior rate of a pair follows from the law of hidden degrees and the link model. A noisy count changes the rates of
all pairs of its node with one class, as if hidden pairs were Poisson numbers. Randomised response multiplies the odds
of a pair by e^epsilon where it is shown, and by e^-epsilon where it is not. Everything here is post-processing.
"""

from collections.abc import Iterator
from typing import NamedTuple, final

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray

from privcfs.public.beliefs.hidden_degrees import Growing, HiddenDegrees
from privcfs.public.beliefs.imagined import Beliefs
from privcfs.public.beliefs.links import LEAST_AGREEMENT, LogLinear
from privcfs.public.beliefs.pool import pool_of, profiles_of, softmax
from privcfs.public.beliefs.posterior import Posterior
from privcfs.public.context import PublicContext
from privcfs.public.nearby import snapshot_logits
from privcfs.public.sketches.sketch import Sketch
from privcfs.tables.neighbours import Neighbours

Floats = NDArray[np.float32]
Numbers = NDArray[np.int64]
# A pair that is likelier than this is believed, and part of the graph that guides. One that is likelier than LISTED is
# listed with its probability. Less likely ones are summed up by class.
BELIEVED, LISTED = 0.5, 0.002
# Rates of single pairs are kept below this.
MOST_RATE = 0.9
# So many entries of a table of pairs are computed at once.
BLOCK = 1 << 22
# The shape of the law of hidden degrees that is left: nearly that of a Poisson law.
SHAPE = 20.0
# The mean of a law of hidden degrees is taken over so many samples.
SAMPLES = 512
# A posterior count is computed over numbers up to so many standard deviations above the prior mean.
SPREAD, LEAST_COUNTS = 8, 64


def posterior_of(base: PublicContext, beliefs: Beliefs, sketch: Sketch) -> Posterior:
    """What is believed of every pair.

    Args:
        base: The public context without the sketch.
        beliefs: What is believed without the sketch.
        sketch: The sketch of this context.

    Returns:
        The same for the same public data.
    """
    table = _Pairs.of(base, beliefs)
    tilt = None if sketch.counts is None else _tilt(table, sketch)
    odds = float(np.exp(float(sketch.plan.responses)))
    pairs, chances, rest = [], [], np.zeros((base.number_of_nodes, base.number_of_classes), np.float32)
    for nodes, rates in table.rates(tilt):
        chance = rates if sketch.shown is None else _answered(rates, odds, sketch.shown_pairs, nodes)
        row, other = np.nonzero(chance >= LISTED)
        found = chance[row, other]
        forward = nodes[row] < other
        pairs.append(np.column_stack([nodes[row], other])[forward])
        chances.append(found[forward])
        chance[row, other] = 0
        rest[nodes] = chance @ table.probabilities
    every, likely = np.concatenate(pairs), np.concatenate(chances)
    is_believed = likely > BELIEVED
    known = np.concatenate([base.snapshot.pairs, every[is_believed]])
    listed, ordered = _listed(every[~is_believed], likely[~is_believed], base.number_of_nodes)
    return Posterior(Neighbours.of_pairs(known, base.number_of_nodes), listed, ordered, rest)


def imagined_pairs(base: PublicContext, beliefs: Beliefs, rng: np.random.Generator) -> Numbers:
    """Hidden pairs of all nodes, imagined once from public beliefs: for trials where nothing is disclosed."""
    found = []
    for nodes, rates in _Pairs.of(base, beliefs).rates():
        row, other = np.nonzero(rng.random(rates.shape, np.float32) < rates)
        found.append(np.column_stack([nodes[row], other])[nodes[row] < other])
    return np.concatenate(found)


def residual_law(posterior: Posterior) -> HiddenDegrees:
    """The law of hidden degrees that is left once the believed pairs are part of the graph: a line in their number."""
    degrees, left = np.diff(posterior.believed.starts), posterior.expected()
    variance = float(degrees.var())
    slope = max(float(np.cov(degrees, left)[0, 1]) / variance, 0.0) if variance > 0 else 0.0
    return Growing(float(left.mean() - slope * degrees.mean()), slope, SHAPE)


def mean_hidden_degrees(base: PublicContext, law: HiddenDegrees) -> NDArray[np.float64]:
    """The expected hidden degree of every node."""
    degrees, which = np.unique(np.diff(base.snapshot.starts), return_inverse=True)
    drawn = law.sample(np.repeat(degrees, SAMPLES), np.random.default_rng([base.seed, 5]))
    means: NDArray[np.float64] = drawn.reshape(len(degrees), SAMPLES).mean(axis=1)[which]
    return means


@final
class _Pairs(NamedTuple):
    """Prior rates of all pairs of nodes, computed some rows at a time."""

    base: PublicContext
    weights: tuple[float, ...]  # of the link model, column by column of its evidence
    own: sp.csr_array
    around: sp.csr_array
    probabilities: Floats  # (nodes, classes)
    pairs: sp.csr_array  # of the snapshot, as a matrix
    popularity: Floats  # (nodes): the factor that a node's public degree contributes as a partner
    share: Floats  # (nodes): the expected hidden degree over the sum of all its partners' weights

    @classmethod
    def of(cls, base: PublicContext, beliefs: Beliefs) -> "_Pairs":
        """One pass over all pairs, which finds the sums of weights."""
        assert isinstance(beliefs.links, LogLinear)
        nodes, snapshot = np.arange(base.number_of_nodes), base.snapshot
        profiles, weights = profiles_of(base, nodes, pool_of(base).feature_weights), beliefs.links.weights
        entries = np.asarray(snapshot.others, np.int64)
        pairs = sp.csr_array((np.ones(len(entries), np.float32), entries, snapshot.starts), shape=(len(nodes),) * 2)
        popularity = np.exp(weights[3] * np.log1p(snapshot.degrees(nodes))).astype(np.float32)
        probabilities = softmax(snapshot_logits(base, nodes))
        own, around = profiles.own, profiles.around
        table = cls(base, weights, own, around, probabilities, pairs, popularity, np.ones(len(nodes), np.float32))
        sums = np.concatenate([(weight @ popularity) for _, weight in table._weights()])
        hidden = mean_hidden_degrees(base, beliefs.hidden_degrees)
        return table._replace(share=(hidden / np.maximum(sums, 1e-30)).astype(np.float32))

    def rates(self, tilt: Floats | None = None) -> Iterator[tuple[Numbers, Floats]]:
        """Blocks of nodes with the prior rates of all their pairs: (block, nodes); 0 where no pair can be hidden.

        A pair has two ends, and its rate is the mean of what each end makes of it. With `tilt` (nodes, classes), rates
        are multiplied at both ends by the factor of the class of the other end.
        """
        classes = self.probabilities.argmax(axis=1)
        for nodes, weight in self._weights():
            outwards = self.share[nodes, None] * self.popularity
            inwards = self.popularity[nodes, None] * self.share
            weight *= (outwards + inwards) / 2
            if tilt is not None:
                weight *= tilt[nodes][:, classes] * tilt[:, classes[nodes]].T
            yield nodes, np.minimum(weight, np.float32(MOST_RATE))

    def _weights(self) -> Iterator[tuple[Numbers, Floats]]:
        """Blocks of nodes with the weights of all their pairs, without popularity."""
        alike, around_alike, agreement, _, shared = self.weights
        count = len(self.popularity)
        for nodes in np.array_split(np.arange(count), max(count * count // BLOCK, 1)):
            scores = np.float32(alike) * (self.own[nodes] @ self.own.T).toarray()
            scores += np.float32(around_alike) * (self.around[nodes] @ self.around.T).toarray()
            agree = self.probabilities[nodes] @ self.probabilities.T
            scores += np.float32(agreement) * np.log(agree + np.float32(LEAST_AGREEMENT))
            two_steps = self.pairs[nodes] @ self.pairs
            scores += np.float32(shared) * (two_steps.toarray() > 0)
            weight = np.exp(scores.astype(np.float32))
            weight[self.pairs[nodes].nonzero()] = 0
            weight[np.arange(len(nodes)), nodes] = 0
            yield nodes, weight.astype(np.float32)


def _answered(rates: Floats, odds: float, shown: Neighbours, nodes: Numbers) -> Floats:
    """The probabilities of pairs, given which of them randomised response shows."""
    likelihood = np.full(rates.shape, 1 / odds, np.float32)
    position, other = shown.neighbours_of(nodes)
    likelihood[position, other] = odds
    weighed = rates * likelihood
    chances: Floats = (weighed / (1 - rates + weighed)).astype(np.float32, copy=False)
    return chances


def _tilt(table: _Pairs, sketch: Sketch) -> Floats:
    """By how much each count changes the rate of its node's pairs with its class: the posterior mean over the prior."""
    assert sketch.counts is not None
    means = np.concatenate([(rates @ table.probabilities).astype(np.float64) for _, rates in table.rates()])
    half = float(sketch.plan.counts) / 2
    tilt = np.empty(means.shape)
    for column in range(means.shape[1]):
        tilt[:, column] = posterior_mean(means[:, column], np.asarray(sketch.counts[:, column], np.int64), half)
    factors: Floats = (tilt / np.maximum(means, 1e-9)).astype(np.float32)
    return factors


def posterior_mean(means: NDArray[np.float64], noisy: Numbers, half: float) -> NDArray[np.float64]:
    """The mean of a Poisson number, given the number with discrete Laplace noise of scale 1 / half."""
    counts = np.arange(LEAST_COUNTS + int(means.max(initial=0) + SPREAD * np.sqrt(means.max(initial=0))))
    log_factorials = np.log(np.maximum(counts, 1)).cumsum()
    prior = counts * np.log(np.maximum(means, 1e-9))[:, None] - log_factorials
    logs = prior - half * np.abs(noisy[:, None] - counts)
    weights = np.exp(logs - logs.max(axis=1, keepdims=True))
    expected: NDArray[np.float64] = weights @ counts / weights.sum(axis=1)
    return expected


def _listed(pairs: Numbers, chances: Floats, count: int) -> tuple[Neighbours, Floats]:
    """Neighbour lists of pairs, and the probability of each entry."""
    both = np.concatenate([pairs, pairs[:, ::-1]])
    order = np.lexsort([both[:, 1], both[:, 0]])
    starts = np.searchsorted(both[order, 0], np.arange(count + 1))
    return Neighbours(starts, both[order, 1]), np.concatenate([chances, chances])[order]
