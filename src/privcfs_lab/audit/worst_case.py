"""The worst pair of graphs, searched for instead of sampled: all of them on small graphs, by climbing on real ones.

Beside it stands what the candidate list itself allows: no two graphs can do more than move every candidate from one end
of its own range to the other, so the largest ratio over such moves is a ceiling, at most e**epsilon.
"""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from fractions import Fraction
from functools import lru_cache
from itertools import combinations, product
from math import log
from typing import final

import numpy as np
from numpy.typing import NDArray

from privcfs.gate.mechanisms.mechanism import Mechanism
from privcfs.gate.method import Method
from privcfs.private.evaluators.outcomes import Outcomes
from privcfs.private.graph import PrivateGraph
from privcfs.private.utilities.utility import Scores, Utility
from privcfs.public.candidates.candidates import Candidates
from privcfs.public.context import PublicContext
from privcfs_lab.audit.checks import Pairs, as_pairs
from privcfs_lab.audit.distinguish import distinguish
from privcfs_lab.measuring.inspection import inspect
from privcfs_lab.measuring.measure import Records
from privcfs_lab.measuring.simulate import HALF, Simulation, TrainedOn
from privcfs_lab.measuring.study import Work
from privcfs_lab.measuring.targets import POPULATIONS

ADJACENCIES = ("edge", "node", "any graph")
TRIES, STEPS = 60, 60  # sampled neighbours of the real graph, and moves of each climb
CLIMBED = np.dtype(
    [
        ("seed", np.int64),
        ("target", np.int64),
        ("adjacency", np.int64),  # position in ADJACENCIES
        ("candidates", np.int64),
        ("sampled", np.float64),  # the logarithm of the largest ratio among sampled pairs
        ("loss", np.float64),  # ... and after climbing
        ("auc", np.float64),
        ("ceiling", np.float64),  # what the candidate list allows
    ]
)
SURE = 10.0  # a logit that leaves no doubt
Law = NDArray[np.float64]
Edge = tuple[int, int]


def exhaustive(
    context: PublicContext, target: int, method: Method, mechanisms: Mapping[str, Mechanism], epsilon: str
) -> dict[tuple[str, str], float]:
    """The logarithm of the largest ratio over all pairs of graphs on these nodes, by mechanism and what may differ."""
    nodes = context.number_of_nodes
    every = list(combinations(range(nodes), 2))
    codes = np.arange(1 << len(every))
    scores = [inspect(_graph(context, _decode(int(code), every)), context, target, method).scores for code in codes]
    edges = [~(1 << bit) for bit in range(len(every))]
    stars = [~sum(1 << bit for bit, pair in enumerate(every) if node in pair) for node in range(nodes)]
    found = {}
    for name, mechanism in mechanisms.items():
        laws = np.log([mechanism.probabilities(one, Fraction(epsilon)) for one in scores])
        for adjacency, masks in zip(ADJACENCIES, (edges, stars, [0]), strict=True):
            found[name, adjacency] = _widest(laws, codes, masks)
    return found


def _widest(laws: NDArray[np.float64], codes: NDArray[np.int64], masks: Iterable[int]) -> float:
    """The largest difference of one candidate's log-probability between graphs that agree outside some pairs."""
    found = 0.0
    for mask in masks:
        _, group = np.unique(codes & mask, return_inverse=True)
        order = np.argsort(group, kind="stable")
        starts = np.flatnonzero(np.diff(group[order], prepend=-1))
        ordered = laws[order]
        spread = np.maximum.reduceat(ordered, starts) - np.minimum.reduceat(ordered, starts)
        found = max(found, float(spread.max()))
    return found


def _decode(code: int, every: list[Edge]) -> Pairs:
    return as_pairs({pair for bit, pair in enumerate(every) if code >> bit & 1})


def list_ceiling(candidates: Candidates, utility: Utility, mechanism: Mechanism, epsilon: Fraction) -> float:
    """The logarithm of the largest ratio that moves within each candidate's own range allow."""
    low, high = score_ends(candidates, utility)
    grid = utility.grid(candidates.caps)
    _, first = np.unique(np.column_stack([low, high]), axis=0, return_index=True)
    found = 0.0
    for position in first:  # one candidate of each kind moves against all others
        here, there = low.copy(), high.copy()
        here[position], there[position] = high[position], low[position]
        laws = [mechanism.probabilities(Scores(values, grid), epsilon) for values in (here, there)]
        found = max(found, abs(log(laws[0][position] / laws[1][position])))
    return found


def score_ends(candidates: Candidates, utility: Utility) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """The lowest and highest score that each candidate can have on any graph, failed evaluations included.

    A score is taken to be lowest and highest where no candidate flips the decision or all of them do, and where none of
    their operations changes the graph or all of them do.
    """
    corners = [utility.score(_corner(candidates, utility, *both)) for both in product((False, True), repeat=2)]
    scores = np.array([one.unseal() for one in (*corners, utility.failed(candidates))])
    return scores.min(axis=0), scores.max(axis=0)


def _corner(candidates: Candidates, utility: Utility, flip: bool, real: bool) -> Outcomes:
    """What a graph would give on which every candidate but the empty set flips, or none; likewise for operations."""
    desired = utility.desired
    rival = 1 if desired is None else int(np.min(desired))
    logits = np.zeros((max(rival, 1) + 1, len(candidates)))
    logits[0 if rival else 1] = SURE
    logits[rival, 1:] = 2 * SURE * flip
    counts = [len(chosen) * real for chosen in candidates.pair_sets]
    return Outcomes(candidates, logits, np.array(counts, np.int64))


@final
@dataclass(frozen=True, slots=True)
class Climbed(Work):
    """The worst neighbour of every target that climbing finds, for each adjacency."""

    data: str
    population: str
    method: Method = Method()
    epsilon: str = "8"
    trained_on: TrainedOn = "all edges"

    @property
    def title(self) -> str:
        return f"worst neighbours, {self.data}, {self.population}"

    def records(self, world: Simulation, most: int | None) -> Records:
        rows = []
        for target in POPULATIONS[self.population](world)[:most]:
            climb = _Climb(world, target, self.method, Fraction(self.epsilon))
            ceiling = climb.ceiling()
            found = climb.sampled(), climb.edge(), climb.node(), climb.anything()
            for number, (loss, auc) in enumerate(found[1:]):
                rows.append((world.seed, target, number, climb.candidates, found[0][0], loss, auc, ceiling))
        return np.array(rows, CLIMBED)


@final
class _Climb:
    """Two graphs that drift apart around one target: every move that raises the loss between them is kept."""

    def __init__(self, world: Simulation, target: int, method: Method, epsilon: Fraction) -> None:
        self.context, self._target, self._method, self._epsilon = _public_side(world), target, method, epsilon
        self._candidates = method.candidates.propose(self.context, target)
        self._mechanism = method.prepare(self.context, self._candidates, epsilon).mechanism
        self._rng = np.random.default_rng([world.seed, target])
        self._first = self._second = frozenset((int(u), int(w)) for u, w in world.data.pairs)
        near = {node for pair in self._first if target in pair for node in pair} | {target}
        near |= {int(node) for node in self.context.snapshot.neighbours(target)}
        around = {node for pair in self._first if near & set(pair) for node in pair} | near
        far = self._rng.choice(self.context.number_of_nodes, 20, replace=False).tolist()
        self._near, self._around = sorted(near), sorted(around | set(far))
        self._changed: Edge = (target, target)
        self._laws = (self._law(self._first),) * 2
        self.candidates = len(self._laws[0])

    def ceiling(self) -> float:
        """What the candidate list allows; what is drawn under a guide's base measure may use up all of epsilon."""
        if self._method.guide is not None:
            return float(self._epsilon)
        return list_ceiling(self._candidates, self._method.utility, self._mechanism, self._epsilon)

    def sampled(self) -> tuple[float, float]:
        """The worst of some single pairs on the real graph: where climbing starts."""
        for _ in range(TRIES):
            move = self._move(self._near)
            if self._try(self._first, self._first ^ {move}):
                self._changed = move
        return self._found()

    def edge(self) -> tuple[float, float]:
        """The surroundings in which that pair matters most: both graphs move together."""
        for _ in range(STEPS):
            move = self._move(self._near)
            if move != self._changed:
                self._try(self._first ^ {move}, self._second ^ {move})
        return self._found()

    def node(self) -> tuple[float, float]:
        """Further pairs of one end of that pair differ."""
        for _ in range(STEPS):
            self._try(self._first, self._second ^ {self._move([self._changed[0]])})
        return self._found()

    def anything(self) -> tuple[float, float]:
        """Any pairs differ, near the target, where they matter."""
        for _ in range(2 * STEPS):
            self._try(self._first, self._second ^ {self._move(self._near)})
        return self._found()

    def _try(self, first: frozenset[Edge], second: frozenset[Edge]) -> bool:
        laws = (self._laws[0] if first is self._first else self._law(first)), self._law(second)
        better = _loss(*laws) > _loss(*self._laws)
        if better:
            self._first, self._second, self._laws = first, second, laws
        return better

    def _found(self) -> tuple[float, float]:
        drawn = self._laws[0] > 0
        return _loss(*self._laws), distinguish(*(law[drawn] for law in self._laws)).auc

    def _move(self, ends: list[int]) -> Edge:
        """A random pair at one of these nodes; one that exists half of the time."""
        real = [pair for pair in self._second if pair[0] in ends or pair[1] in ends]
        if real and self._rng.random() < 0.5:
            return real[self._rng.integers(len(real))]
        u = w = 0
        while u == w:
            u, w = int(self._rng.choice(ends)), int(self._rng.choice(self._around))
        return min(u, w), max(u, w)

    def _law(self, pairs: frozenset[Edge]) -> Law:
        graph = _graph(self.context, as_pairs(set(pairs)))
        scores = inspect(graph, self.context, self._target, self._method).scores
        return self._mechanism.probabilities(scores, self._epsilon)


@lru_cache(maxsize=1)
def _public_side(world: Simulation) -> PublicContext:
    """The same object for all targets, so that what a guide learns from it is kept."""
    return world.context(HALF)


def _loss(first: Law, second: Law) -> float:
    """Over what is ever drawn: a guide may leave candidates out, on every graph the same."""
    drawn = (first > 0) | (second > 0)
    with np.errstate(divide="ignore"):
        return float(np.abs(np.log(first[drawn]) - np.log(second[drawn])).max())


def _graph(context: PublicContext, pairs: Pairs) -> PrivateGraph:
    return PrivateGraph.from_edges(pairs, number_of_nodes=context.number_of_nodes)
