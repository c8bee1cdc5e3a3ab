"""Graph-level noise at any price, as a graph again: pairs whose noisy value is at least one half are kept.

Certifies: what the noise does, for one edge: RR-LDP and LapDP epsilon, NaiveDP (epsilon, delta). Keeping pairs is
post-processing. It makes graphs of weights explainable at a size cap, and is kinder to them than their weights are.
"""

from collections.abc import Callable, Mapping
from fractions import Fraction
from math import exp

import dp_accounting
import numpy as np
from numpy.typing import NDArray
from scipy.stats import norm

from privcfs.public.context import PublicContext
from privcfs.public.sketches.triangle import number_of_pairs, pair_at, place_of
from privcfs_lab.baselines.graph_level import DELTA
from privcfs_lab.measuring.simulate import Simulation

Pairs = NDArray[np.int64]
# Larger graphs are not made: every explanation would read most of them.
MOST_PAIRS = 1_000_000


def gaussian_deviation(epsilon: float) -> float:
    """The smallest deviation that guarantees (epsilon, delta) for a change by one (Balle and Wang 2018)."""
    return float(dp_accounting.get_sigma_gaussian(epsilon, DELTA))


# The probability that noise takes a pair across one half.
CROSSING: Mapping[str, Callable[[float], float]] = {
    "RR-LDP": lambda epsilon: 1 / (1 + exp(epsilon)),
    "LapDP": lambda epsilon: exp(-epsilon / 2) / 2,
    "NaiveDP": lambda epsilon: float(norm.sf(0.5 / gaussian_deviation(epsilon))),
}


def believed_graph(world: Simulation, base: PublicContext, method: str, total: Fraction) -> PublicContext | None:
    """The snapshot and the noisy pairs outside it, taken for the graph as it stands; None where there are too many.

    The number of pairs that noise brings is drawn first, then where they fall: the same law.
    """
    crossing, nodes = CROSSING[method](float(total)), base.number_of_nodes
    if crossing * number_of_pairs(nodes) > MOST_PAIRS:
        return None
    rng = np.random.default_rng([world.seed, *f"{method} {total}".encode()])
    pairs = world.data.pairs
    hidden = pairs[~base.snapshot.has_pairs(pairs)]
    kept = place_of(hidden, nodes)[rng.random(len(hidden)) >= crossing]
    count = number_of_pairs(nodes)
    wrong = np.unique(rng.integers(count, size=rng.binomial(count, crossing)))
    wrong = wrong[~np.isin(wrong, place_of(pairs, nodes))]
    shown = np.concatenate([place_of(base.snapshot.pairs, nodes), kept, wrong])
    return PublicContext(base.features, pair_at(np.sort(shown), nodes), base.model, assumptions=base.assumptions)
