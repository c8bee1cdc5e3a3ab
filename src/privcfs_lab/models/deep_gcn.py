"""A graph convolutional network of any depth, for graphs whose labels lie more than two steps away."""

from dataclasses import dataclass
from itertools import pairwise
from typing import TYPE_CHECKING, final

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray

from privcfs.public.models.gcn import GCN, normalised_adjacency
from privcfs.public.models.torch_module import TorchModel

if TYPE_CHECKING:
    import torch

Array = NDArray[np.float32]


@final
@dataclass(frozen=True, slots=True, eq=False)
class DeepGCN:
    """Layers of (weight, bias): each spreads over the renormalised adjacency, all but the last end in a relu."""

    layers: tuple[tuple[Array, Array], ...]

    @classmethod
    def of(cls, model: "GCN | DeepGCN") -> "DeepGCN":
        """A two-layer network is one of them."""
        if isinstance(model, DeepGCN):
            return model
        return cls(((model.first, model.first_bias), (model.second, model.second_bias)))

    def logits(self, features: sp.csr_array, pairs: NDArray[np.int64]) -> NDArray[np.float64]:
        """Class scores of every node."""
        spread = normalised_adjacency(features.shape[0], pairs)
        values: NDArray[np.float64] = features.astype(np.float64)
        for number, (weight, bias) in enumerate(self.layers):
            values = spread @ (values @ weight.astype(np.float64)) + bias
            if number < len(self.layers) - 1:
                values = np.maximum(values, 0)
        return values

    def frozen(self) -> TorchModel:
        """As a vault takes it."""
        (first, _), (last, _) = self.layers[0], self.layers[-1]
        sizes = {"number_of_features": first.shape[0], "number_of_classes": last.shape[1]}
        return TorchModel(self.module(), hops=len(self.layers), **sizes)

    def module(self) -> "torch.nn.Module":
        """The same network for callers of torch: features and directed edges, both directions of each pair."""
        import torch

        layers = [(torch.from_numpy(weight), torch.from_numpy(bias)) for weight, bias in self.layers]

        class Network(torch.nn.Module):
            """Computes what DeepGCN.logits computes."""

            def __init__(self) -> None:
                super().__init__()
                self.weights = torch.nn.ParameterList([weight for weight, _ in layers])
                self.biases = torch.nn.ParameterList([bias for _, bias in layers])

            def forward(self, x: torch.Tensor, edge_index: torch.Tensor) -> torch.Tensor:
                degrees = torch.ones(len(x)).index_add(0, edge_index[1], torch.ones(edge_index.shape[1]))
                root = degrees.rsqrt()
                for number, (weight, bias) in enumerate(zip(self.weights, self.biases, strict=True)):
                    x = x @ weight
                    sent = (root[edge_index[0]] * root[edge_index[1]])[:, None] * x[edge_index[0]]
                    x = (x / degrees[:, None]).index_add(0, edge_index[1], sent) + bias
                    x = torch.relu(x) if number < len(self.weights) - 1 else x
                return x

        return Network().eval()


def train_deep(
    features: sp.csr_array, pairs: NDArray[np.int64], labels: NDArray[np.int64], train: NDArray[np.int64], seed: int = 0
) -> DeepGCN:
    """Three layers, two of them of 20 units: the width that is usual on graphs with motifs; training is our own.

    Nodes whose features are all alike start apart by random biases alone: with none, training does not leave the start.
    """
    import torch

    generator = torch.Generator().manual_seed(seed)
    widths = (features.shape[1], 20, 20, int(labels.max()) + 1)
    weights = [torch.nn.Parameter(torch.empty(shape)) for shape in pairwise(widths)]
    biases = [torch.nn.Parameter(torch.rand(width, generator=generator) - 0.5) for width in widths[1:]]
    for weight in weights:
        torch.nn.init.xavier_uniform_(weight, generator=generator)
    spread = torch.from_numpy(normalised_adjacency(len(labels), pairs).toarray().astype(np.float32))
    inputs, known, wanted = torch.from_numpy(features.toarray()), torch.from_numpy(train), torch.from_numpy(labels)
    optimiser = torch.optim.Adam([*weights, *biases], lr=0.01)
    for _ in range(2000):
        values = inputs
        for number, (weight, bias) in enumerate(zip(weights, biases, strict=True)):
            values = spread @ (values @ weight) + bias
            values = torch.relu(values) if number < 2 else values
        loss = torch.nn.functional.cross_entropy(values[known], wanted[known])
        optimiser.zero_grad()
        loss.backward()  # type: ignore[no-untyped-call]
        optimiser.step()
    return DeepGCN(tuple((w.detach().numpy(), b.detach().numpy()) for w, b in zip(weights, biases, strict=True)))
