"""One coin a pair (the paper's ablation h): each is kept or deleted by itself, at an equal share of the price.

Certifies: pure epsilon-DP for the whole graph, by composition over the public pairs.
Operations: delete any number of public pairs; about half of them at common prices, so releases are large.
"""

from fractions import Fraction

import numpy as np

from privcfs.public.candidates.candidates import membership
from privcfs.public.epsilon import Price, parse_epsilon
from privcfs_lab.measuring.inspection import Inspection
from privcfs_lab.measuring.quality import Law


def law(found: Inspection, epsilon: Price, printed: Fraction | None = None) -> Law:
    """The probability of each set of pairs; the support must hold all of them."""
    pairs = len(found.candidates.deletions)
    sets = found.candidates.pair_sets
    if len(sets) != 2**pairs:
        raise ValueError("one coin a pair needs every set of pairs in the support")
    rate = float(parse_epsilon(epsilon)) / max(pairs, 1) / (2 * float(printed or found.range))
    alone = found.utilities[1 : pairs + 1]
    delete = 1 / (1 + np.exp(-rate * (alone - found.utilities[0])))
    chosen = membership(sets, pairs)
    result: Law = np.where(chosen, delete, 1 - delete).prod(axis=1)
    return result
