"""What the rest of the system needs to know of a frozen model."""

from abc import ABC, abstractmethod

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
