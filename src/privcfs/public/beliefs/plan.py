"""The best short list for a belief: which candidates a draw should choose among, and what it then achieves.

A draw from a short list of k candidates gives the best of them e**epsilon times the probability of each other one. That
is subset selection with one place in front under a base measure of equal weights, and every pure epsilon-DP selection
is bettered by a subset selection under some base measure (docs/promise.md, 11). A longer list is likelier to contain a
candidate that is valid, and less likely to draw it. The list is grown one candidate at a time, each time by the one
that adds most to the expected worth, and the length of highest expected worth is kept. Floats are fine here, since any
public list keeps the promise.
"""

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.float32]
Numbers = NDArray[np.int64]
# A list is grown while it is shorter than this, and while the best length found is at least a third of it.
LONGEST, PATIENCE = 256, 8


class ShortList(NamedTuple):
    """Positions of the chosen candidates, in the order in which they were chosen, and the expected worth of a draw."""

    positions: Numbers
    worth: float


def short_list(valid: Floats, worth: Floats, likelihood: Floats, odds: float) -> ShortList:
    """The short list of highest expected worth among those that grow greedily.

    Args:
        valid: The probability that each candidate is valid on each imagined graph: (graphs, candidates).
        worth: What a valid candidate is worth: (candidates,). A candidate that must not be drawn is worth nothing.
        likelihood: The probability of each graph: (graphs,).
        odds: e**epsilon.

    Returns:
        At least one position.
    """
    alone = (likelihood @ valid) * worth
    lacking = likelihood.astype(np.float64)  # The probability of each graph, and that nothing on the list is valid.
    drawn_alone = alone.copy()  # Too small to be chosen again, for what is chosen already.
    chosen: list[int] = []
    drawn = first = 0.0
    best_length, best_value = 1, -1.0
    while len(chosen) < min(LONGEST, len(worth), 2 * best_length + PATIENCE):
        added = (lacking.astype(np.float32) @ valid) * worth
        position = int((drawn_alone + (odds - 1) * added).argmax())
        drawn_alone[position] = -np.inf
        chosen.append(position)
        drawn += float(alone[position])
        first += float(added[position])
        lacking *= 1 - valid[:, position]
        value = (drawn + (odds - 1) * first) / (len(chosen) + odds - 1)
        if value > best_value:
            best_length, best_value = len(chosen), value
    return ShortList(np.array(chosen[:best_length], np.int64), best_value)
