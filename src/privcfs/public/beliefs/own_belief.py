"""What is believed about a list whose answer will be scored by reading the target's own edges alone.

Such a question cannot know whether a candidate is valid. It knows in how many graphs the candidate is valid that hold
the target's own edges and imagined ones elsewhere, and ranks candidates by that share. A plan for it imagines own pairs
first and pairs elsewhere for each of them, so that it does not count on knowing what will not be read. Few graphs are
imagined for each sample of own pairs, and the candidate that looks best on few graphs is partly the luckiest one.
Therefore candidates are ranked on one half of these graphs and judged on the other.
"""

from dataclasses import dataclass
from functools import cached_property
from typing import final

import numpy as np
from numpy.typing import NDArray

from privcfs.public.beliefs.belief import Belief, Bools, Calibration, Floats, Numbers
from privcfs.public.beliefs.plan import LONGEST, PATIENCE, ShortList


@final
@dataclass(frozen=True, eq=False)
class OwnBelief:
    """The share of graphs on which each candidate is valid, for each sample of own pairs.

    Attributes:
        prior: What is believed before anything is read: that of the public guess. At a low price a plan is little else.
        whole: What is believed on all imagined graphs: the snapshot, then the graphs of each sample, one after another.
        each: How many graphs there are for each sample; if there is but one, it both ranks and judges.
    """

    prior: Belief
    whole: Belief
    each: int

    @cached_property
    def _halves(self) -> tuple[Floats, Floats]:
        """The share of graphs on which candidates are valid, by half of the graphs of each sample.

        The snapshot counts as a sample of its own, and comes first: (samples, candidates).
        """
        valid, border = self.whole.valid, max(self.each // 2, 1)
        graphs = valid[1:].reshape(-1, self.each, valid.shape[1])
        first = np.concatenate([valid[:1], graphs[:, :border].mean(axis=1)])
        return first, np.concatenate([valid[:1], graphs[:, border:].mean(axis=1)]) if self.each > 1 else first

    @property
    def shares(self) -> Floats:
        """How likely each candidate is to be valid, for each sample and half: (2 x samples, candidates)."""
        return np.concatenate(self._halves[::-1])

    @property
    def ranking(self) -> Floats:
        """By what candidates rank: their expected worth on the other half of the graphs; shaped as `shares`."""
        return np.concatenate(self._halves) * self.whole.worth

    @property
    def likelihood(self) -> Floats:
        """The probability of each sample and half."""
        likelihood = self.whole.likelihood
        each = np.concatenate([likelihood[:1], likelihood[1:].reshape(-1, self.each).sum(axis=1)])
        both: Floats = np.concatenate([each, each]) * np.float32(0.5)
        return both

    def short_list(self, epsilon: float, allowed: Bools | None = None) -> ShortList:
        """The list that a draw at this price should choose among, of the allowed candidates alone.

        As in plan.py, the list is grown greedily. Its first candidate is the public guess, and each further one adds
        what it is worth beyond the best so far, where it ranks before that.
        """
        worth = self.whole.worth if allowed is None else self.whole.worth * allowed
        ranking, expected = self.ranking, self.shares * worth
        likelihood, odds = self.likelihood, float(np.exp(epsilon))
        alone = (self.prior.likelihood @ self.prior.valid) * worth
        chosen = [int(alone.argmax())]
        highest, reached = ranking[:, chosen[0]], expected[:, chosen[0]]
        left = np.arange(len(worth)) != chosen[0]
        drawn, first = float(alone[chosen[0]]), float(alone[chosen[0]])
        best_length, best_value = 1, first
        while len(chosen) < min(LONGEST, len(worth), 2 * best_length + PATIENCE):
            gained = likelihood @ np.where(ranking > highest[:, None], expected - reached[:, None], 0)
            position = int(np.where(left, alone + (odds - 1) * gained, -np.inf).argmax())
            left[position] = False
            chosen.append(position)
            ranks_first = ranking[:, position] > highest
            highest = np.where(ranks_first, ranking[:, position], highest)
            reached = np.where(ranks_first, expected[:, position], reached)
            drawn, first = drawn + float(alone[position]), first + float(gained[position])
            value = (drawn + (odds - 1) * first) / (len(chosen) + odds - 1)
            if value > best_value:
                best_length, best_value = len(chosen), value
        return ShortList(np.array(chosen[:best_length], np.int64), best_value)

    def probabilities(self, chosen: Numbers, epsilon: float) -> Floats:
        """The probability of each chosen candidate in a draw at this price: (2 x samples, chosen)."""
        odds = float(np.exp(epsilon))
        law: Floats = ((1 + (odds - 1) * self._is_first(chosen)) / (len(chosen) + odds - 1)).astype(np.float32)
        return law

    @property
    def calibration(self) -> Calibration:
        """Turns what is believed into probabilities that were right on public data."""
        return self.whole.calibration

    def drawn_and_valid(self, chosen: Numbers, epsilon: float) -> Floats:
        """The probability, for each sample and half, that each chosen candidate is valid and is drawn."""
        joint: Floats = self.probabilities(chosen, epsilon) * self.shares[:, chosen]
        return joint

    def confidences(self, chosen: Numbers, epsilon: float) -> NDArray[np.float64]:
        """For each chosen candidate the calibrated probability that it is valid, given that it was drawn."""
        drawn = self.likelihood @ self.probabilities(chosen, epsilon)
        return self.calibration(self.likelihood @ self.drawn_and_valid(chosen, epsilon) / drawn)

    def _is_first(self, chosen: Numbers) -> Floats:
        """1 where a chosen candidate ranks first for a sample; among equals, the one that comes first in the list."""
        order = np.argsort(chosen, kind="stable")
        ranked = self.ranking[:, chosen[order]]
        first = np.zeros(ranked.shape, np.float32)
        first[np.arange(len(ranked)), order[ranked.argmax(axis=1)]] = 1
        return first
