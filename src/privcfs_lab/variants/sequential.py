"""Two stages (the paper's ablation a): a first pair at half the price, then a second given the first at the other half.

Certifies: pure epsilon-DP for the whole graph, by composition of two exponential mechanisms.
Operations: delete at most two pairs; either stage may choose none.
"""

from fractions import Fraction

import numpy as np

from privcfs.public.epsilon import Price, parse_epsilon
from privcfs_lab.measuring.inspection import Inspection
from privcfs_lab.measuring.quality import Law


def law(found: Inspection, epsilon: Price, printed: Fraction | None = None) -> Law:
    """The probability of each set of at most two pairs, in the order of the edge-only support."""
    sets = found.candidates.pair_sets
    if len(found.candidates.feature_sets) > 1 or found.candidates.caps.pairs > 2:
        raise ValueError("two stages choose at most two pairs and no feature")
    position = {chosen: number for number, chosen in enumerate(sets)}
    rate = float(parse_epsilon(epsilon)) / 2 / (2 * float(printed or found.range))
    result = np.zeros(len(sets))
    first = [chosen for chosen in sets if len(chosen) < 2]
    for start, chance in zip(first, _softmax(found, [position[chosen] for chosen in first], rate), strict=True):
        reached = [position[tuple(sorted({*start, *chosen}))] for chosen in first if not set(chosen) & set(start)]
        np.add.at(result, reached, chance * _softmax(found, reached, rate))
    return result


def _softmax(found: Inspection, positions: list[int], rate: float) -> Law:
    weights = np.exp(rate * found.utilities[positions])
    law: Law = weights / weights.sum()
    return law
