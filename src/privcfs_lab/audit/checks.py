"""Exact comparisons of two releases that differ in the private graph alone."""

from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from fractions import Fraction
from itertools import combinations
from math import exp
from typing import final

import numpy as np
from numpy.typing import NDArray

from privcfs.gate.mechanisms.mechanism import Mechanism
from privcfs.private.allowance import UNLIMITED
from privcfs.private.evaluators import evaluate
from privcfs.private.graph import PrivateGraph
from privcfs.private.utilities.utility import Scores, Utility
from privcfs.public.candidates.candidates import CandidateRule, Candidates
from privcfs.public.context import PublicContext
from privcfs_lab.measuring.quality import with_range

Pairs = NDArray[np.int64]
ROUNDING = 1e-9  # of floating-point reports; hostile scores are compared as exact fractions


@final
@dataclass(frozen=True, slots=True)
class Finding:
    """The worst that a check saw."""

    pairs: int = 0
    same_support: bool = True
    sensitivity: Fraction = Fraction(0)
    ratio: float = 1.0

    def worse(self, other: "Finding") -> "Finding":
        """Both findings as one."""
        return Finding(
            self.pairs + other.pairs,
            self.same_support and other.same_support,
            max(self.sensitivity, other.sensitivity),
            max(self.ratio, other.ratio),
        )

    def within(self, range_: Fraction, epsilon: Fraction) -> bool:
        """Whether support, sensitivity and ratio are all as claimed."""
        bound = exp(epsilon) * (1 + ROUNDING)
        return self.same_support and self.sensitivity <= range_ and self.ratio <= bound


@final
@dataclass(frozen=True, slots=True)
class Setting:
    """What is held fixed while the private graph varies; `printed` replaces the range by the paper's."""

    context: PublicContext
    target: int
    rule: Callable[[PrivateGraph], CandidateRule]
    utility: Utility
    mechanism: Mechanism
    epsilon: Fraction
    printed: Fraction | None = None


def compare(setting: Setting, first: Pairs, second: Pairs) -> Finding:
    """One release on each of two private graphs."""
    releases = [law_of(setting, pairs) for pairs in (first, second)]
    (candidates, scores, law), (other_candidates, other_scores, other_law) = releases
    if candidates != other_candidates:
        return Finding(1, same_support=False, ratio=float("inf"))
    moved = int(np.abs(scores.unseal() - other_scores.unseal()).max())
    ratio = max(float((law / other_law).max()), float((other_law / law).max()))
    return Finding(1, True, Fraction(moved, scores.grid.denominator), ratio)


def law_of(setting: Setting, pairs: Pairs) -> tuple[Candidates, Scores, NDArray[np.float64]]:
    """The candidates on one private graph, their scores, and the probability with which each is released."""
    graph = PrivateGraph.from_edges(pairs, number_of_nodes=setting.context.number_of_nodes)
    candidates = setting.rule(graph).propose(setting.context, setting.target)
    scores = setting.utility.score(evaluate(graph, setting.context, candidates, UNLIMITED))
    if setting.printed is not None:
        scores = with_range(scores, setting.printed)
    return candidates, scores, setting.mechanism.probabilities(scores, setting.epsilon)


def worst(findings: Iterable[Finding]) -> Finding:
    """All findings as one."""
    total = Finding()
    for finding in findings:
        total = total.worse(finding)
    return total


def edge_neighbours(pairs: Pairs, nodes: int) -> Iterator[Pairs]:
    """Every graph that differs in exactly one pair."""
    present = {(int(u), int(w)) for u, w in pairs}
    for pair in combinations(range(nodes), 2):
        yield as_pairs(present ^ {pair})


def node_neighbours(pairs: Pairs, nodes: int, rng: np.random.Generator) -> Iterator[Pairs]:
    """For each node, a graph in which all its pairs are drawn anew, and one in which it has none."""
    present = {(int(u), int(w)) for u, w in pairs}
    for node in range(nodes):
        rest = {pair for pair in present if node not in pair}
        yield as_pairs(rest)
        fresh = {(min(node, other), max(node, other)) for other in range(nodes) if other != node and rng.random() < 0.5}
        yield as_pairs(rest | fresh)


def as_pairs(present: set[tuple[int, int]]) -> Pairs:
    """A set of pairs as a sorted array."""
    return np.array(sorted(present), np.int64).reshape(-1, 2)
