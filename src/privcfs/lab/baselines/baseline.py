"""What every compared method has in common: it explains many targets at once and says what it certifies."""

from abc import ABC, abstractmethod
from dataclasses import dataclass
from enum import Enum
from typing import ClassVar, final

import numpy as np
from numpy.typing import NDArray

from privcfs.lab.datasets.dataset import Dataset
from privcfs.public.backbones.gcn import GCN
from privcfs.public.interventions import Intervention

Pairs = NDArray[np.int64]


class Operations(Enum):
    """What an explanation may do to the graph."""

    EDGES = "edges"
    FEATURES = "features"
    BOTH = "both"


@final
@dataclass(frozen=True, slots=True, eq=False)
class Problem:
    """A labelled graph in the open, a frozen model, and the nodes to be explained."""

    data: Dataset
    backbone: GCN
    targets: tuple[int, ...]
    seed: int = 0


class Baseline(ABC):
    """A compared method. An explanation that was not found is the empty intervention."""

    name: ClassVar[str]
    certifies: ClassVar[str]

    @abstractmethod
    def explain(self, problem: Problem) -> list[Intervention]:
        """One intervention for each target, in their order."""


def flips(problem: Problem, target: int, intervention: Intervention) -> bool:
    """Whether the intervention changes the target's prediction, by a full forward pass on the true graph."""
    data, backbone = problem.data, problem.backbone
    before = backbone.logits(data.features, data.pairs)[target].argmax()
    gone = {tuple(pair) for pair in intervention.delete}
    pairs = np.array([pair for pair in data.pairs.tolist() if tuple(pair) not in gone], np.int64).reshape(-1, 2)
    extra = np.array(list(intervention.add), np.int64).reshape(-1, 2)
    features = data.features.copy()
    start, stop = features.indptr[target], features.indptr[target + 1]
    features.data[start:stop][np.isin(features.indices[start:stop], intervention.mask)] = 0
    after = backbone.logits(features, np.concatenate([pairs, extra]))[target].argmax()
    return bool(before != after)
