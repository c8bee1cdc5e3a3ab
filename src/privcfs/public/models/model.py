"""What the rest of the system needs to know of a frozen model."""

from abc import ABC, abstractmethod

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray


class Model(ABC):
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
        """The logits of every node of the undirected graph with these pairs: (nodes, classes)."""

    def inputs(self, features: sp.csr_array) -> NDArray[np.float32] | None:  # noqa: ARG002
        """Each node's features times the first layer's weights, if this model's evaluator keeps that; else None."""
        return None

    def responses(
        self, features: sp.csr_array, pairs: NDArray[np.int64], node: int, rows: NDArray[np.float32]
    ) -> NDArray[np.float64]:
        """The logits of one node if its features were each of some rows: (rows, classes).

        This guides the choice of candidates; no promise rests on it, so a model may estimate.
        """
        found = []
        for row in rows:
            above, below = features[:node], features[node + 1 :]
            table = sp.vstack([above, sp.csr_array(row[None]), below], format="csr")
            found.append(self.logits(sp.csr_array(table), pairs)[node])
        return np.array(found, np.float64).reshape(len(rows), self.number_of_classes)

    def messages(self, features: sp.csr_array, pairs: NDArray[np.int64]) -> NDArray[np.float64]:
        """What each node would add to the logits of a target that is joined to it: (nodes, classes).

        This is an estimate that guides the choice of candidates; no promise rests on it. Here it is each node's own
        logits, divided by the root of its degree after the pair is added, self-loop included.
        """
        degrees = np.bincount(pairs.ravel(), minlength=features.shape[0])
        messages: NDArray[np.float64] = self.logits(features, pairs) / np.sqrt(degrees + 2)[:, None]
        return messages
