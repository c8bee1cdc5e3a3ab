"""The best attack on one unknown pair: all else is known, and so is the distribution of answers with and without it."""

from dataclasses import dataclass
from typing import final

import numpy as np

from privcfs_lab.attacks.attack import Attack, Guesses, Victim, open_problem
from privcfs_lab.audit.adjacent import neighbours
from privcfs_lab.measuring.simulate import Simulation
from privcfs_lab.measuring.targets import POPULATIONS

TARGETS = 40


@final
@dataclass(frozen=True, slots=True)
class LikelihoodRatio(Attack):
    """One pair near each target, taken away or added; one answer."""

    def guesses(self, victim: Victim, world: Simulation, most: int | None) -> Guesses:
        rng = np.random.default_rng([world.seed, 7])
        targets = rng.choice(POPULATIONS["everyone"](world), most or TARGETS, replace=False).tolist()
        found, problem = [], open_problem(world)
        for number, target in enumerate(targets):
            graphs = list(neighbours(world.data.pairs, target, rng))
            wanted = [pairs for deleted, pairs in graphs if deleted == bool(number % 2)] or [
                pairs for _, pairs in graphs
            ]
            if wanted:
                found.append(victim.told_apart(problem, target, wanted[0]))
        aucs, gains = np.array([one.auc for one in found]), np.array([one.advantage for one in found])
        return Guesses(aucs, np.ones(len(found), np.bool_), np.arange(len(found)), gains)
