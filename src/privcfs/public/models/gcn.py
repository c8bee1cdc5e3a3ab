"""Two-layer graph convolutional network (Kipf and Welling 2017), in NumPy."""

import hashlib
from dataclasses import dataclass, field
from typing import final

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray

from privcfs.errors import ModelError
from privcfs.public.models.model import Model

# The product of features and first-layer weights is kept if it has at most so many entries and takes at most so many
# multiplications.
MOST_KEPT, MOST_MULTIPLIED = 2**24, 2**28


@final
@dataclass(frozen=True, slots=True, eq=False)
class GCN(Model):
    """Logits Z = A relu(A X first + first_bias) second + second_bias.

    X is the feature table, and A the symmetric GCN normalisation of the adjacency matrix with self-loops.

    Attributes:
        first: Weights of the first layer: (features, hidden).
        second: Weights of the second layer: (hidden, classes).
        first_bias: Bias of the first layer. Default: zeros.
        second_bias: Bias of the second layer. Default: zeros.

    Raises:
        ModelError: The shapes do not fit each other, or a weight is missing or infinite.
    """

    first: NDArray[np.float32]
    second: NDArray[np.float32]
    first_bias: NDArray[np.float32] = field(default_factory=lambda: np.zeros(0, np.float32))
    second_bias: NDArray[np.float32] = field(default_factory=lambda: np.zeros(0, np.float32))

    def __post_init__(self) -> None:
        if self.first.ndim != 2 or self.second.ndim != 2 or self.first.shape[1] != self.second.shape[0]:
            raise ModelError(
                f"model layers have shapes {self.first.shape} and {self.second.shape}; "
                "they must be (features, hidden) and (hidden, classes)."
            )
        for name, width in (("first_bias", self.first.shape[1]), ("second_bias", self.second.shape[1])):
            bias = getattr(self, name)
            if bias.size == 0:
                object.__setattr__(self, name, np.zeros(width, np.float32))
            elif bias.shape != (width,):
                raise ModelError(f"model {name} has shape {bias.shape}; it must have {width} entries.")
        for name in ("first", "second", "first_bias", "second_bias"):
            array = np.ascontiguousarray(getattr(self, name), np.float32)
            if not np.isfinite(array).all():
                raise ModelError(f"model {name} holds a missing or infinite weight; export the model again.")
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
        """The product X first, which evaluators reuse.

        Args:
            features: The feature table X.

        Returns:
            The product if the table is small; otherwise None, and evaluators compute the rows that they need.
        """
        nodes, hidden = features.shape[0], self.first.shape[1]
        small = nodes * hidden <= MOST_KEPT and features.nnz * hidden <= MOST_MULTIPLIED
        return features @ self.first if small else None

    def messages(self, features: sp.csr_array, pairs: NDArray[np.int64]) -> NDArray[np.float64]:
        """Estimates what each node would add to the logits of a target that is joined to it.

        Args:
            features: The feature table.
            pairs: The undirected edges, each once.

        Returns:
            One row for each node: its hidden row times the second layer's weights, with the new pair counted in its
            degree. What the target would add to the hidden row is left out, so that the estimate serves all targets.
        """
        count = features.shape[0]
        both_directions = np.concatenate([pairs, pairs[:, ::-1]])
        ones = np.ones(len(both_directions))
        adjacency = sp.csr_array((ones, (both_directions[:, 0], both_directions[:, 1])), shape=(count, count))
        degrees = np.bincount(pairs.ravel(), minlength=count) + 1.0
        scaled_inputs = features.astype(np.float64) @ self.first
        scaled_inputs /= np.sqrt(degrees)[:, None]
        hidden = adjacency @ scaled_inputs  # In place from here: of a large graph these tables are the peak of memory.
        hidden += scaled_inputs
        new_root_degrees = np.sqrt(degrees + 1)[:, None]
        hidden /= new_root_degrees
        hidden += self.first_bias
        messages: NDArray[np.float64] = np.maximum(hidden, 0, out=hidden) @ self.second
        messages /= new_root_degrees
        return messages

    def responses(
        self, features: sp.csr_array, pairs: NDArray[np.int64], node: int, rows: NDArray[np.float32]
    ) -> NDArray[np.float64]:
        """The logits of one node if its features were each of some rows.

        Args:
            features: The feature table.
            pairs: The undirected edges, each once.
            node: The node.
            rows: Its features instead of those in the table: (rows, features).

        Returns:
            One row for each of the rows, one column for each class; exact.
        """
        normalised = normalised_adjacency(features.shape[0], pairs)
        read, weights = normalised[[node]].indices, normalised[[node]].data
        inputs = features.astype(np.float64) @ self.first
        hidden = normalised[read] @ inputs + self.first_bias
        reached = normalised[read][:, [node]].toarray()
        moved = rows.astype(np.float64) @ self.first - inputs[node]
        sums = np.zeros_like(moved)
        for row, share, weight in zip(hidden, reached[:, 0], weights, strict=True):
            sums += weight * np.maximum(row + share * moved, 0)
        responses: NDArray[np.float64] = sums @ self.second + self.second_bias
        return responses

    def logits(self, features: sp.csr_array, pairs: NDArray[np.int64]) -> NDArray[np.float64]:
        """The logits of every node.

        Args:
            features: The feature table.
            pairs: The undirected edges, each once.

        Returns:
            One row for each node, one column for each class.
        """
        normalised = normalised_adjacency(features.shape[0], pairs)
        hidden = np.maximum(normalised @ (features.astype(np.float64) @ self.first) + self.first_bias, 0)
        scores: NDArray[np.float64] = normalised @ (hidden @ self.second.astype(np.float64)) + self.second_bias
        return scores


def normalised_adjacency(count: int, pairs: NDArray[np.int64]) -> sp.csr_array:
    """The symmetric GCN normalisation D^-1/2 (A + I) D^-1/2 of an undirected graph.

    `count` is the number of nodes, `pairs` holds each undirected edge once, and D has the degrees of A + I.
    """
    both_directions = np.concatenate([pairs, pairs[:, ::-1]])
    ones = np.ones(len(both_directions))
    adjacency = sp.csr_array((ones, (both_directions[:, 0], both_directions[:, 1])), shape=(count, count))
    with_self_loops = adjacency + sp.eye_array(count)
    inverse_root_degrees = sp.diags_array(1 / np.sqrt(with_self_loops.sum(axis=1)))
    return (inverse_root_degrees @ with_self_loops @ inverse_root_degrees).tocsr()
