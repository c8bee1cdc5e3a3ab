"""LinkTeller (Wu and others 2022): if one node's features change what is said about another, they are neighbours."""

from dataclasses import dataclass
from math import sqrt
from typing import final

import numpy as np

from privcfs_lab.attacks.attack import Answer, Attack, Guesses, Victim, balanced_pairs, problem_of
from privcfs_lab.measuring.simulate import Simulation

PAIRS = 200


@final
@dataclass(frozen=True, slots=True)
class LinkTeller(Attack):
    """Asks about one end of each pair twice, the second time as if the other end had no features.

    Stronger than any real analyst, who cannot change the features that the owner uses.
    """

    def guesses(self, victim: Victim, world: Simulation, most: int | None) -> Guesses:
        pairs, truth = balanced_pairs(world, 8 * most if most else PAIRS)
        problem = problem_of(world, [int(u) for u, _ in pairs])
        off = [int(w) for _, w in pairs]
        before, after = victim.answers(problem, rounds=2), victim.answers(problem, off, rounds=2)
        return Guesses(
            np.array([_change(*both) for both in zip(before, after, strict=True)]), truth, np.arange(len(truth))
        )


def _change(before: Answer, after: Answer) -> float:
    """By entry, so that a long noisy answer does not look like a change."""
    names = set(before) | set(after)
    squares = sum((before.get(name, 0.0) - after.get(name, 0.0)) ** 2 for name in names)
    return sqrt(squares / max(len(names), 1))
