"""Other models than the two-layer GCN, as torch modules that a vault takes through the generic evaluator."""

from collections.abc import Callable
from itertools import pairwise
from typing import Any, cast

import numpy as np
import scipy.sparse as sp
import torch
from numpy.typing import NDArray

from privcfs.public.models.torch_module import TorchModel
from privcfs.public.models.training import Labelled

HIDDEN = 16
STEPS = 150


class Stack(torch.nn.Module):
    """Layers with a relu between them."""

    def __init__(self, layers: list[torch.nn.Module]) -> None:
        super().__init__()
        self.layers = torch.nn.ModuleList(layers)

    def forward(self, x: torch.Tensor, edge_index: torch.Tensor) -> torch.Tensor:
        """Class scores of every node."""
        for number, layer in enumerate(self.layers):
            x = layer(x, edge_index)
            x = torch.relu(x) if number < len(self.layers) - 1 else x
        return x


def _layer(kind: str) -> Callable[[int, int], torch.nn.Module]:
    from torch_geometric.nn import GATConv, GCNConv, GINConv, SAGEConv

    if kind == "GIN":
        return lambda a, b: GINConv(
            torch.nn.Sequential(torch.nn.Linear(a, HIDDEN), torch.nn.ReLU(), torch.nn.Linear(HIDDEN, b))
        )
    plain = {"GCN": GCNConv, "GraphSAGE": SAGEConv, "GAT": GATConv}[kind]
    return lambda a, b: cast(torch.nn.Module, plain(a, b))


def fitted(kind: str, depth: int, data: Labelled, steps: int = STEPS, seed: int = 0) -> TorchModel:
    """A frozen model of this kind and depth, trained on the labelled nodes."""
    classes = int(data.labels.max()) + 1
    widths = [data.features.shape[1], *[HIDDEN] * (depth - 1), classes]
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(seed)
        module = Stack([_layer(kind)(a, b) for a, b in pairwise(widths)])
        _train(module, data, steps)
    return TorchModel(module, hops=depth, number_of_features=widths[0], number_of_classes=classes)


def untrained(kind: str, depth: int, *, features: int, classes: int, seed: int = 0) -> TorchModel:
    """A frozen model of this kind and depth with random weights."""
    widths = [features, *[HIDDEN] * (depth - 1), classes]
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(seed)
        module = Stack([_layer(kind)(a, b) for a, b in pairwise(widths)])
    return TorchModel(module, hops=depth, number_of_features=features, number_of_classes=classes)


def _train(module: torch.nn.Module, data: Labelled, steps: int) -> None:
    x, edges = _tensors(data.features, data.pairs)
    labels, train = torch.from_numpy(data.labels), torch.from_numpy(data.train)
    optimiser = torch.optim.Adam(module.parameters(), lr=0.01, weight_decay=5e-4)
    for _ in range(steps):
        optimiser.zero_grad()
        loss = torch.nn.functional.cross_entropy(module(x, edges)[train], labels[train])
        loss.backward()  # type: ignore[no-untyped-call]
        optimiser.step()


def _tensors(features: sp.csr_array, pairs: NDArray[np.int64]) -> tuple[Any, Any]:
    both = np.concatenate([pairs, pairs[:, ::-1]]).T
    return torch.from_numpy(features.toarray().astype(np.float32)), torch.from_numpy(np.ascontiguousarray(both))
