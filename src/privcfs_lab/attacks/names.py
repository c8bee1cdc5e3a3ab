"""The simplest attack: whatever pair an answer about one of its ends names is taken for an edge."""

from dataclasses import dataclass
from typing import final

import numpy as np

from privcfs_lab.attacks.attack import Attack, Guesses, Victim, balanced_pairs, problem_of
from privcfs_lab.measuring.simulate import Simulation

PAIRS = 200


@final
@dataclass(frozen=True, slots=True)
class Names(Attack):
    """Asks about one end of each pair."""

    def guesses(self, victim: Victim, world: Simulation, most: int | None) -> Guesses:
        pairs, truth = balanced_pairs(world, 8 * most if most else PAIRS)
        answers = victim.answers(problem_of(world, [int(u) for u, _ in pairs]))
        named = [("pair", int(u), int(w)) in answer for (u, w), answer in zip(pairs, answers, strict=True)]
        return Guesses(np.array(named, np.float64), truth, np.arange(len(truth)))
