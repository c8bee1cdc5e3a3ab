"""Two-layer graph convolutional network (Kipf and Welling 2017), in NumPy."""

import hashlib
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import final

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray

from privcfs.errors import BackboneError
from privcfs.public.backbones.backbone import Backbone

MOST_KEPT = 2**24  # numbers
MOST_MADE = 2**28  # multiplications


@final
@dataclass(frozen=True, slots=True, eq=False)
class GCN(Backbone):
    """Z = A relu(A X first + first_bias) second + second_bias, with A the symmetric renormalised adjacency."""

    first: NDArray[np.float32]
    second: NDArray[np.float32]
    first_bias: NDArray[np.float32] = field(default_factory=lambda: np.zeros(0, np.float32))
    second_bias: NDArray[np.float32] = field(default_factory=lambda: np.zeros(0, np.float32))

    def __post_init__(self) -> None:
        if self.first.ndim != 2 or self.second.ndim != 2 or self.first.shape[1] != self.second.shape[0]:
            raise BackboneError(
                f"backbone layers have shapes {self.first.shape} and {self.second.shape}; "
                "they must be (features, hidden) and (hidden, classes)."
            )
        for name, width in (("first_bias", self.first.shape[1]), ("second_bias", self.second.shape[1])):
            bias = getattr(self, name)
            if bias.size == 0:
                object.__setattr__(self, name, np.zeros(width, np.float32))
            elif bias.shape != (width,):
                raise BackboneError(f"backbone {name} has shape {bias.shape}; it must have {width} entries.")
        for name in ("first", "second", "first_bias", "second_bias"):
            array = np.ascontiguousarray(getattr(self, name), np.float32)
            if not np.isfinite(array).all():
                raise BackboneError(f"backbone {name} holds a missing or infinite weight; export the model again.")
            object.__setattr__(self, name, array)

    @property
    def number_of_features(self) -> int:
        return int(self.first.shape[0])

    @property
    def number_of_classes(self) -> int:
        return int(self.second.shape[1])

    @property
    def hops(self) -> int:
        return 2

    @property
    def digest(self) -> str:
        hasher = hashlib.sha256(b"privcfs gcn 1\n")
        for part in (self.first, self.first_bias, self.second, self.second_bias):
            hasher.update(f"{part.shape}\n".encode() + part.astype("<f4").tobytes())
        return hasher.hexdigest()

    def feature_weights(self) -> NDArray[np.float64]:
        norms: NDArray[np.float64] = np.sqrt(np.square(self.first, dtype=np.float64).sum(axis=1))
        return norms

    def inputs(self, features: sp.csr_array) -> NDArray[np.float32] | None:
        """Kept where the table is small and made in a moment; otherwise the evaluator makes the rows that it needs."""
        nodes, hidden = features.shape[0], self.first.shape[1]
        return features @ self.first if nodes * hidden <= MOST_KEPT and features.nnz * hidden <= MOST_MADE else None

    def pulls(self, features: sp.csr_array, pairs: NDArray[np.int64]) -> Callable[[int], NDArray[np.float64]]:
        """What each node's hidden row would add to the target's class scores, with the new pair in both degrees."""
        count = features.shape[0]
        both = np.concatenate([pairs, pairs[:, ::-1]])
        degrees = np.bincount(pairs.ravel(), minlength=count) + 1.0
        inputs = features.astype(np.float64) @ self.first
        scaled = inputs / np.sqrt(degrees)[:, None]
        heard = sp.csr_array((np.ones(len(both)), (both[:, 0], both[:, 1])), shape=(count, count)) @ scaled + scaled
        grown = np.sqrt(degrees + 1)[:, None]

        def pull(target: int) -> NDArray[np.float64]:
            hidden = np.maximum((heard + inputs[target] / grown[target]) / grown + self.first_bias, 0)
            pulled: NDArray[np.float64] = hidden @ self.second / grown
            return pulled

        return pull

    def logits(self, features: sp.csr_array, pairs: NDArray[np.int64]) -> NDArray[np.float64]:
        count = features.shape[0]
        both = np.concatenate([pairs, pairs[:, ::-1]])
        ones = np.ones(len(both))
        adjacency = sp.csr_array((ones, (both[:, 0], both[:, 1])), shape=(count, count)) + sp.eye_array(count)
        scale = sp.diags_array(1 / np.sqrt(adjacency.sum(axis=1)))
        normalised = (scale @ adjacency @ scale).tocsr()
        hidden = np.maximum(normalised @ (features.astype(np.float64) @ self.first) + self.first_bias, 0)
        scores: NDArray[np.float64] = normalised @ (hidden @ self.second.astype(np.float64)) + self.second_bias
        return scores
