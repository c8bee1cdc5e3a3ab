"""What every compared method has in common: it explains many targets at once, and says what it certifies."""

from abc import ABC, abstractmethod
from dataclasses import dataclass, field, replace
from enum import Enum
from typing import final

import numpy as np
from numpy.typing import NDArray

from privcfs.public.assumptions import SIMULATED
from privcfs.public.context import PublicContext
from privcfs.public.interventions import Intervention
from privcfs.public.models.gcn import GCN
from privcfs_lab.datasets.dataset import Dataset
from privcfs_lab.models.deep_gcn import DeepGCN

Pairs = NDArray[np.int64]
NO_PAIRS: Pairs = np.zeros((0, 2), np.int64)
NOTHING = "nothing"
ONE_EDGE = "one edge"
ONE_EXAMPLE = "one training node's loss, no edge"
ANY_GRAPHS = "any two graphs"


class Operations(Enum):
    """What an explanation may do to the graph."""

    EDGES = "edges"
    FEATURES = "features"
    BOTH = "edges and features"


@final
@dataclass(frozen=True, slots=True)
class Certificate:
    """The price that a method quotes, and between which inputs it really bounds what can be told apart."""

    epsilon: float | None = None
    delta: float = 0.0
    covers: str = NOTHING
    proven: float | None = None  # where the quoted price is not the proven one


@final
@dataclass(frozen=True, slots=True, eq=False)
class Problem:
    """A labelled graph in the open, a frozen model, the nodes to be explained, and the pairs that everyone knows."""

    data: Dataset
    model: GCN | DeepGCN
    targets: tuple[int, ...]
    seed: int = 0
    snapshot: Pairs = field(default_factory=lambda: NO_PAIRS)

    def on(self, pairs: Pairs) -> "Problem":
        """The same question about another graph."""
        return replace(self, data=replace(self.data, pairs=pairs))

    def rng(self, purpose: str) -> np.random.Generator:
        """Noise of one purpose: the same for every population of a seed."""
        return np.random.default_rng([self.seed, *purpose.encode()])

    def context(self) -> PublicContext:
        """The public side."""
        model = self.model
        frozen = model.frozen() if isinstance(model, DeepGCN) else model
        return PublicContext(self.data.features, self.snapshot, frozen, assumptions=SIMULATED)


@final
@dataclass(frozen=True, slots=True)
class Explanation:
    """An answer for one target, and what the method believes: the class and the flip where it looked."""

    intervention: Intervention
    prediction: int
    flips: bool


class Baseline(ABC):
    """A compared method. An explanation that was not found is the empty intervention."""

    operations: Operations

    @property
    def placement(self) -> str:
        """Where the noise is."""
        return "none"

    @property
    def certificate(self) -> Certificate:
        """What it promises."""
        return Certificate()

    @property
    def draws(self) -> int:
        """Answers for each target, averaged, where an answer is drawn."""
        return 1

    @abstractmethod
    def explain(self, problem: Problem) -> list[Explanation]:
        """One explanation for each target, in their order."""


def predictions(problem: Problem) -> NDArray[np.int64]:
    """The class of every node on the true graph."""
    classes: NDArray[np.int64] = problem.model.logits(problem.data.features, problem.data.pairs).argmax(axis=1)
    return classes


def prediction_after(problem: Problem, target: int, intervention: Intervention) -> int:
    """The target's class after the intervention, by a full forward pass on the true graph."""
    data, nodes = problem.data, len(problem.data.labels)
    numbers = data.pairs @ [nodes, 1]
    gone = np.isin(numbers, [u * nodes + w for u, w in intervention.delete])
    new = np.array([pair for pair in intervention.add if pair[0] * nodes + pair[1] not in numbers], np.int64)
    features = data.features.copy()
    start, stop = features.indptr[target], features.indptr[target + 1]
    features.data[start:stop][np.isin(features.indices[start:stop], intervention.mask)] = 0
    scores = problem.model.logits(features, np.concatenate([data.pairs[~gone], new.reshape(-1, 2)]))
    return int(scores[target].argmax())


def flips(problem: Problem, target: int, intervention: Intervention) -> bool:
    """Whether the intervention changes the target's prediction on the true graph."""
    return bool(prediction_after(problem, target, intervention) != predictions(problem)[target])
