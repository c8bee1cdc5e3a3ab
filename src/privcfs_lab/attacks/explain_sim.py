"""ExplainSim (Olatunji and others 2022): nodes whose explanations look alike are taken for neighbours."""

from dataclasses import dataclass
from math import sqrt
from typing import final

import numpy as np

from privcfs_lab.attacks.attack import Answer, Attack, Guesses, Victim, balanced_pairs, problem_of
from privcfs_lab.measuring.simulate import Simulation

PAIRS = 200


@final
@dataclass(frozen=True, slots=True)
class ExplainSim(Attack):
    """Cosine similarity of what is said about features, for both ends of each pair."""

    def guesses(self, victim: Victim, world: Simulation, most: int | None) -> Guesses:
        pairs, truth = balanced_pairs(world, 8 * most if most else PAIRS)
        nodes = sorted({int(node) for node in pairs.ravel()})
        answers = dict(zip(nodes, victim.answers(problem_of(world, nodes)), strict=True))
        scores = [_cosine(answers[int(u)], answers[int(w)]) for u, w in pairs]
        return Guesses(np.array(scores), truth, np.arange(len(truth)))


def _cosine(one: Answer, other: Answer) -> float:
    here, there = ({name: value for name, value in answer.items() if name[0] == "feature"} for answer in (one, other))
    length = sqrt(sum(value**2 for value in here.values()) * sum(value**2 for value in there.values()))
    return sum(value * there.get(name, 0.0) for name, value in here.items()) / length if length else 0.0
