"""What is believed about one list: the margin of every candidate on every imagined graph, and what follows from it.

A margin below 0 means that the candidate is valid. A margin on an imagined graph may be off; `doubt` is the scale of a
logistic law for that error. The law of a draw on any imagined graph is public. So the probability that an answer is
valid, given that it was drawn, is public too: it is the share of graphs on which it is valid, each graph weighted by
the probability of drawing it there.
"""

from dataclasses import dataclass
from functools import cached_property
from typing import final

import numpy as np
from numpy.typing import NDArray

from privcfs.public.beliefs.plan import ShortList, short_list
from privcfs.public.goals import Goal, best_of, classes_of

Bools = NDArray[np.bool_]
Floats = NDArray[np.float32]
Numbers = NDArray[np.int64]
# Probabilities are kept away from 0 and 1 by this much before their logarithms are taken.
EDGE = 0.002
# Where features have a schema, a candidate is nearly as sure as the surest one if its probability is at least this
# share of the surest one's. The cheapest of these is advised and guessed.
NEARLY = 0.95


@final
@dataclass(frozen=True, slots=True)
class Calibration:
    """Turns a believed probability into one that was right on public data: a line in log-odds.

    Attributes:
        offset: The log-odds for a believed probability of one half.
        slope: By how much the log-odds grow with the believed log-odds.
    """

    offset: float = 0.0
    slope: float = 1.0

    def __call__(self, believed: NDArray[np.floating]) -> NDArray[np.float64]:
        """Calibrated probabilities."""
        calibrated: NDArray[np.float64] = 1 / (1 + np.exp(-(self.offset + self.slope * log_odds(believed))))
        return calibrated


def log_odds(probability: NDArray[np.floating]) -> NDArray[np.float64]:
    """The logarithm of p / (1 - p), for p kept away from 0 and 1."""
    inner = np.clip(probability.astype(np.float64), EDGE, 1 - EDGE)
    found: NDArray[np.float64] = np.log(inner / (1 - inner))
    return found


@final
@dataclass(frozen=True, eq=False)
class Belief:
    """Margins (graphs, candidates), the worth of a valid candidate, sizes, and how far margins are trusted.

    The first graph is the snapshot as it is, and `trust` is its probability. The other graphs are equally likely. With
    `evidence`, the likelihood on each graph of something that was observed, all of these are weighted by it.
    """

    margins: Floats
    worth: Floats
    sizes: Numbers
    doubt: float
    trust: float = 0.0
    calibration: Calibration = Calibration()
    evidence: Floats | None = None

    @cached_property
    def valid(self) -> Floats:
        """The probability that each candidate is valid on each graph; the empty set never is."""
        valid: Floats = 1 / (1 + np.exp(np.clip(self.margins / self.doubt, -30, 30)))
        valid[:, 0] = 0
        return valid

    @cached_property
    def likelihood(self) -> Floats:
        """The probability of each graph."""
        imagined = len(self.margins) - 1
        likelihood = np.full(imagined + 1, (1 - self.trust) / max(imagined, 1), np.float32)
        likelihood[0] = self.trust if imagined else 1
        if self.evidence is not None:
            likelihood *= self.evidence
            likelihood /= likelihood.sum()
        return likelihood

    def guess(self, most: int | None = None, allowed: Bools | None = None) -> int:
        """The candidate of highest expected worth, allowed and of at most `most` elements: the public guess."""
        worth = self.worth if most is None else self.worth * (self.sizes <= most)
        worth = worth if allowed is None else worth * allowed
        return int(np.argmax((self.likelihood @ self.valid) * worth))

    def guess_confidence(self, position: int) -> float:
        """The probability that a candidate is valid, before anything is drawn."""
        return float(self.calibration(self.likelihood @ self.valid[:, [position]])[0])

    def short_list(self, epsilon: float, allowed: Bools | None = None) -> ShortList:
        """The list that a draw at this price should choose among, of the allowed candidates alone."""
        worth = self.worth if allowed is None else self.worth * allowed
        return short_list(self.valid, worth, self.likelihood, float(np.exp(epsilon)))

    def probabilities(self, chosen: Numbers, epsilon: float) -> Floats:
        """The probability of each chosen candidate in a draw at this price, on each graph: (graphs, chosen).

        Valid candidates rank before others, and smaller ones before larger ones.
        """
        order = np.lexsort([chosen, self.sizes[chosen]])
        valid = self.valid[:, chosen[order]]
        none_before = np.cumprod(np.column_stack([np.ones(len(valid)), 1 - valid]), axis=1)
        is_first = np.empty_like(valid)
        is_first[:, order] = none_before[:, :-1] * valid
        is_first[:, int(np.argmin(chosen))] += none_before[:, -1]
        odds = float(np.exp(epsilon))
        law: Floats = (1 + (odds - 1) * is_first) / (len(chosen) + odds - 1)
        return law

    def drawn_and_valid(self, chosen: Numbers, epsilon: float) -> Floats:
        """The probability, on each graph, that each chosen candidate is valid and is drawn: (graphs, chosen)."""
        order = np.lexsort([chosen, self.sizes[chosen]])
        valid = self.valid[:, chosen]
        sorted_valid = valid[:, order]
        none_before = np.empty_like(sorted_valid)
        none_before[:, order] = np.cumprod(np.column_stack([np.ones(len(valid)), 1 - sorted_valid]), axis=1)[:, :-1]
        odds = float(np.exp(epsilon))
        joint: Floats = valid * ((1 + (odds - 1) * none_before) / (len(chosen) + odds - 1))
        return joint

    def confidences(self, chosen: Numbers, epsilon: float) -> NDArray[np.float64]:
        """For each chosen candidate the calibrated probability that it is valid, given that it was drawn."""
        drawn = self.likelihood @ self.probabilities(chosen, epsilon)
        return self.calibration(self.likelihood @ self.drawn_and_valid(chosen, epsilon) / drawn)


def cheapest_nearly_best(chances: NDArray[np.floating], costs: Numbers, allowed: Bools) -> int:
    """The cheapest of the allowed candidates that are nearly as likely to be valid as the likeliest one.

    Args:
        chances: The probability that each candidate is valid.
        costs: What each candidate costs.
        allowed: Which candidates may be named; at least one.

    Returns:
        A position: of the candidates whose probability is at least NEARLY times the highest, the cheapest one; of
        equally cheap ones the likeliest; of equals the first.
    """
    chances = np.where(allowed, chances, -1.0)
    near = chances >= NEARLY * chances.max()
    return int(np.lexsort([-chances, costs, ~near])[0])


def margins_of(logits: Floats, desired: Goal = None) -> Floats:
    """Margins (graphs, candidates) from logits (candidates, classes, graphs); below 0 where a candidate is valid.

    Without `desired`, the margin is the logit of the class without any operation minus the highest other one. With it,
    it is the highest other logit minus the highest of the desired classes, and infinite where the class is one already.
    """
    graphs = np.arange(logits.shape[2])
    original = logits[0].argmax(axis=0)
    if isinstance(desired, tuple):
        wanted, by_class = classes_of(desired, logits.shape[1]), logits.transpose(1, 0, 2)
        missing = best_of(by_class, ~wanted) - best_of(by_class, wanted)
        return np.ascontiguousarray(np.where(wanted[original], np.inf, missing).T.astype(np.float32))
    label = original if desired is None else np.full(len(graphs), desired)
    chosen = logits[:, label, graphs]
    logits[:, label, graphs] = -np.inf
    others = logits.max(axis=1)
    logits[:, label, graphs] = chosen
    if desired is None:
        return np.ascontiguousarray((chosen - others).T)
    return np.ascontiguousarray(np.where(original == desired, np.inf, others - chosen).T)
