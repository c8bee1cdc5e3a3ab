"""Reconstruction from many answers: each graph that a few unknown pairs allow is weighed by how well it fits them."""

from dataclasses import dataclass
from itertools import product
from typing import final

import numpy as np

from privcfs_lab.attacks.attack import Attack, Guesses, Victim, open_problem
from privcfs_lab.audit.checks import as_pairs
from privcfs_lab.measuring.simulate import Simulation
from privcfs_lab.measuring.targets import POPULATIONS

TARGETS, UNKNOWN, SECRETS = 8, 4, 8


@final
@dataclass(frozen=True, slots=True)
class Reconstruction(Attack):
    """Of four pairs at each target any may be an edge, all else is known; answers about the target add up.

    Eight of the sixteen graphs that they allow, drawn by chance, are the truth in turn. The guess for a pair is its
    probability given all answers: no attack that knows as much does better.
    """

    answers: int = 1

    def guesses(self, victim: Victim, world: Simulation, most: int | None) -> Guesses:
        rng = np.random.default_rng([world.seed, 11])
        everyone = POPULATIONS["everyone"](world)
        edges = {(int(u), int(w)) for u, w in world.data.pairs}
        problem, scores, truths = open_problem(world), [], []
        for target in rng.choice(everyone, most or TARGETS, replace=False).tolist():
            own = [pair for pair in sorted(edges) if target in pair]
            others = [node for node in rng.choice(len(world.data.labels), 10, replace=False).tolist() if node != target]
            fresh = [pair for node in others if (pair := (min(node, target), max(node, target))) not in edges]
            unknown = (own[:2] + fresh)[:UNKNOWN]
            switches = np.array(list(product([False, True], repeat=UNKNOWN)))
            known = edges - set(unknown)
            graphs = [as_pairs(known | {pair for pair, on in zip(unknown, row, strict=True) if on}) for row in switches]
            secrets = rng.choice(len(graphs), SECRETS, replace=False).tolist()
            fit = victim.likelihoods(problem, target, graphs, secrets, self.answers)
            weight = np.exp(fit - fit.max(axis=1, keepdims=True))
            scores.append((weight @ switches / weight.sum(axis=1, keepdims=True)).ravel())
            truths.append(switches[secrets].ravel())
        group = np.repeat(np.arange(len(scores)), SECRETS * UNKNOWN)
        return Guesses(np.concatenate(scores), np.concatenate(truths), group)
