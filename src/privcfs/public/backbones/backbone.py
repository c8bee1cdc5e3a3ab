"""What the rest of the system needs to know of a frozen model."""

from abc import ABC, abstractmethod
from collections.abc import Callable

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray


class Backbone(ABC):
    """A frozen node classifier. Everything here is public."""

    @property
    @abstractmethod
    def number_of_features(self) -> int:
        """Width of the feature table."""

    @property
    @abstractmethod
    def number_of_classes(self) -> int:
        """How many classes there are."""

    @property
    @abstractmethod
    def hops(self) -> int:
        """How far information travels: the number of message-passing layers."""

    @property
    @abstractmethod
    def digest(self) -> str:
        """SHA-256 of architecture and weights."""

    @abstractmethod
    def feature_weights(self) -> NDArray[np.float64]:
        """One public weight per feature: how strongly the first layer reads it."""

    @abstractmethod
    def logits(self, features: sp.csr_array, pairs: NDArray[np.int64]) -> NDArray[np.float64]:
        """Class scores of every node of the undirected graph with these pairs."""

    def inputs(self, features: sp.csr_array) -> NDArray[np.float32] | None:  # noqa: ARG002
        """What the first layer makes of every node by itself, where its evaluator wants that kept."""
        return None

    def pulls(self, features: sp.csr_array, pairs: NDArray[np.int64]) -> Callable[[int], NDArray[np.float64]]:
        """For a target, a public guess at what each node would say to it if they were joined: (nodes, classes).

        Here, each node's own class scores, less where it has many neighbours. It guides a search and promises nothing.
        """
        degrees = np.bincount(pairs.ravel(), minlength=features.shape[0])
        spoken = self.logits(features, pairs) / np.sqrt(degrees + 2)[:, None]
        return lambda _: spoken
